// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// lockFile fails: without a lock, two daemons could write to one fleet.
func lockFile(name string) (*os.File, error) {
	return nil, fmt.Errorf("%s: cannot lock files on this system: %w", name, errors.ErrUnsupported)
}

// unlockFile is not needed: see lockFile.
func unlockFile(f *os.File) error { return f.Close() }

// isLocked says no: see lockFile.
func isLocked(string) (bool, error) { return false, nil }

// fileNumber is not needed: see lockFile.
func fileNumber(fs.FileInfo) string { return "" }
