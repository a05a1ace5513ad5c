// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/blame"
	"github.com/swell-sh/swell/render/schema"
)

// TestBlameExample: every field of every object of the example has an origin
// that exists, and what is blamed is what is rendered.
func TestBlameExample(t *testing.T) {
	tree := config.Files(os.DirFS("../testdata/monorepo"))
	var c Compiler
	s := c.Snapshot("", tree)
	if len(s.Problems) > 0 {
		t.Fatal(s.Problems)
	}
	lines := map[string]int{}
	fields := 0
	for _, unit := range s.Units.Sorted() {
		for _, on := range unit.Placements {
			bundle, err := s.Bundle(unit.Path, on.Target.Name)
			if err != nil {
				t.Fatal(err)
			}
			blamed, err := s.Blame(unit.Path, on.Target.Name)
			if err != nil {
				t.Fatal(err)
			}
			if bundle == nil {
				if len(blamed) > 0 {
					t.Errorf("%s on %s: %d objects are blamed, none is rendered", unit.Path, on.Target.Name, len(blamed))
				}
				continue
			}
			if len(blamed) != len(bundle.Objects) {
				t.Fatalf("%s on %s: %d objects are blamed, want %d", unit.Path, on.Target.Name, len(blamed), len(bundle.Objects))
			}
			for i, object := range blamed {
				if !bytes.Equal(object.Object.JSON, bundle.Objects[i].JSON) {
					t.Fatalf("%s on %s: %s is not what is rendered", unit.Path, on.Target.Name, object.Object.ID)
				}
				if n := leaves(t, object.Object.JSON); n != len(object.Fields) {
					t.Errorf("%s: %d fields, want %d", object.Object.ID, len(object.Fields), n)
				}
				for _, f := range append(object.Fields, blame.Field{Path: []any{"the object"}, Origins: object.Origins}) {
					fields++
					if len(f.Origins) == 0 {
						t.Errorf("%s %s: no origin", object.Object.ID, schema.PathText(f.Path))
					}
					for _, o := range f.Origins {
						if err := exists(tree, lines, o.Position); err != nil {
							t.Errorf("%s %s: %s: %s", object.Object.ID, schema.PathText(f.Path), o.Kind, err)
						}
					}
				}
			}
		}
	}
	if fields < 1000 {
		t.Errorf("%d fields were looked at", fields)
	}
}

// leaves counts the scalars, and the empty mappings and lists, of an object.
func leaves(t *testing.T, text []byte) int {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	var count func(value any) int
	count = func(value any) int {
		n := 0
		switch v := value.(type) {
		case map[string]any:
			for _, item := range v {
				n += count(item)
			}
		case []any:
			for _, item := range v {
				n += count(item)
			}
		default:
			return 1
		}
		return max(n, 1)
	}
	return count(value)
}

func exists(tree config.Tree, lines map[string]int, at document.Position) error {
	if _, known := lines[at.File]; !known {
		content, err := tree.ReadFile(at.File)
		if err != nil {
			return err
		}
		lines[at.File] = strings.Count(string(content), "\n")
	}
	if at.Line < 1 || at.Line > lines[at.File] {
		return fmt.Errorf("%s: the file has %d lines", at, lines[at.File])
	}
	return nil
}

// TestBlame holds what is blamed in small monorepos against the list at the end
// of each archive: a field and its value, and below it its origins. What swell
// adds by itself, and apiVersion and kind, are left out.
func TestBlame(t *testing.T) {
	files, err := filepath.Glob("testdata/blame/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no archives", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tree := fstest.MapFS{}
			want := -1
			for i, f := range archive.Files {
				if f.Name == "want" {
					want = i
					continue
				}
				tree[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			var c Compiler
			s := c.Snapshot("", config.Files(tree))
			if len(s.Problems) > 0 {
				t.Fatal(s.Problems)
			}
			got := blameList(t, s)
			if *update {
				if want < 0 {
					want = len(archive.Files)
					archive.Files = append(archive.Files, txtar.File{Name: "want"})
				}
				archive.Files[want].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want < 0 {
				t.Fatal("no list")
			}
			if diff := cmp.Diff(string(archive.Files[want].Data), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func blameList(t *testing.T, s *Snapshot) string {
	t.Helper()
	var b strings.Builder
	list := func(origins []blame.Origin) {
		for _, o := range origins {
			fmt.Fprintf(&b, "    %s %s %s %s\n", o.Role, o.Kind, document.Position{File: o.File, Line: o.Line}, o.Text)
		}
	}
	for _, unit := range s.Units.Sorted() {
		for _, on := range unit.Placements {
			blamed, err := s.Blame(unit.Path, on.Target.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range blamed {
				fmt.Fprintln(&b, object.Object.ID)
				list(object.Origins)
				for _, f := range object.Fields {
					if len(f.Path) == 1 || f.Origins[0].Kind == blame.FromSwell {
						continue
					}
					fmt.Fprintf(&b, "  %s: %q\n", schema.PathText(f.Path), fmt.Sprint(f.Value))
					list(f.Origins)
				}
			}
		}
	}
	return b.String()
}
