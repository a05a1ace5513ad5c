// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// TestOneOfMany: one spec and one target were "1 specs" and "1 targets".
func TestOneOfMany(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
	for name, text := range map[string]string{
		"kinds/space/kind.yaml":   string(files["kinds/space/kind.yaml"].Data) + "  - {id: quota, template: {}}\n",
		"services/a/swell.yaml":   defaultsOf("tenant: a\n  placement: {topology: cluster, match: {labels: {region: sas}}}"),
		"services/a/space/x.yaml": easySpec("Space", "x", "{}"),
		"services/a/none/x.yaml":  easySpec("Runtime", "x", "{image: x, replicas: {mars: 1}}"),
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	got := map[string]string{}
	for _, p := range new(Compiler).Snapshot("", config.Files(files)).Problems {
		got[p.File] = p.Message
	}
	delete(got, "kinds/space/kind.yaml") // why it does not load
	want := map[string]string{
		"kinds/space":     "the kind does not load: its 1 spec keeps its last good bundles",
		"services/a/none": "the unit renders to nothing on its 1 target; remove the folder to remove the unit",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
