// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// boundMemory does nothing: other kernels do not count what Go takes.
func boundMemory(uint64) error { return nil }
