// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// followingName is a file beside the state that is there while a daemon follows Git. It
// outlives a daemon that does not end cleanly, and holds nothing.
const followingName = "following"

// Follow notes that a daemon follows Git with this state, or that it does so no more.
func (s *Store) Follow(follows bool) error {
	name := filepath.Join(s.dir, followingName)
	if follows {
		return os.WriteFile(name, nil, 0o600)
	}
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Died says that a daemon which followed Git with this state did not end cleanly, and that
// none is at work since; and when it last wrote something.
func (s *Store) Died() (lastSeen time.Time, died bool, err error) {
	if running, err := s.InUse(); running || err != nil {
		return time.Time{}, false, err
	}
	began, err := os.Stat(filepath.Join(s.dir, followingName))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, err
	}
	lastSeen = began.ModTime()
	for _, name := range []string{fileName, fileName + "-wal"} {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err == nil && info.ModTime().After(lastSeen) {
			lastSeen = info.ModTime()
		}
	}
	return lastSeen.UTC().Truncate(time.Second), true, nil
}
