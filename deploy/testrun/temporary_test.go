// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestUseMemory(t *testing.T) {
	t.Setenv("TMPDIR", "/somewhere")
	if _, err := useMemory(); err != nil || os.Getenv("TMPDIR") != "/somewhere" {
		t.Errorf("what somebody has set is now %q, %v", os.Getenv("TMPDIR"), err)
	}
	t.Setenv("TMPDIR", "")
	remove, err := useMemory()
	if err != nil {
		t.Fatal(err)
	}
	dir := os.Getenv("TMPDIR")
	if dir == "" {
		t.Skip("there is no room in memory")
	}
	if info, err := os.Stat(dir); err != nil || filepath.Dir(dir) != memoryFolder || info.Mode().Perm() != 0o777 {
		t.Errorf("temporary files are in %s: %v, %v", dir, info, err)
	}
	if remove(); exists(dir) {
		t.Errorf("%s is still there", dir)
	}
}

// TestForgetRuns: the folder of a run that is under way stays, and so does all else.
func TestForgetRuns(t *testing.T) {
	dir := t.TempDir()
	killed, running, other := filepath.Join(dir, runPrefix+"1"), filepath.Join(dir, runPrefix+"2"), filepath.Join(dir, "other")
	long := time.Now().Add(-25 * time.Hour)
	for _, name := range []string{killed, running, other} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{killed, other} {
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := forgetRuns(dir); err != nil || exists(killed) || !exists(running) || !exists(other) {
		t.Errorf("killed %t, running %t, other %t, %v", exists(killed), exists(running), exists(other), err)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
