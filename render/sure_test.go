// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
)

func snapshot(c *Compiler, files fstest.MapFS) *Snapshot {
	return c.Snapshot("", config.Files(maps.Clone(files)))
}

// all is everything that a reader of the snapshot, and of what the compiler
// says of it, can learn, in order. asked are objects to ask about besides those
// that are wanted; what is wanted is added to them.
func all(c *Compiler, s *Snapshot, asked map[object.ID]bool) string {
	var b strings.Builder
	problems := func(what string, list document.Problems) {
		for _, p := range list {
			fmt.Fprintf(&b, "%s %s %s [%s] %v retry %t\n", what, p.Code, p, p.Unit, p.Targets, p.Retry)
		}
	}
	fmt.Fprintf(&b, "held %t retry %t units %d\n", s.Held, s.Retry, s.Units.Len())
	problems("problem", s.Problems)
	for _, unit := range s.Units.Sorted() {
		fmt.Fprintf(&b, "unit %s %s %s\n", unit.Path, unit.Tenant, unit.Rollout)
		problems("  problem", unit.Problems)
		problems("  note", unit.Notes)
		for _, on := range unit.Placements {
			fmt.Fprintf(&b, "  %+v %q %d needs %v\n", *on.Target, on.Digest, on.Objects, on.Needs)
		}
		bundles, err := s.Bundles(unit)
		if err != nil {
			fmt.Fprintln(&b, "  error", err)
		}
		for _, bundle := range bundles {
			fmt.Fprintf(&b, "  on %s %s\n", bundle.Target, bundle.Digest)
			for _, o := range bundle.Objects {
				asked[o.ID] = true
				fmt.Fprintf(&b, "    %s %s %d %s %s %s\n", o.ID, o.Version, o.Phase, o.Spec, o.Template, o.JSON)
			}
		}
	}
	if s.Held {
		return b.String()
	}
	for _, cluster := range s.Repository.Clusters {
		for _, id := range slices.SortedFunc(maps.Keys(asked), object.ID.Compare) {
			if by := c.Wants(cluster.Name, id); len(by) > 0 {
				fmt.Fprintf(&b, "%s %s wanted by %v\n", cluster.Name, id, by)
			}
		}
	}
	return b.String()
}

// differ lists the first lines that only one of two texts has; empty for none.
func differ(want, got string) string {
	if want == got {
		return ""
	}
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b strings.Builder
	only := func(sign string, list, others []string) {
		for _, line := range list {
			if !slices.Contains(others, line) {
				fmt.Fprintf(&b, "%s %s\n", sign, line)
			}
			if b.Len() > 4000 {
				break
			}
		}
	}
	only("-", wants, gots)
	only("+", gots, wants)
	if b.Len() == 0 {
		return "the order of lines\n"
	}
	return b.String()
}

// onDisk writes files to a folder.
func onDisk(tb testing.TB, files fstest.MapFS) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, file := range files {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, file.Data, 0o644)); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}
