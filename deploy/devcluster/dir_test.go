// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "dir")
	d, lock, err := openDir(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := openDir(dir, true); err == nil || !strings.Contains(err.Error(), "in use by another devcluster") {
		t.Errorf("a second run in one folder: %v", err)
	}
	touch(t, d.etcd(), "member")
	touch(t, string(d), "dev-1-audit.log")
	touch(t, string(d), "notes.txt")
	lock.Close()

	if _, _, err := openDir(dir, false); err == nil || !strings.Contains(err.Error(), "add --reset to throw it away") {
		t.Errorf("state of an earlier run: %v", err)
	}
	_, lock, err = openDir(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for path, want := range map[string]bool{
		"etcd/member": false, "dev-1-audit.log": false, // ours
		"notes.txt": true, // not ours
	} {
		if _, err := os.Stat(filepath.Join(dir, path)); (err == nil) != want {
			t.Errorf("%s after --reset: exists is %v, want %v", path, err == nil, want)
		}
	}
}

// TestOpenDirForeign guards "--reset --dir /var/lib": what another program made
// under one of our names stays.
func TestOpenDirForeign(t *testing.T) {
	dir := t.TempDir()
	logs := filepath.Join(dir, "logs")
	touch(t, logs, "precious")
	for range 2 { // the refusal must not make the folder ours
		_, _, err := openDir(dir, true)
		if err == nil || !strings.Contains(err.Error(), "not made by devcluster") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(logs, "precious")); err != nil {
		t.Error(err)
	}
}

// touch makes an empty file, and the folder for it.
func touch(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestInherited: a component inherits no other variable, which could change what it does.
func TestInherited(t *testing.T) {
	t.Setenv("PATH", "/bin")
	t.Setenv("GOGC", "400")
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv("KUBECONFIG", "/elsewhere")
	if got, want := strings.Join(inherited(), " "), "PATH=/bin GOGC=400"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
