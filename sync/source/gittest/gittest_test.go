// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package gittest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLikeGit: git itself finds nothing to commit and nothing broken after each of the commits.
func TestLikeGit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	must := func(out string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	if err := Init(dir); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, step := range []struct {
		message string
		change  func() error
	}{
		{"nothing", func() error { return nil }},
		{"files, a program and a link", func() error {
			return errors.Join(os.MkdirAll(file("a/b"), 0o755), os.WriteFile(file("a/b/c"), []byte("c\n"), 0o644),
				os.WriteFile(file(".gitignore"), []byte("ignored\n"), 0o644), os.WriteFile(file("ignored"), nil, 0o644),
				os.WriteFile(file("program"), []byte("#!/bin/sh\n"), 0o755), os.Symlink("a/b", file("link")))
		}},
		{"a folder goes", func() error { return errors.Join(os.RemoveAll(file("a")), os.WriteFile(file("d"), nil, 0o644)) }},
		{"a file goes", func() error { return os.Remove(file("d")) }},
		{"nothing again", func() error { return nil }},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		hash := must(Commit(dir, step.message))
		if head := must(Run(dir, "rev-parse", "main")); head != hash {
			t.Errorf("%s: main is %s, want %s", step.message, head, hash)
		}
		if text := must(Run(dir, "status", "--porcelain")); text != "" {
			t.Errorf("%s: left over: %s", step.message, text)
		}
		must(Run(dir, "fsck", "--strict"))
	}
	const want = "100644 .gitignore\n120000 link\n100755 program"
	if got := must(Run(dir, "ls-tree", "-r", "--format=%(objectmode) %(path)", "main")); got != want {
		t.Errorf("main has\n%s\nwant\n%s", got, want)
	}
	if got, want := must(Run(dir, "log", "--format=%an <%ae> %s", "-1")), "Ada <ada@example.com> nothing again"; got != want {
		t.Errorf("the commit is %q, want %q", got, want)
	}
}
