// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestWhatIsSaidToBeTested is: the tests that testdata/faults.md and
// testdata/track-record.md name are there.
func TestWhatIsSaidToBeTested(t *testing.T) {
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(root, path)
		for _, m := range function.FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)\\w+)")
	for _, file := range []string{"testdata/faults.md", "testdata/track-record.md"} {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			t.Fatal(err)
		}
		found := named.FindAllSubmatch(text, -1)
		if len(found) < 20 {
			t.Errorf("%s names %d tests", file, len(found))
		}
		for _, m := range found {
			if !there[string(m[1])] {
				t.Errorf("%s names %s, which is not there", file, m[1])
			}
		}
	}
}
