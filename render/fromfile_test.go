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

// TestFromFileLink: a symbolic link to a file is followed where fromFile names it, also from
// a list of files, and the unit is rendered again when that file changes. A link to a folder
// on the way is not followed, nor is one out of the tree.
func TestFromFileLink(t *testing.T) {
	for name, want := range map[string]string{
		"conf/link.toml":  "",
		"linked/app.toml": `a symbolic link: only plain files and folders are read`,
		"conf/out.toml":   `a symbolic link to "../../../../../etc/passwd": it leads out of the monorepo`,
	} {
		files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
		files["services/a/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec:\n  tenant: a\n  placement: {match: {labels: {region: sas}}}\n")}
		files["services/a/one/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: easy.example.com/v1\nkind: Runtime\nmetadata: {name: one}\nspec:\n  image: x\n  replicas: {sas: 1}\n  config: {fromFile: " + name + "}\n")}
		files["services/a/secret/app.toml"] = &fstest.MapFile{Data: []byte("hunter2")}
		files["services/a/one/conf/link.toml"] = &fstest.MapFile{Data: []byte("../../secret/app.toml"), Mode: fs.ModeSymlink}
		files["services/a/one/conf/out.toml"] = &fstest.MapFile{Data: []byte("../../../../../etc/passwd"), Mode: fs.ModeSymlink}
		files["services/a/one/link"] = &fstest.MapFile{Data: []byte("../secret/app.toml"), Mode: fs.ModeSymlink}
		if want != "" {
			files["services/a/one/linked"] = &fstest.MapFile{Data: []byte("../secret"), Mode: fs.ModeSymlink}
		}
		var c Compiler
		s := c.Snapshot("", config.Files(maps.Clone(files)))
		unit := s.Units.Get("services/a/one")
		if want == "" {
			if len(unit.Problems) > 0 {
				t.Fatal(unit.Problems)
			}
			text := func(s *Snapshot) string {
				b, err := s.Bundle("services/a/one", "sas-1/rz00a")
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range b.Objects {
					if o.ID.Kind == "ConfigMap" {
						return string(o.JSON)
					}
				}
				return ""
			}
			if got := text(s); !strings.Contains(got, "hunter2") {
				t.Errorf("got %s", got)
			}
			files["services/a/secret/app.toml"] = &fstest.MapFile{Data: []byte("hunter3")}
			if got := text(c.Snapshot("", config.Files(maps.Clone(files)))); !strings.Contains(got, "hunter3") {
				t.Errorf("after a change of the file that the link leads to: %s", got)
			}
			continue
		}
		const once = `services/a/one/linked: a symbolic link to "../secret": links to files are followed, links to folders are not`
		if all := s.Problems.String(); strings.Count(all, once) != 1 || strings.Contains(all, "holds") { // the unit that stands for the link is nobody's to see
			t.Errorf("got %s\nwant once %s", all, once)
		}
		line := `services/a/one/x.yaml:7:22: spec.config.fromFile: "` + name + `": ` + want
		if got := unit.Problems.String(); !strings.Contains(got, line) || strings.Contains(got, "hunter2") {
			t.Errorf("got %s\nwant %s", got, line)
		}
	}
}
