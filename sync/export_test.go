// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

// Freeze has the daemon stop to renew its Leases without giving them back, as when
// its process is killed or stopped.
func (d *Daemon) Freeze() {
	if d.leases.cancel == nil {
		return // it has none
	}
	d.leases.cancel()
	for _, l := range d.leases.begun {
		<-l.over
	}
	d.leases.cancel, d.leases.begun = nil, nil
}
