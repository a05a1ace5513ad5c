// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// thingProto is the message of the kinds that tests make.
const thingProto = `syntax = "proto3";
package example;
import "google/protobuf/struct.proto";
import "google/protobuf/duration.proto";
import "github.com/yandex/protoc-gen-crd/library/go/k8s/protoc_gen_crd/proto/crd.proto";
message Thing {
  option (protoc_gen_crd.k8s_crd) = { api_group: "easy.example.com", kind: "Thing" };
  ThingSpec spec = 1;
}
message ThingSpec {
  string text = 1;
  int32 count = 2;
  map<string, int32> replicas = 3;
  repeated string hosts = 4;
  Mode mode = 5;
  repeated Mode modes = 6;
  map<string, Mode> modeOf = 7;
  google.protobuf.Value any = 8;
  Inner inner = 9;
  bytes raw = 10;
  google.protobuf.Duration wait = 11;
  int64 big = 12;
}
message Inner { Mode mode = 1; Inner inner = 2; }
enum Mode { SLOW = 0; FAST = 1; }
`

// newTree is a tree of files, with the kind Thing whose definition's spec,
// without its message, is given.
func newTree(spec string, files map[string]string) config.Tree {
	m := fstest.MapFS{
		"kinds/thing/thing.proto": {Data: []byte(thingProto)},
		"kinds/thing/kind.yaml":   {Data: []byte("apiVersion: swell.sh/v1\nkind: EasyKind\nmetadata: {name: thing}\nspec:\n  message: example.Thing\n" + spec)},
	}
	for name, content := range files {
		m[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return config.Files(m)
}

func loadTree(t testing.TB, tree config.Tree) *Kinds {
	t.Helper()
	hard, err := schema.Kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	data, problems := LoadData(tree, "data")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	entries, err := tree.ReadDir("kinds")
	if err != nil {
		t.Fatal(err)
	}
	var folders []config.Folder
	for _, e := range entries {
		folders = append(folders, config.Folder{Path: "kinds/" + e.Name()})
	}
	return LoadAll(tree, folders, hard, data)
}

// oneExpression is a kind with a ConfigMap whose data.out is an expression.
func oneExpression(x string) string {
	return fmt.Sprintf("  objects:\n  - id: map\n    template:\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: x, namespace: x}\n      data: {out: '${%s}'}\n", strings.ReplaceAll(x, "'", "''"))
}

const thing = `apiVersion: easy.example.com/v1
kind: Thing
metadata: {name: a}
spec:
  text: hello
  count: 3
  replicas: {sas: 2, vla: 1}
  hosts: [b, a]
  mode: FAST
  modes: [SLOW, FAST]
  modeOf: {x: FAST}
  any: {list: [1, "no", null, 2.5], deep: {"on": true}}
  inner: {mode: FAST}
  wait: 90s
`

var testUnit = &config.Unit{Path: "services/shop/cart", Defaults: &config.Defaults{Tenant: "shop", Labels: map[string]string{"team": "cart"}}}

var testTarget = &config.Target{Name: "sas-1/rz00a", Cluster: "sas-1", Cell: "rz00a", Labels: map[string]string{"region": "sas"}}

func decodeThing(t testing.TB, kinds *Kinds, text string) *Spec {
	t.Helper()
	docs, problems := document.ReadDocuments("services/a/thing.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	k := kinds.ByName(docs[0].APIVersion, docs[0].Kind)
	if k == nil {
		t.Fatalf("%s does not load: %s", docs[0].Kind, kinds.Problems)
	}
	spec, problems := k.Decode(docs[0], nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return spec
}

// testFile reads what stands beside the specs of tests.
func testFile(name string) ([]byte, error) {
	switch name {
	case "app.toml":
		return []byte("a = 1\n"), nil
	case "image.png":
		return []byte{0xff, 0xfe}, nil
	}
	return nil, fmt.Errorf("%q: %w", name, fs.ErrNotExist)
}

// evaluate is the value of data.out of a kind that oneExpression made.
func evaluate(t testing.TB, tree config.Tree, inputs Inputs) (any, document.Problems) {
	t.Helper()
	kinds := loadTree(t, tree)
	if len(kinds.Problems) > 0 {
		return nil, kinds.Problems
	}
	rendered, problems := decodeThing(t, kinds, thing).Render(NewPlace(testUnit, testTarget, inputs))
	if len(problems) > 0 {
		return nil, problems
	}
	data, _ := rendered[0].Object["data"].(map[string]any)
	return data["out"], nil
}

func TestExpressions(t *testing.T) {
	files := map[string]string{
		"data/regions.yaml":       "sas: {dc: 2, names: [a, b]}\nempty: {}\nnothing: null\nratio: 0.5\n",
		"data/list-of.yaml":       "[1, 2]\n",
		"kinds/thing/app.tmpl":    "{{range $k, $v := .replicas}}{{$k}}={{$v}};{{end}}{{.text | quote}}",
		"kinds/thing/bad.tmpl":    "line\n{{.nosuch}}",
		"kinds/thing/sub/in.tmpl": `{{define "x"}}<{{.}}>{{end}}{{template "x" index .hosts 0}}{{join "," .hosts}}{{json .any}}`,
	}
	for _, c := range []struct {
		x, want string // want is a regular expression of a problem when it begins with "!"
	}{
		{"self.spec.text + ' ' + string(self.spec.count)", "hello 3"},
		{"yaml.encode(self.spec.any)", "deep:\n  \"on\": true\nlist:\n- 1\n- \"no\"\n- null\n- 2.5\n"},
		{"json.encode(self.spec.any)", `{"deep":{"on":true},"list":[1,"no",null,2.5]}`},
		{"json.encode({'b': 1, 'a': '<&>'})", `{"a":"<&>","b":1}`},
		{"hash(self.spec.any) == hash({'list': [1, 'no', null, 2.5], 'deep': {'on': true}}) ? 'same' : 'other'", "same"},
		{"file('app.toml')", "a = 1\n"},
		{"file(self.spec.text)", `!"file\(self.spec.text\)": file: "hello": file does not exist \(from kinds/thing/kind.yaml:12:19\)`},
		{"file('image.png')", "!want text in UTF-8"},
		{"template('app.tmpl', self.spec)", `sas=2;vla=1;"hello"`},
		{"template('sub/in.tmpl', self.spec)", `<b>b,a{"deep":{"on":true},"list":[1,"no",null,2.5]}`},
		{"template('bad.tmpl', self.spec)", `!kinds/thing/bad.tmpl:2:3: map has no entry for key "nosuch"`},
		{"template('nosuch.tmpl', self.spec)", `!spec.objects\[0\].template.data.out: .*template: "nosuch.tmpl": file does not exist`},
		{"template('../thing/app.tmpl', self.spec)", "!want the path of a file in the kind's folder"},
		{"template(self.spec.text, self.spec)", "!want the name of a file beside the kind in quotes"},
		{"string(data.regions.sas.dc)", "2"},
		{"string(data.regions.ratio)", "0.5"},
		{"string(data['list-of'][1])", "2"},
		{"data.regions.map(k, k).join(',')", "empty,nothing,ratio,sas"},
		{"yaml.encode(data.regions.sas)", "dc: 2\nnames:\n- a\n- b\n"},
		{"hash(data.regions.sas) == hash({'dc': 2, 'names': ['a', 'b']}) ? 'same' : 'other'", "same"},
		{"data.?nosuch.hasValue() ? 'yes' : 'no'", "no"},
		{"data.?regions.?vla.?dc.orValue(7) == 7 ? 'yes' : 'no'", "yes"},
		{"has(data.regions.vla) ? 'yes' : 'no'", "no"},
		{"data.regoins.sas.dc", `!data.regoins: no such file of data, did you mean "regions"\?`},
		{"data['regoins'].sas.dc", `!data.regoins: no such file of data, did you mean "regions"\?`},
		{"string(data.regions.vla.dc)", `!no such key: vla in data.regions; there are empty, nothing, ratio, sas`},
		{"string(self.spec.replicas['myt'])", `!no such key: myt in self.spec.replicas; there are sas, vla`},
		{"string(self.spec.replicas[target.cell])", `!no such key: rz00a in self.spec.replicas; there are sas, vla`},
		{"self.spec.mode", "FAST"},
		{"self.spec.mode == 'FAST' ? 'yes' : 'no'", "yes"},
		{"self.spec.modes.join(',')", "SLOW,FAST"},
		{"self.spec.modeOf.x", "FAST"},
		{"self.spec.inner.mode", "FAST"},
		{"self.spec.inner.inner.mode", "SLOW"},
		{"self.?spec.?inner.?mode.orValue('none')", "FAST"},
		{"[self.spec].map(s, s.mode)[0]", "FAST"},
		{"self.spec.mode == 1 ? 'yes' : 'no'", "!found no matching overload for '_==_'"},
		{"json.encode(self.spec.inner)", `{"mode":"FAST"}`},
		{"string(self.spec.wait)", "90s"},
		{"@file(@place, 'x')", "!Syntax error"},
		{"self.spec.nosuch", "!undefined field 'nosuch'"},
		{"self.spec.text.matches('^h.*o$') ? 'yes' : 'no'", "yes"},
		{"matches(self.spec.text, 'x' + 'y') ? 'yes' : 'no'", "no"},
		{"self.spec.text.matches('(') ? 'yes' : 'no'", `!matches: not a regular expression: missing closing \)`},
		{"self.spec.text.matches('(' + '') ? 'yes' : 'no'", `!matches: not a regular expression`},
	} {
		got, problems := evaluate(t, newTree(oneExpression(c.x), files), Inputs{File: testFile})
		if want, isProblem := strings.CutPrefix(c.want, "!"); isProblem {
			if len(problems) != 1 || !regexp.MustCompile(want).MatchString(problems[0].String()) {
				t.Errorf("%s: got %v %q, want the problem %q", c.x, got, problems, want)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q; problems: %s", c.x, got, c.want, problems)
		}
	}
}

// TestDataRead: what is read is noted, no more and no less.
func TestDataRead(t *testing.T) {
	files := map[string]string{"data/a.yaml": "x: {v: 1, z: 2}\nl: [1, 2]\n", "data/b.yaml": "c: 3\n"}
	for x, want := range map[string][]string{
		"string(data.a.x.v)":                     {"a.", "a.x.", "a.x.v"},
		"string(data.a.l[0])":                    {"a.", "a.l"},
		"json.encode(data.a.x)":                  {"a.", "a.x.", "a.x"},
		"json.encode(data)":                      {""},
		"data.a.x.map(k, k).join()":              {"a.", "a.x.", "a.x"},
		"string(data.?a.?q.orValue(1))":          {"a.", "a.q"},
		"has(data.b.d) ? 'y' : 'n'":              {"b.", "b.d"},
		"has(data.a.x) ? 'y' : 'n'":              {"a.", "a.x."},
		"'x' in data.a ? 'y' : 'n'":              {"a.", "a.x."},
		"data.a.?x.hasValue() ? 'y' : 'n'":       {"a.", "a.x."},
		"string([data.a.x].size())":              {"a.", "a.x."},
		"string(data.b.c + data.a.x.z)":          {"b.", "b.c", "a.", "a.x.", "a.x.z"},
		"data.a.x == {'v': 1, 'z': 2} ? 'y' :''": {"a.", "a.x.", "a.x"},
		"[data.a.x] == [1, 2] ? 'y' : 'n'":       {"a.", "a.x.", "a.x"}, // its weight is
		"'nothing'":                              nil,
	} {
		var got []string
		seen := map[string]bool{}
		if _, problems := evaluate(t, newTree(oneExpression(x), files), Inputs{Data: func(path []string, there bool) {
			at := strings.Join(path, ".")
			if there {
				at += "." // and no more
			}
			if !seen[at] {
				seen[at] = true
				got = append(got, at)
			}
		}}); len(problems) > 0 {
			t.Errorf("%s: %s", x, problems)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", x, diff)
		}
	}
}

func TestLoadData(t *testing.T) {
	tree := newTree("", map[string]string{
		"data/good.yaml": "a: {b: null}\n", "data/README.md": "x", "data/two.yaml": "1\n---\n2\n", "data/none.yaml": "# nothing\n",
		"data/on.yaml": "a: no\n", "data/a.b.yaml": "1\n", "data/same.yaml": "1\n", "data/same.yml": "1\n", "data/sub/x.yaml": "1\n",
		"data/big.yaml": "a: \"" + strings.Repeat("x", maxDataFile) + "\"\n",
	})
	data, problems := LoadData(tree, "data")
	if diff := cmp.Diff([]string{"a.b", "big", "good", "none", "on", "same", "sub", "two"}, data.Files()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var got []string
	for _, p := range problems {
		got = append(got, path.Base(p.File)+" "+string(p.Code))
	}
	want := []string{"a.b.yaml SW1014", "big.yaml SW1014", "none.yaml SW1002", "on.yaml SW1001", "same.yml SW1010", "sub SW1014", "two.yaml SW1002"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, problems)
	}
	hashes := map[string]string{}
	for _, at := range [][]string{nil, {"good"}, {"good", "a"}, {"good", "a", "b"}, {"good", "a", "c"}} {
		h := data.Hash(at)
		if other, ok := hashes[h]; ok {
			t.Errorf("%v and %s have the same hash", at, other)
		}
		hashes[h] = strings.Join(at, ".")
	}
	for at, want := range map[string]bool{"good": true, "good a": true, "good a b": false, "good a c": false, "nosuch": false} {
		if got := data.IsMapping(strings.Fields(at)); got != want {
			t.Errorf("%s is a map: %t", at, got)
		}
	}
	if data.Hash([]string{"good", "a", "c"}) != data.Hash([]string{"nosuch"}) {
		t.Error("what is absent has two hashes")
	}
}

// TestBrokenData: a file that did not parse was absent to data.?file, and units
// were rendered without it. Kinds that read other files alone load.
func TestBrokenData(t *testing.T) {
	hard, err := schema.Kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range map[string]string{
		"string(data.?a.?x.orValue(1))":  "kinds/thing/kind.yaml:1:1: the kind reads data, of which data/a.yaml has a problem",
		"string(data.a.x)":               "kinds/thing/kind.yaml:1:1: the kind reads data, of which data/a.yaml has a problem",
		"string(data['a'].x)":            "kinds/thing/kind.yaml:1:1: the kind reads data, of which data/a.yaml has a problem",
		"string(data[self.spec.text].x)": "kinds/thing/kind.yaml:1:1: the kind reads data, of which data/a.yaml has a problem",
		"string(size(data))":             "kinds/thing/kind.yaml:1:1: the kind reads data, of which data/a.yaml has a problem",
		"string(has(data.a))":            "kinds/thing/kind.yaml:1:1: the kind reads data, of which data/a.yaml has a problem",
		"string(data.b.x)":               "",
		"string(data.?b.?x.orValue(1))":  "",
		"'no data'":                      "",
	} {
		tree := newTree(oneExpression(x), map[string]string{"data/a.yaml": "x: [\n", "data/b.yaml": "x: 1\n"})
		data, problems := LoadData(tree, "data")
		if len(problems) != 1 {
			t.Errorf("got %s", problems)
		}
		if kinds := LoadAll(tree, []config.Folder{{Path: "kinds/thing"}}, hard, data); kinds.Problems.String() != want {
			t.Errorf("%s: got %s, want %s", x, kinds.Problems, want)
		}
	}
}

// TestParallel: one kind renders many specs at once, errors among them.
func TestParallel(t *testing.T) {
	spec := "  let: [{name: d, value: data.a.x}]\n" + oneExpression("template('a.tmpl', self.spec) + (self.spec.text.matches('h+ello') ? file('app.toml') : '') + string(data.a[self.spec.text])")
	kinds := loadTree(t, newTree(spec, map[string]string{"kinds/thing/a.tmpl": "{{range .hosts}}{{.}}{{end}}", "data/a.yaml": "x: 1\nhello: {deep: 2}\n"}))
	if len(kinds.Problems) > 0 {
		t.Fatal(kinds.Problems)
	}
	place := NewPlace(testUnit, testTarget, Inputs{File: testFile})
	var group errgroup.Group
	for i := range 16 {
		text := []string{"hello", "nosuch", "x"}[i%3]
		spec := decodeThing(t, kinds, strings.Replace(thing, "text: hello", "text: "+text, 1))
		group.Go(func() error {
			for range 20 {
				_, problems := spec.Render(place)
				if failed := len(problems) > 0; failed != (text != "x") {
					return fmt.Errorf("%s: %s", text, problems)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
