// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// lockPatience is for how long a lock is tried to get: [isLocked] has it for a
// moment.
const lockPatience = time.Second

// lockFile locks a file until [unlockFile] or the end of the process.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(lockPatience / 50) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			f.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		case time.Since(began) > lockPatience:
			f.Close()
			return nil, fmt.Errorf("%s: %w", name, ErrLocked)
		}
	}
}

// unlockFile gives the lock up and closes the file. Closing alone is not enough: a
// process that is being started shares the file until it runs its own program, and
// with it the lock.
func unlockFile(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// isLocked says whether a process has the file locked.
func isLocked(name string) (bool, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unlockFile(f) // others that ask may share the lock
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return false, nil
}

// fileNumber tells a file from all others of the machine.
func fileNumber(info fs.FileInfo) string {
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d %d", is.Dev, is.Ino)
}
