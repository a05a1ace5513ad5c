// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
)

// TestHiddenDocuments: documents that a problem of their unit may hide went out
// of collections without a word, and with them out of the fleet.
func TestHiddenDocuments(t *testing.T) {
	linked := with(richFiles(), map[string]string{"services/shop/cart/pipe.yaml": ""})
	linked["services/shop/cart/pipe.yaml"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("../x")}
	folder := richFiles()
	maps.DeleteFunc(folder, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, "services/shop/cart/") })
	folder["services/shop/cart"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("../x")}
	cases := map[string]fstest.MapFS{"a link instead of the file": linked, "a link instead of the unit": folder}
	for name, change := range map[string]map[string]string{
		"no valid YAML":       {"services/shop/cart/pipe.yaml": "apiVersion: easy.example.com/v1\nkind: Pipe\nx: [\n"},
		"broken Defaults":     {"services/shop/cart/swell.yaml": "x: [\n"},
		"a broken spec":       {"services/shop/cart/pipe.yaml": easySpec("Pipe", "cart", "{sorce: x}")},
		"broken at one place": {"services/shop/swell.yaml": defaultsOf("tenant: shop\n  placement: {topology: x}")},
	} {
		cases[name] = with(richFiles(), change)
	}
	for name, files := range cases {
		var c Compiler
		s := snapshot(&c, files)
		vector, gather := s.Units.Get("services/platform/vector"), s.Units.Get("services/shop/gather")
		if len(vector.Problems) > 0 || len(vector.Notes) == 0 || vector.Placements[0].Digest == "" {
			t.Errorf("%s: excluding: problems %v, notes %v; want a note", name, vector.Problems, vector.Notes)
		}
		if len(gather.Problems) == 0 {
			t.Errorf("%s: holding: no problem", name)
		}
		if s.Retry {
			t.Errorf("%s: to be tried again, though nothing would differ", name)
		}
		if again := snapshot(&c, files); again.Rendered > 0 {
			t.Errorf("%s: another time %d units are rendered", name, again.Rendered)
		}
		restarted := Compiler{Cache: c.Cache}
		after := snapshot(&restarted, files)
		if notes := after.Units.Get("services/platform/vector").Notes; notes.String() != vector.Notes.String() {
			t.Errorf("%s: after a restart the notes are %v, want %v", name, notes, vector.Notes)
		}
		if problems := after.Units.Get("services/shop/gather").Problems; problems.String() != gather.Problems.String() {
			t.Errorf("%s: after a restart the problems are %v, want %v", name, problems, gather.Problems)
		}
	}
}

// TestUnreadDocuments: what could not be read is not left out, the collection
// waits for it.
func TestUnreadDocuments(t *testing.T) {
	tree := config.Files(richFiles())
	for _, start := range []bool{false, true} {
		var c Compiler
		if start {
			c.Snapshot("", tree)
		}
		files := with(richFiles(), map[string]string{"services/shop/cart/pipe.yaml": easySpec("Pipe", "cart", "{source: other}")})
		s := c.Snapshot("", flaky{config.Files(files), "services/shop/cart/pipe.yaml"})
		vector := s.Units.Get("services/platform/vector")
		if !s.Retry || !strings.Contains(vector.Problems.String(), "could not be read") {
			t.Errorf("retry %t with %v, want a collection that waits", s.Retry, vector.Problems)
		}
		if s := snapshot(&c, files); s.Retry || len(s.Problems) > 0 {
			t.Errorf("later: %v", s.Problems)
		}
	}
}
