// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/helm"
)

// exampleFiles is the example monorepo without its units.
func exampleFiles(t testing.TB, folders ...string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, folder := range folders {
		err := filepath.WalkDir("../testdata/monorepo/"+folder, func(name string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			content, err := os.ReadFile(name)
			files[strings.TrimPrefix(name, "../testdata/monorepo/")] = &fstest.MapFile{Data: content}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// expectation is a `### "regexp"` on the line that a problem must be at.
type expectation struct {
	file string
	line int
	text *regexp.Regexp
}

func (e expectation) String() string { return fmt.Sprintf("%s:%d: %s", e.file, e.line, e.text) }

var (
	expectMark = regexp.MustCompile(`### (".*")\s*$`)
	expectText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

func expectations(t *testing.T, file string, content []byte) []expectation {
	var all []expectation
	for i, line := range strings.Split(string(content), "\n") {
		m := expectMark.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, quoted := range expectText.FindAllString(m[1], -1) {
			text := strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
			all = append(all, expectation{file, i + 1, regexp.MustCompile(text)})
		}
	}
	return all
}

// TestBad renders the example with each archive of testdata/bad laid over it.
// Every expected problem must be there, at its line, and no other.
func TestBad(t *testing.T) {
	archives, err := filepath.Glob("../testdata/bad/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	charts := &helm.Renderer{}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
			files["services/.keep"] = &fstest.MapFile{}
			var want []expectation
			for _, f := range archive.Files {
				files[f.Name] = &fstest.MapFile{Data: f.Data}
				want = append(want, expectations(t, f.Name, f.Data)...)
			}
			c := Compiler{Charts: charts}
			s := c.Snapshot("", config.Files(files))
			for _, p := range s.Problems {
				if p.Line == 0 && p.Code == document.CodeKind {
					continue // the count of specs that wait for a kind
				}
				i := slices.IndexFunc(want, func(e expectation) bool {
					return e.file == p.File && (e.line == p.Line || p.Line == 0) && e.text.MatchString(p.String())
				})
				if i < 0 {
					t.Errorf("not expected: %s", p)
					continue
				}
				want = slices.Delete(want, i, i+1)
			}
			for _, e := range want {
				t.Errorf("missing: %s", e)
			}
			if t.Failed() {
				t.Log("all problems:\n" + s.Problems.String())
			}
		})
	}
}
