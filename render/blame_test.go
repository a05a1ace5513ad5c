// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
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
				for _, f := range append(object.Fields, BlamedField{Path: []any{"the object"}, Origins: object.Origins}) {
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

func exists(tree config.Tree, lines map[string]int, at config.Position) error {
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

func TestX(t *testing.T) {
	tree := config.Files(os.DirFS("../testdata/monorepo"))
	var c Compiler
	s := c.Snapshot("", tree)
	for _, p := range []Placed{{"services/shop/cart", "sas-1/rz00a"}, {"services/platform/smoke/canary", "sas-1/rz00a"}, {"services/shop/catalog", "sas-1/rz00a"}} {
		blamed, err := s.Blame(p.Unit, p.Target)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range blamed {
			fmt.Println(o.Object.ID)
			for _, x := range o.Origins {
				fmt.Printf("   %s %s %s %s\n", x.Kind, x.Role, x.Position, x.Text)
			}
			for _, f := range o.Fields {
				fmt.Printf("  %s: %.60v\n", schema.PathText(f.Path), f.Value)
				for _, x := range f.Origins {
					fmt.Printf("      %s %s %s %.70s\n", x.Kind, x.Role, x.Position, x.Text)
				}
			}
		}
	}
}
