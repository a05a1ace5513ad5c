// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestParsePlan(t *testing.T) {
	all, err := parsePlan(strings.NewReader("# a comment\n\n./sync servers 90 -test.parallel=8 # waits\n./sync race 60 -test.short\n"))
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	e := all[0]
	if e.pkg != "./sync" || e.how != withServers || e.budget != 90 || !slices.Equal(e.flags, []string{"-test.parallel=8"}) {
		t.Errorf("%+v", e)
	}
	for text, want := range map[string]string{
		"./sync plain":                    "want PACKAGE HOW SECONDS",
		"sync plain 1":                    `"sync": want a package like "./sync"`,
		"./sync often 1":                  `"often": want servers, plain, race or quick`,
		"./sync plain 0":                  `"0": want CPU seconds`,
		"\n./a plain 1\n./a plain 2":      "test.plan:3: ./a plain has a line already",
		"./sync plain x\n./sync plain -1": "test.plan:2",
	} {
		if _, err := parsePlan(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestServed: the servers are there for all lines that use them.
func TestServed(t *testing.T) {
	all, err := parsePlan(strings.NewReader("./a race 1\n./a servers 1\n./b servers 1\n./b race 1 -test.short\n./c race 1\n./d plain 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	var served []string
	for _, e := range all {
		if e.needs() > 0 {
			served = append(served, e.name())
		}
	}
	if want := []string{"a (race)", "a", "b"}; !slices.Equal(served, want) {
		t.Errorf("%q, want %q", served, want)
	}
}

func TestComplete(t *testing.T) {
	planned := []entry{{pkg: "./a", how: withRace, budget: 5}, {pkg: "./b", how: quick, budget: 5}}
	all, err := complete(planned, []string{"./a", "./b", "./c"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range all[2:] {
		got = append(got, e.pkg+" "+e.how)
	}
	if want := []string{"./b plain", "./c plain"}; !slices.Equal(got, want) {
		t.Errorf("added %q, want %q", got, want)
	}
	if _, err := complete(planned, []string{"./a"}); err == nil || !strings.Contains(err.Error(), "./b has no tests") {
		t.Errorf("a line for no tests: %v", err)
	}
}

// TestPlan: the plan of this repository names packages with tests, and each package once.
func TestPlan(t *testing.T) {
	t.Chdir("../..")
	entries, err := chosen(t.Context(), []string{withServers, computes, withRace}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{"./config", "./sync", "./cmd/swell", "./deploy/testrun"} {
		if !slices.ContainsFunc(entries, func(e *entry) bool { return e.pkg == pkg && e.how != withRace }) {
			t.Errorf("%s is not run", pkg)
		}
	}
	_, err = chosen(t.Context(), []string{computes}, []string{"./nowhere"})
	if err == nil || !strings.Contains(err.Error(), "./nowhere: no package with tests") {
		t.Errorf("a package that is not there: %v", err)
	}
}

func TestIsOf(t *testing.T) {
	e := entry{pkg: "./sync/apply"}
	for typed, want := range map[string]bool{
		"./sync/apply": true, "sync/apply": true, "sync/apply/": true, "./sync/...": true, "sync/apply/...": true,
		"./sync": false, "apply": false, "./sync/app/...": false,
	} {
		if e.isOf(typed) != want {
			t.Errorf("%s: %t", typed, !want)
		}
	}
}

// TestBatches: what waits for servers is built first, and no batch has two binaries of one name.
func TestBatches(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, module := range []string{"deploy/tool", "."} {
		if err := os.MkdirAll(module, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(module+"/go.mod", nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	entries := []*entry{
		{pkg: "./deploy/tool", how: computes, budget: 99}, {pkg: "./a/x", how: computes, budget: 5}, {pkg: "./b/x", how: computes, budget: 9},
		{pkg: "./s", how: withServers, budget: 1}, {pkg: "./r", how: withRace, budget: 50},
	}
	var got []string
	for _, b := range batches(entries) {
		var names []string
		for _, e := range b.entries {
			names = append(names, e.pkg)
		}
		got = append(got, b.module+" "+b.how+" "+strings.Join(names, " "))
	}
	want := []string{". servers ./s", ". plain ./b/x", ". plain ./a/x", ". race ./r", "./deploy/tool plain ./deploy/tool"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := binary("out", entries[0]); got != "out/tool.test" {
		t.Errorf("a module's own package is built as %s", got)
	}
}

func TestMissingParts(t *testing.T) {
	missing := missingParts(needed, func(name string) bool { return name != "promtool" && name != "prometheus" && name != "gcc" })
	if got := installCommand(missing); got != "apt-get update && apt-get install -y gcc libc6-dev prometheus" {
		t.Error(got)
	}
}
