// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/cache"
)

// TestForeignFiles: files for other programs are left out; a document that lacks one of its
// fields is a mistake all the same.
func TestForeignFiles(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop}\n"
	for name, test := range map[string]struct {
		files   map[string]string
		foreign []string
		void    bool
		problem string
	}{
		"values beside an object": {map[string]string{"x.yaml": object, "values.yaml": "image: {deep: {kind: x}}\nreplicas: 2\n"}, []string{"services/shop/notes/values.yaml"}, false, ""},
		"nothing but values":      {map[string]string{"values.yaml": "a: b\n---\n- c\n", "mkdocs.yml": "nav: []\n"}, []string{"services/shop/notes/mkdocs.yml", "services/shop/notes/values.yaml"}, true, ""},
		"what somebody broke":     {map[string]string{"x.yaml": object, "y.yaml": "a: [b\n"}, nil, false, "not valid YAML: did not find expected ',' or ']'"},
		"no kind":                 {map[string]string{"x.yaml": object, "y.yaml": "apiVersion: v1\nmetadata: {name: x}\n"}, nil, false, "kind: missing, every document needs an apiVersion and a kind"},
		"one of two":              {map[string]string{"x.yaml": object + "---\na: b\n"}, nil, false, "apiVersion: missing, every document needs an apiVersion and a kind"},
	} {
		t.Run(name, func(t *testing.T) {
			files := exampleFiles(t, "swell.yaml", "fleet", "services/shop/swell.yaml")
			for file, content := range test.files {
				files["services/shop/notes/"+file] = &fstest.MapFile{Data: []byte(content)}
			}
			files["services/shop/notes/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: notes}\nspec: {placement: {topology: cluster, match: {labels: {region: sas}}}}\n")}
			store := cache.Memory()
			for _, again := range []string{"rendered", "from the cache"} {
				c := Compiler{Cache: store}
				unit := c.Snapshot("", config.Files(files)).Units.Get("services/shop/notes")
				if !slices.Equal(unit.Foreign, test.foreign) || unit.Void != test.void {
					t.Errorf("%s: left out %v, void %v", again, unit.Foreign, unit.Void)
				}
				if wrong := len(unit.Problems) > 0; wrong != (test.problem != "") || wrong && !strings.HasPrefix(unit.Problems[0].Message, test.problem) {
					t.Errorf("%s: problems %v, want %q", again, unit.Problems, test.problem)
				}
			}
		})
	}
}
