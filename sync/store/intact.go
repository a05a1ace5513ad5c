// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Replaced means that the state in the folder is not the one that was opened any
// more: the folder or a file was removed, renamed, or replaced by a copy. The memory of
// the process may be newer or older than the files.
type Replaced struct {
	File   string
	Reason string
}

func (e *Replaced) Error() string {
	return fmt.Sprintf("%s: %s while swell was at work with it: nothing more is written to any cluster; make sure that one swell uses "+
		"the folder, put back what was there or leave what is there now, and start swell again: it notices what the clusters know better", e.File, e.Reason)
}

// opened identifies the files of the state as they were when they were opened.
type opened struct {
	files map[string]fs.FileInfo // by path
	// mark is a text that is in the file at the offset at, unless somebody wrote
	// over the file. Empty: none.
	mark string
	at   int64
}

// remember notes which files these are.
func (s *Store) remember() error {
	s.opened.files = map[string]fs.FileInfo{}
	for _, name := range []string{fileName, fileName + "-wal", lockName} {
		file := filepath.Join(s.dir, name)
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) && name == fileName+"-wal" {
			continue
		}
		if err != nil {
			return err
		}
		s.opened.files[file] = info
	}
	return nil
}

// setMark has a text that the file holds found again where it is now. It is in no
// hurry: where others read the file, there is none.
func (s *Store) setMark(text string) error {
	var busy, log, done int
	if err := s.writer.DB.QueryRow(`PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &done); err != nil || busy != 0 {
		return err
	}
	at, err := find(s.file, []byte(text))
	if err == nil && at >= 0 {
		s.opened.mark, s.opened.at = text, at
	}
	return err
}

// find is where a text begins in a file, or -1. It reads the file in pieces.
func find(file io.ReaderAt, text []byte) (int64, error) {
	piece := make([]byte, 1<<20)
	for from := int64(0); ; {
		n, err := file.ReadAt(piece, from)
		if at := bytes.Index(piece[:n], text); at >= 0 {
			return from + int64(at), nil
		}
		if errors.Is(err, io.EOF) {
			return -1, nil
		}
		if err != nil {
			return -1, err
		}
		from += int64(n - len(text) + 1) // it may begin at the end of this piece
	}
}

// Intact says whether the state is still the one that was opened; the error is a
// [Replaced] when it is not. It costs four system calls, and opens no file: see
// [Store].
func (s *Store) Intact() error {
	for _, file := range slices.Sorted(maps.Keys(s.opened.files)) { // the log goes with its file, which comes first
		switch now, err := os.Stat(file); {
		case errors.Is(err, fs.ErrNotExist):
			return &Replaced{file, "was removed or renamed"}
		case err != nil:
			return err
		case !os.SameFile(s.opened.files[file], now):
			return &Replaced{file, "was replaced by another file"}
		}
	}
	if s.opened.mark == "" {
		return nil
	}
	is := make([]byte, len(s.opened.mark))
	if n, err := s.file.ReadAt(is, s.opened.at); n < len(is) || string(is) != s.opened.mark {
		return errors.Join(&Replaced{filepath.Join(s.dir, fileName), "was written over"}, err)
	}
	return nil
}
