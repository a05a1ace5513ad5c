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

// TestJSON: a file of JSON that is an object of Kubernetes is read as one of YAML is, unless
// a spec takes it as a text, or it stands below a unit, where others may take it.
func TestJSON(t *testing.T) {
	const object = "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"ConfigMap\",\n" +
		"\t\"metadata\": {\"name\": \"c\", \"namespace\": \"shop-rz00a\"},\n\t\"dta\": 1\n}\n"
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds", "data", "services/shop/swell.yaml", "services/shop/cart")
	write := func(name, content string) { files["services/shop/"+name] = &fstest.MapFile{Data: []byte(content)} }
	const cluster = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\n" +
		"spec: {placement: {topology: cluster, match: {labels: {region: sas}}}}\n"
	write("alone/swell.yaml", cluster)
	write("alone/a.json", object)
	write("alone/package.json", `{"name": "x"}`)
	write("alone/below/b.json", object)
	write("data/package.json", `{"name": "x"}`)
	write("cart/taken.json", object)
	write("cart/below/c.json", object)
	spec := &files["services/shop/cart/runtime.yaml"].Data
	*spec = []byte(strings.ReplaceAll(string(*spec), "cart.toml", "taken.json"))
	s := (&Compiler{}).Snapshot("", config.Files(files))
	var units []string
	for path := range s.Units.All() {
		units = append(units, string(path))
	}
	slices.Sort(units)
	if want := []string{"services/shop/alone", "services/shop/cart"}; !slices.Equal(units, want) {
		t.Errorf("units %v, want %v", units, want)
	}
	const want = `services/shop/alone/a.json:5:2: dta: unknown field, did you mean "data"?`
	if problems := s.Units.Get("services/shop/alone").Problems; len(problems) != 1 || problems[0].String() != want {
		t.Errorf("problems %v, want %s", problems, want)
	}
	if problems := s.Units.Get("services/shop/cart").Problems; len(problems) > 0 {
		t.Error(problems)
	}
	var left []string
	for _, l := range s.LeftOut() {
		left = append(left, l.Path)
	}
	if want := []string{"services/shop/alone/below/b.json", "services/shop/cart/below/c.json"}; !slices.Equal(left, want) {
		t.Errorf("left out %v, want %v", left, want)
	}
}
