// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package exectest writes programs that tests run. It is imported by tests alone.
package exectest

import (
	"os"
	"syscall"
)

// WriteProgram writes an executable file. No process is forked meanwhile: a child that begins
// while the file is open holds it open until its own exec, and Linux runs no program that is
// open for writing ("text file busy").
func WriteProgram(file string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(file, content, 0o755)
}
