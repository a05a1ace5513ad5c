// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package store

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestWhoAsksKeepsNobodyOut: the lock that answers [Store.InUse] is waited for.
func TestWhoAsksKeepsNobodyOut(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, lockName))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(lockPatience/4, func() { f.Close() })
	open(t, dir)
}
