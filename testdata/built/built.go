// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package built finds the programs that make builds for tests. It starts none of them.
package built

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Program is a program in bin at the module's root. Where it is missing, the test is
// skipped; in CI it fails.
func Program(t testing.TB, name string) string {
	t.Helper()
	root, err := moduleRoot()
	program := filepath.Join(root, "bin", name)
	if err == nil {
		_, err = os.Stat(program)
	}
	switch {
	case err == nil:
		return program
	case os.Getenv("CI") != "":
		t.Fatalf("%v: make bin/%s builds it", err, name)
	}
	t.Skipf("%v: make bin/%s builds it", err, name)
	return ""
}

// moduleRoot is the folder around the test that has a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod around the test")
		}
		dir = filepath.Dir(dir)
	}
}
