// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
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

// lostLog says that the log of writes is gone which belongs to a state that a daemon was at
// work with when it was killed: a clean end takes both away, the log and the note of the daemon.
func lostLog(dir string) bool {
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	return exists(followingName) && exists(fileName) && !exists(fileName+"-wal")
}

// keepLog leaves an empty log in the place of one that was written into the file, so that
// nobody takes it for lost; not where one is.
func keepLog(dir string, isLost bool) {
	if !isLost && lostLog(dir) {
		_ = os.WriteFile(filepath.Join(dir, fileName+"-wal"), nil, 0o600) // else a condition too many
	}
}

// LostLog tells of the writes that are lost with the log; empty where it was there when the
// state was opened.
func (s *Store) LostLog() string {
	if !s.logLost {
		return ""
	}
	return fmt.Sprintf("%s-wal was not there, although the daemon before did not end cleanly: what it wrote last is lost, "+
		"such as orders, approvals and the quarantine; look at swell orders and swell events; the next start says no more of it", fileName)
}
