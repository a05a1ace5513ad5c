// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Tests make and remove hundreds of thousands of small files in temporary folders: repositories,
// states, the data of servers. In memory that takes half of the kernel's time that it takes on a disk.

// memoryFolder is the folder of files in memory, where there is one.
const memoryFolder = "/dev/shm"

// Bounds in bytes. A run has less than 2 GiB in its temporary folders at a time, and its processes take
// some GiB too.
const (
	minFree      = 4 << 30 // of files in memory
	minAvailable = 8 << 30 // of memory
)

// noExec is the flag of a mount whose files are no programs.
const noExec = 8

// useMemory has all that is started from here on keep temporary files in memory, where there is
// enough of it and nobody has said where they go. The returned function removes their folder.
func useMemory() (remove func(), err error) {
	remove = func() {}
	if os.Getenv("TMPDIR") != "" || !isRoomy(memoryFolder) || availableMemory() < minAvailable {
		return remove, nil
	}
	if err := forgetRuns(memoryFolder); err != nil {
		return remove, err
	}
	dir, err := os.MkdirTemp(memoryFolder, runPrefix)
	if err != nil {
		return remove, nil // a disk will do
	}
	remove = func() { _ = os.RemoveAll(dir) }
	// As for /tmp: sandboxes run as other users.
	return remove, errors.Join(os.Chmod(dir, 0o777|os.ModeSticky), os.Setenv("TMPDIR", dir))
}

// isRoomy says whether a folder has room for temporary files and lets programs run.
func isRoomy(dir string) bool {
	var mount syscall.Statfs_t
	if syscall.Statfs(dir, &mount) != nil {
		return false
	}
	return mount.Flags&noExec == 0 && mount.Bavail*uint64(mount.Bsize) >= minFree
}

// availableMemory is in bytes, 0 where nobody says so.
func availableMemory() (bytesFree int64) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			_, _ = fmt.Sscan(value, &bytesFree) // in kB
		}
	}
	return bytesFree << 10
}
