// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	namedFile = regexp.MustCompile(`\btestdata/[a-z]+/[a-z-]+\.txtar`)
	testFunc  = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
)

// TestThreatModelNamesTests: what the threat model says holds a wall is there, and each attack has one.
func TestThreatModelNamesTests(t *testing.T) {
	page := readFile(t, "../../docs/threat-model.md")
	existing := map[string]bool{}
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		for _, match := range testFunc.FindAllStringSubmatch(readFile(t, name), -1) {
			existing[match[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	attacks := 0
	for i, line := range strings.Split(page, "\n") {
		tests, files := namedTest.FindAllStringSubmatch(line, -1), namedFile.FindAllString(line, -1)
		for _, match := range tests {
			if !existing[match[1]] {
				t.Errorf("docs/threat-model.md:%d: there is no %s", i+1, match[1])
			}
		}
		for _, file := range files {
			_, root := os.Stat("../../" + file)
			if _, here := os.Stat(file); here != nil && root != nil {
				t.Errorf("docs/threat-model.md:%d: there is no %s", i+1, file)
			}
		}
		if isRow := strings.HasPrefix(line, "| ") && line != "| attack | what stops it | test |"; isRow {
			if attacks++; len(tests)+len(files) == 0 {
				t.Errorf("docs/threat-model.md:%d: an attack without a test", i+1)
			}
		}
	}
	if attacks < 30 {
		t.Errorf("%d attacks", attacks)
	}
}
