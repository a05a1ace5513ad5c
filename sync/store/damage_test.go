// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestUnusable: whatever is wrong with a file, it is an error that names it and
// says how to go on, the file stays as it is, and no new state is begun.
func TestUnusable(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	s := open(t, whole)
	var entries []Entry
	for i := range 500 {
		entries = append(entries, confirmed(entry(i), "d"))
	}
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.Confirm(entries), tx.PutUnit("a", bytes.Repeat([]byte("x"), 50_000)))
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(filepath.Join(whole, fileName))
	if err != nil {
		t.Fatal(err)
	}
	if len(sound) < 20*4096 {
		t.Fatalf("only %d bytes to damage", len(sound))
	}

	type damage struct {
		content []byte
		wal     []byte
		missing bool
		want    string
	}
	cases := map[string]damage{
		"empty":            {content: []byte{}, want: `damaged: it is empty`},
		"not a database":   {content: bytes.Repeat([]byte("swell "), 1000), want: `not a state file of swell`},
		"someone else's":   {content: foreign(t), want: `not a state file of swell`},
		"newer":            {content: withVersion(t, whole, version+1), want: fmt.Sprintf(`made by a newer version of swell: schema %d, this one knows %d, so run that version`, version+1, version)},
		"missing, but log": {missing: true, wal: []byte("frames"), want: `missing, but its -wal is there`},
		"no schema":        {content: withVersion(t, whole, 0), want: `damaged: schema 0`},
	}
	for _, cut := range []int{1, 50, 99, 100, 512, 4095, 4096, 4097, 5 * 4096, len(sound) / 2, len(sound) - 4096, len(sound) - 1} {
		cases[fmt.Sprintf("cut at %d", cut)] = damage{content: sound[:cut], want: `damaged: `}
	}
	for page := 1; page < len(sound)/4096; page += 4 {
		torn := bytes.Clone(sound)
		copy(torn[page*4096:], bytes.Repeat([]byte{0xa5}, 4096))
		cases[fmt.Sprintf("page %d torn", page)] = damage{content: torn, want: `damaged: `}
	}
	for page := 1; page < len(sound)/4096; page += 3 {
		zeroed := bytes.Clone(sound)
		clear(zeroed[page*4096 : (page+1)*4096])
		cases[fmt.Sprintf("page %d zeroed", page)] = damage{content: zeroed, want: `damaged: `}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, fileName)
			if !c.missing {
				write(t, file, c.content)
			}
			if c.wal != nil {
				write(t, file+"-wal", c.wal)
			}
			for range 2 { // the second time too
				s, err := Open(dir)
				if err == nil {
					s.Close()
					t.Fatal("it was opened")
				}
				var unusable *Unusable
				if !errors.As(err, &unusable) || unusable.File != file {
					t.Fatalf("got %v, want an Unusable of the file", err)
				}
				if want := regexp.QuoteMeta(file+": ") + c.want + `.*; move it away`; !regexp.MustCompile(want).MatchString(err.Error()) {
					t.Errorf("got %q, want %q", err, want)
				}
			}
			after, err := os.ReadFile(file)
			if c.missing {
				if !errors.Is(err, os.ErrNotExist) {
					t.Errorf("got %v, want that there still is no file", err)
				}
			} else if err != nil || !bytes.Equal(after, c.content) {
				t.Errorf("the file was changed (%v): %d bytes, now %d", err, len(c.content), len(after))
			}
		})
	}
}

// TestZeroedContent: bytes that a disk left zero are found inside of values too, where SQLite
// looks at none.
func TestZeroedContent(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	update(t, s, func(tx *Tx) error { return tx.PutUnit("a", bytes.Repeat([]byte("x"), 50_000)) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, fileName)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin := bytes.Index(content, bytes.Repeat([]byte("x"), 3000))
	clear(content[begin+1024 : begin+1536])
	write(t, file, content)
	var unusable *Unusable
	if _, err := Open(dir); !errors.As(err, &unusable) || !strings.Contains(err.Error(), "damaged: zero bytes in table units") {
		t.Errorf("got %v", err)
	}
}

// TestLostLog: the log of a state that was in use is gone.
func TestLostLog(t *testing.T) {
	killed := t.TempDir()
	s := open(t, killed)
	if err := s.Follow(true); err != nil {
		t.Fatal(err)
	}
	update(t, s, func(tx *Tx) error { return tx.PutUnit("a", []byte("{}")) })
	for _, c := range []struct {
		name  string
		files []string
		lost  bool
	}{
		{"all is there", []string{fileName, fileName + "-wal", followingName}, false},
		{"no log", []string{fileName, followingName}, true},
		{"put back, and ended cleanly before", []string{fileName}, false},
		{"nothing but the note", []string{followingName}, false},
	} {
		dir := t.TempDir()
		for _, name := range c.files {
			content, err := os.ReadFile(filepath.Join(killed, name))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, name), content)
		}
		again, err := Open(dir)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if lost := again.LostLog(); (lost != "") != c.lost {
			t.Errorf("%s: said %q", c.name, lost)
		}
		again.Close()
	}
	s.Close()

	// An order that is given while no daemon runs writes the log into the file.
	if err := s.Follow(true); err != nil {
		t.Fatal(err)
	}
	if err := Alone(t.Context(), killed, func(*Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(killed, fileName+"-wal"), nil)
	if err := Alone(t.Context(), killed, func(tx *Tx) error { return tx.PutUnit("b", []byte("{}")) }); err != nil {
		t.Fatal(err)
	}
	if lostLog(killed) {
		t.Error("after an order without a daemon: the log counts as lost")
	}
}

// TestNewerVersionInLog: the version may have been raised without reaching the
// file itself yet.
func TestNewerVersionInLog(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if _, err := s.writer.Exec(fmt.Sprintf(`PRAGMA user_version = %d`, version+1)); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	for _, name := range []string{fileName, fileName + "-wal"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(other, name), content)
	}
	var unusable *Unusable
	for _, open := range []func(string) (*Store, error){Open, OpenReadOnly} {
		if _, err := open(other); !errors.As(err, &unusable) || !regexp.MustCompile("newer version").MatchString(err.Error()) {
			t.Errorf("got %v, want that it is newer", err)
		}
	}
}

// TestHalfMade: a process that died while it made the file leaves no trouble.
func TestHalfMade(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{fileName + ".new", fileName + ".new-wal", fileName + ".new-shm"} {
		write(t, filepath.Join(dir, name), []byte("half"))
	}
	open(t, dir)
	left, err := filepath.Glob(filepath.Join(dir, "*.new*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// foreign is a sound database that is not swell's.
func foreign(t *testing.T) []byte {
	return edited(t, filepath.Join(t.TempDir(), "foreign.db"), `CREATE TABLE units (path TEXT); INSERT INTO units VALUES ('a')`)
}

func withVersion(t *testing.T, dir string, v int) []byte {
	content, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "copy.db")
	write(t, file, content)
	return edited(t, file, fmt.Sprintf(`PRAGMA user_version = %d`, v))
}

func edited(t *testing.T, file, statements string) []byte {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestDiskTroubleIsNoDamage: where SQLite cannot make the files beside the state,
// as on a full disk, nobody is told to throw the state away.
func TestDiskTroubleIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	update(t, s, func(tx *Tx) error { return tx.PutUnit("a", []byte("{}")) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(dir, fileName+"-wal")
	if err := os.Mkdir(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	for what, open := range map[string]func(string) (*Store, error){"for writing": Open, "for reading": OpenReadOnly} {
		_, err := open(dir)
		var unusable *Unusable
		if err == nil || errors.As(err, &unusable) || !strings.Contains(err.Error(), "state.db: cannot be read: ") {
			t.Errorf("%s: got %v, want that it cannot be read", what, err)
		}
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if units, err := open(t, dir).Units(); err != nil || len(units) != 1 {
		t.Errorf("afterwards: %v, %v", units, err)
	}
}
