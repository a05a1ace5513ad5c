// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestIntact: whatever is done to the files of a state that is open, the next
// write finds out and writes nothing.
func TestIntact(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(dir string) error
		want string
	}{
		"nothing": {func(string) error { return nil }, ""},
		"removed": {os.RemoveAll, "was removed or renamed"},
		"renamed": {func(dir string) error { return os.Rename(dir, dir+"-away") }, "was removed or renamed"},
		"another one in its place": {func(dir string) error {
			if err := os.Rename(dir, dir+"-away"); err != nil {
				return err
			}
			s, err := Open(dir)
			return errors.Join(err, s.Close())
		}, "was replaced by another file"},
		"no log":  {func(dir string) error { return os.Remove(filepath.Join(dir, fileName+"-wal")) }, "was removed or renamed"},
		"no lock": {func(dir string) error { return os.Remove(filepath.Join(dir, lockName)) }, "was removed or renamed"},
		"written over": {func(dir string) error {
			content, err := os.ReadFile(filepath.Join(dir, "copy"))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, fileName), content, 0o600))
		}, "was written over"},
		"cut off": {func(dir string) error { return os.Truncate(filepath.Join(dir, fileName), 4096) }, "was written over"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			s := open(t, dir)
			if _, err := s.Hold(t.Context()); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(filepath.Join(dir, fileName))
			if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "copy"), content, 0o600), s.Close()); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir)
			if _, err := s.Hold(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.do(dir); err != nil {
				t.Fatal(err)
			}
			err = s.Update(t.Context(), func(tx *Tx) error { return tx.PutUnit("a", []byte("{}")) })
			var replaced *Replaced
			if found := errors.As(err, &replaced); found != (c.want != "") || found && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestHold: a process knows those that worked with the same file before it, and a
// copy knows none.
func TestHold(t *testing.T) {
	dir := t.TempDir()
	var all []string
	state := ""
	for range 3 {
		s := open(t, dir)
		h, err := s.Hold(t.Context())
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(h.Before, all) || state != "" && h.State != state {
			t.Errorf("got %+v, want %v before", h, all)
		}
		all, state = slices.Insert(all, 0, h.Process), h.State
	}
	content, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	write(t, filepath.Join(other, fileName), content)
	h, err := open(t, other).Hold(t.Context())
	if err != nil || len(h.Before) > 0 || h.State != state {
		t.Errorf("the copy: %+v, %v", h, err)
	}
}

// TestFullDisk: what cannot be written is an error that says what to do.
func TestFullDisk(t *testing.T) {
	s := open(t, t.TempDir())
	var pages int
	if err := s.writer.QueryRow(`PRAGMA page_count`).Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.Exec(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)); err != nil {
		t.Fatal(err)
	}
	err := s.Update(t.Context(), func(tx *Tx) error { return tx.PutUnit("a", make([]byte, 100_000)) })
	if err == nil || !strings.Contains(err.Error(), "nothing more is written to any cluster; make room") {
		t.Errorf("got %v", err)
	}
}
