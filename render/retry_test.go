// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// flaky is a tree of which one file cannot be read.
type flaky struct {
	config.Tree
	file string
}

func (t flaky) ReadFile(name string) ([]byte, error) {
	if name == t.file {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("input/output error")}
	}
	return t.Tree.ReadFile(name)
}

// TestReadErrorPasses: a read error was remembered for ever, as the content
// addresses of what could not be read stay the same.
func TestReadErrorPasses(t *testing.T) {
	tree := config.Files(exampleFiles(t, "swell.yaml", "fleet", "data", "kinds/runtime", "kinds/space", "services/shop/swell.yaml", "services/shop/cart", "services/shop/space"))
	var good Compiler
	want := good.Snapshot("", tree).text()
	for _, file := range []string{"swell.yaml", "fleet/sas-1.yaml", "kinds/runtime/kind.yaml", "kinds/runtime/runtime.proto",
		"services/shop/swell.yaml", "services/shop/cart/runtime.yaml", "services/shop/cart/cart.toml"} {
		if _, err := tree.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		var c Compiler
		s := c.Snapshot("", flaky{tree, file})
		if !s.Retry || !strings.Contains(s.Problems.String(), "input/output error") {
			t.Errorf("%s: retry %t with %v, want the read error", file, s.Retry, s.Problems)
		}
		if again := c.Snapshot("", tree); again.Retry || len(again.Problems) > 0 {
			t.Errorf("%s, later: retry %t with %v", file, again.Retry, again.Problems)
		} else if diff := cmp.Diff(want, again.text()); diff != "" {
			t.Errorf("%s, later (-want +got):\n%s", file, diff)
		}
	}
}

// TestMissingIsNoReadError: what is not there will not be there the next time.
func TestMissingIsNoReadError(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "data", "kinds", "services")
	delete(files, "services/shop/cart/cart.toml")
	delete(files, "kinds/space/kind.yaml")
	files["services/shop/catalog/swell.yaml"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("../swell.yaml")}
	var c Compiler
	if s := c.Snapshot("", config.Files(files)); s.Retry || len(s.Problems) < 3 {
		t.Errorf("retry %t with %v", s.Retry, s.Problems)
	}
}

// TestDefaultsLink: a swell.yaml that is a link was taken for none by the units
// below it.
func TestDefaultsLink(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "data", "kinds", "services")
	var c Compiler
	c.Snapshot("", config.Files(files))
	linked := maps.Clone(files)
	linked["services/shop/swell.yaml"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("../pay/swell.yaml")}
	s := c.Snapshot("", config.Files(linked))
	for path, unit := range s.Units.All() {
		if frozen := len(unit.Problems) > 0; frozen != strings.HasPrefix(string(path), "services/shop/") {
			t.Errorf("%s: frozen %t: %v", path, frozen, unit.Problems)
		}
	}
	if again := c.Snapshot("", config.Files(files)); len(again.Problems) > 0 {
		t.Error(again.Problems)
	}
}

// TestKindTwice: of a kind that is defined twice, the first one won.
func TestKindTwice(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "data", "kinds", "services")
	for _, name := range []string{"again", "more"} {
		files["kinds/"+name+"/kind.yaml"] = files["kinds/space/kind.yaml"]
		files["kinds/"+name+"/"+name+".proto"] = files["kinds/space/space.proto"]
	}
	var c Compiler
	s := c.Snapshot("", config.Files(files))
	for path, unit := range s.Units.All() {
		if frozen := len(unit.Problems) > 0; frozen != (strings.HasSuffix(string(path), "/space") || path == "services/platform/smoke/canary" || path == "services/travel/booking") {
			t.Errorf("%s: frozen %t: %v", path, frozen, unit.Problems)
		}
	}
	if text := s.Problems.String(); strings.Count(text, "defined twice, first in kinds/again") != 2 {
		t.Errorf("got %s", text)
	}
}
