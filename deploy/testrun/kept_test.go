// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestKept: a binary is linked again after any change of its packages, and only then. Of each
// package the last one is kept.
func TestKept(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	library := func(body string) string {
		return "package library\n\nimport _ \"embed\"\n\n//go:embed text\nvar text string\n\n" +
			"//go:noinline\nfunc Text() string { return " + body + " }\n"
	}
	write("go.mod", "module kept\n\ngo 1.26.0\n")
	write("library/library.go", library("text"))
	write("library/text", "one")
	write("a/a_test.go", "package a\n\nimport (\n\t\"testing\"\n\n\t\"kept/library\"\n)\n\n"+
		"func TestA(t *testing.T) { println(library.Text()) }\n")
	cache := t.TempDir()
	e := &entry{pkg: "./a", how: computes, budget: 1}
	for _, step := range []struct {
		name   string
		change func()
		linked int
		output string
	}{
		{"first", func() {}, 1, "one"},
		{"again", func() {}, 0, "one"},
		{"a file that is embedded", func() { write("library/text", "two") }, 1, "two"},
		{"the body of a function of another package", func() { write("library/library.go", library("text + text")) }, 1, "twotwo"},
		{"a file that is not in it", func() { write("library/other_test.go", "package library\n") }, 0, "twotwo"},
	} {
		step.change()
		b, dir := batches([]*entry{e})[0], t.TempDir()
		linked, cost, err := b.build(t.Context(), cache, dir)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if linked != step.linked || cost == 0 {
			t.Errorf("%s: %d linked, want %d; in %s", step.name, linked, step.linked, cost)
		}
		if output, err := exec.Command(binary(dir, e)).CombinedOutput(); err != nil || string(output) != step.output+"\nPASS\n" {
			t.Errorf("%s: it prints %q, %v", step.name, output, err)
		}
		if kept, err := filepath.Glob(filepath.Join(cache, "*")); err != nil || len(kept) != 1 {
			t.Errorf("%s: kept %q, %v", step.name, kept, err)
		}
	}
}

// TestKeysTellBinariesApart: a key changes with the packages of its binary, and with no others.
func TestKeysTellBinariesApart(t *testing.T) {
	const listed = "lib\t1\nother\t9\nmain.test\t2\t/m\tlib\nother.test\t3\t/o\tother\ncmd\t4\t/cmd\tlib\n"
	keys := parseKeys(listed)
	if len(keys) != 2 || keys["/m"] == "" || keys["/m"] == keys["/o"] {
		t.Errorf("%q", keys)
	}
	if changed := parseKeys("lib\t7" + listed[5:]); changed["/m"] == keys["/m"] || changed["/o"] != keys["/o"] {
		t.Errorf("%q, then %q", keys, changed)
	}
}
