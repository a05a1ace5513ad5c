// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package store

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
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

// TestUnlockedWhileAProcessStarts: a process that is being started has copies of all
// open files for a moment, that of the lock too. The state is free all the same.
func TestUnlockedWhileAProcessStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock shows all patience as used up at once
		s, err := Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		copied, err := syscall.Dup(int(s.lock.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(copied)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		open(t, s.dir)
	})
}
