// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Holder identifies a process that works with a state or with a copy of it.
type Holder struct {
	// State is a random name that a state has from its beginning. Copies share it.
	State string
	// Process is a random name of this process.
	Process string
	// Before are the names of earlier processes that worked with this very file
	// since the machine was started, the newest first. They are gone: the lock
	// lets in one at a time. In a copy, or on another machine, there are none.
	Before []string
}

// maxBefore bounds how many earlier processes are remembered.
const maxBefore = 32

// Hold notes that this process works with the state from now on, and returns who
// it is.
func (s *Store) Hold(ctx context.Context) (Holder, error) {
	place, err := s.place()
	if err != nil {
		return Holder{}, err
	}
	h := Holder{Process: strings.ToLower(rand.Text())}
	var was, before string
	err = s.reader.QueryRow(`SELECT state, place, processes FROM holder`).Scan(&h.State, &was, &before)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		h.State = strings.ToLower(rand.Text())[:8]
	case err != nil:
		return Holder{}, fmt.Errorf("read state: %w", err)
	case was == place:
		h.Before = strings.Fields(before)
	}
	h.Before = h.Before[:min(len(h.Before), maxBefore)]
	err = s.Update(ctx, func(tx *Tx) error {
		if err := tx.exec(`DELETE FROM holder`); err != nil {
			return err
		}
		return tx.exec(`INSERT INTO holder (state, place, processes) VALUES (?, ?, ?)`, h.State, place, strings.TrimSpace(h.Process+" "+strings.Join(h.Before, " ")))
	})
	if err == nil {
		err = s.setMark(h.Process)
	}
	return h, err
}

// place is where the file is: the machine since it was started, and the file on
// it. A copy is elsewhere.
func (s *Store) place() (string, error) {
	machine, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil { // not Linux
		name, err := os.Hostname()
		if err != nil {
			return "", err
		}
		machine = []byte(name)
	}
	info, err := os.Stat(filepath.Join(s.dir, fileName))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(machine)) + " " + fileNumber(info), nil
}
