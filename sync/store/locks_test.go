// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
)

// TestOrderOfAnotherProcess: what another process writes leaves the log of this one
// alone. Whoever closes last
// removes the log, unless the locks of another process say that it is not the last.
func TestOrderOfAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	put := func(name string) error {
		return s.Update(t.Context(), func(tx *Tx) error { return tx.PutUnit(config.UnitPath("services/"+name), []byte("{}")) })
	}
	if err := errors.Join(put("before"), s.Intact()); err != nil {
		t.Fatal(err)
	}
	if s.opened.mark == "" {
		t.Fatal("no mark is looked for")
	}
	log := filepath.Join(dir, fileName+"-wal")
	was, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), orderedIn+"="+dir)
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "<nil>" {
			t.Fatalf("the order: %v: %s", err, out)
		}
		if is, err := os.Stat(log); err != nil || !os.SameFile(was, is) {
			t.Fatalf("the log was removed under the store: %v", err)
		}
		if err := errors.Join(s.Intact(), put(fmt.Sprint("after-", i))); err != nil {
			t.Fatal(err)
		}
	}
	if orders, err := s.Orders(); err != nil || len(orders) != 2 {
		t.Errorf("%d orders, %v", len(orders), err)
	}
	other, err := OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if units, err := other.Units(); err != nil || len(units) != 3 {
		t.Errorf("%d units are read elsewhere, %v", len(units), err)
	}
}
