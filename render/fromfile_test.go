// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
)

// TestFromFileLink: a symbolic link named by fromFile is not followed, neither
// as the file nor on the way to it.
func TestFromFileLink(t *testing.T) {
	for _, name := range []string{"conf/link.toml", "linked/app.toml"} {
		files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
		files["services/a/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec:\n  tenant: a\n  placement: {match: {labels: {region: sas}}}\n")}
		files["services/a/one/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: easy.example.com/v1\nkind: Runtime\nmetadata: {name: one}\nspec:\n  image: x\n  replicas: {sas: 1}\n  config: {fromFile: " + name + "}\n")}
		files["services/a/secret/app.toml"] = &fstest.MapFile{Data: []byte("hunter2")}
		files["services/a/one/conf/link.toml"] = &fstest.MapFile{Data: []byte("../../secret/app.toml"), Mode: fs.ModeSymlink}
		files["services/a/one/linked"] = &fstest.MapFile{Data: []byte("../secret"), Mode: fs.ModeSymlink}
		var c Compiler
		s := c.Snapshot("", config.Files(files))
		unit := s.Units.Get("services/a/one")
		const once = "services/a/one/linked: a symbolic link: only plain files and folders may be in a unit"
		if all := s.Problems.String(); strings.Count(all, once) != 1 || strings.Contains(all, "holds") { // the unit that stands for the link is nobody's to see
			t.Errorf("got %s\nwant once %s", all, once)
		}
		want := `services/a/one/x.yaml:7:22: spec.config.fromFile: "` + name + `": a symbolic link: only plain files and folders are read`
		if got := unit.Problems.String(); !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}
