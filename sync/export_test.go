// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

// Freeze has the daemon stop to renew its Leases without giving them back, as when
// its process is killed or stopped.
func (d *Daemon) Freeze() { d.fleet.Abandon() }
