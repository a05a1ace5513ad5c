// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config/document"
)

// otherKind are the files of one more kind, named like its folder with a
// capital letter, whose spec has the fields of the message's body.
func otherKind(files map[string]string, folder, body, spec string) map[string]string {
	name := strings.ToUpper(folder[:1]) + folder[1:]
	all := map[string]string{
		"kinds/" + folder + "/" + folder + ".proto": fmt.Sprintf(`syntax = "proto3";
package %s;
import "github.com/yandex/protoc-gen-crd/library/go/k8s/protoc_gen_crd/proto/crd.proto";
message %s {
  option (protoc_gen_crd.k8s_crd) = { api_group: "easy.example.com", kind: %q };
  %sSpec spec = 1;
}
message %sSpec { %s }
enum Level { LOW = 0; HIGH = 1; }
`, folder, name, name, name, name, body),
		"kinds/" + folder + "/kind.yaml": fmt.Sprintf("apiVersion: swell.sh/v1\nkind: EasyKind\nmetadata: {name: %s}\nspec:\n  message: %s.%s\n%s", folder, folder, name, spec),
	}
	for name, content := range files {
		all[name] = content
	}
	return all
}

const noObjects = "  objects: []\n"

func problemLines(problems document.Problems) []string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.String())
	}
	return lines
}

func TestCollect(t *testing.T) {
	files := otherKind(nil, "pipeline", "string source = 1; Level level = 2; repeated Level levels = 3;", noObjects)
	spec := "  collect: {pipelines: {kind: Pipeline, scope: fleet}}\n" +
		oneExpression("pipelines.map(p, p.metadata.name + '/' + p.unit.name + '/' + p.unit.tenant + '/' + p.spec.source + '/' + p.spec.level + '/' + p.spec.levels.join('+')).join(' ')")
	tree := newTree(spec, files)
	kinds := loadTree(t, tree)
	if len(kinds.Problems) > 0 {
		t.Fatal(kinds.Problems)
	}
	var collected []*Collected
	for _, name := range []string{"b", "a"} {
		item := decodeThing(t, kinds, fmt.Sprintf("apiVersion: easy.example.com/v1\nkind: Pipeline\nmetadata: {name: %s}\nspec: {source: s, level: HIGH, levels: [LOW, HIGH]}\n", name))
		collected = append(collected, NewCollected(item, testUnit))
	}
	var asked []string
	got, problems := evaluate(t, tree, Inputs{Collect: func(c *Collection) ([]*Collected, error) {
		asked = append(asked, fmt.Sprint(c.Name, " ", c.APIVersion, " ", c.Kind, " ", c.Scope, " ", c.OnInvalid))
		return collected, nil
	}})
	if want := "b/cart/shop/s/HIGH/LOW+HIGH a/cart/shop/s/HIGH/LOW+HIGH"; got != want {
		t.Errorf("got %q, want %q; %s", got, want, problems)
	}
	if diff := cmp.Diff([]string{"pipelines easy.example.com/v1 Pipeline fleet exclude"}, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, problems = evaluate(t, tree, Inputs{Collect: func(*Collection) ([]*Collected, error) { return nil, errors.New("disk on fire") }})
	if len(problems) != 1 || !problems[0].Retry || !strings.Contains(problems[0].String(), "collect pipelines: disk on fire (from kinds/thing/kind.yaml:6:24)") {
		t.Errorf("got %s", problems)
	}
	if objects := kinds.ByName("easy.example.com/v1", "Thing").Collections(); len(objects) != 1 {
		t.Errorf("got %d collections", len(objects))
	}
}

const nestedThing = `  objects:
  - id: inner
    template:
      apiVersion: easy.example.com/v1
      kind: Part
      metadata: {name: "${self.metadata.name}-part"}
      spec:
        size: ${self.spec.count}
        level: "${self.spec.mode == 'FAST' ? 'HIGH' : 'NOSUCH'}"
        override: {map: {update: []}}
`

const partObjects = "  objects:\n  - id: map\n    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: x}, data: {size: '${string(1/(self.spec.size-3))}'}}\n"

func TestNested(t *testing.T) {
	tree := newTree(nestedThing, otherKind(nil, "part", "int32 size = 1; Level level = 2;", partObjects))
	kinds := loadTree(t, tree)
	if len(kinds.Problems) > 0 {
		t.Fatal(kinds.Problems)
	}
	place := NewPlace(testUnit, testTarget, Inputs{})
	outer := decodeThing(t, kinds, thing)
	rendered, problems := outer.Render(place)
	if len(problems) > 0 || len(rendered) != 1 {
		t.Fatal(rendered, problems)
	}
	part := kinds.ByName("easy.example.com/v1", "Part")
	at := func(path []any) document.Position {
		return document.Position{File: "kinds/thing/kind.yaml", Line: 10 + len(path), Column: 1}
	}
	inner, problems := part.DecodeValue(rendered[0].Object, at, outer.doc, []document.Position{at(nil)}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	_, problems = inner.Render(place)
	want := []string{`services/a/thing.yaml:1:1: Part a-part: "string(1/(self.spec.size-3))": division by zero (from kinds/thing/kind.yaml:10:1) (from kinds/part/kind.yaml:8:97)`}
	if diff := cmp.Diff(want, problemLines(problems)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	slow := decodeThing(t, kinds, strings.Replace(thing, "mode: FAST\n  modes", "mode: SLOW\n  modes", 1))
	rendered, _ = slow.Render(place)
	_, problems = part.DecodeValue(rendered[0].Object, at, slow.doc, []document.Position{at(nil)}, nil)
	if len(problems) != 1 || problems[0].String() != `kinds/thing/kind.yaml:12:1: spec.level: want one of the enum's names, got the string "NOSUCH", want one of HIGH, LOW` {
		t.Errorf("got %s", problems)
	}
}

// TestLoadProblems: what is wrong between kinds is found when they are loaded.
func TestLoadProblems(t *testing.T) {
	cycle := func(folder, to, when string) string {
		return fmt.Sprintf("  objects:\n  - id: x\n%s    template: {apiVersion: easy.example.com/v1, kind: %s, metadata: {name: x}}\n", when, to)
	}
	for name, c := range map[string]struct {
		spec  string
		files map[string]string
		want  []string
	}{
		"nested field": {strings.Replace(nestedThing, "size:", "sise:", 1), otherKind(nil, "part", "int32 size = 1; Level level = 2;", partObjects),
			[]string{`kinds/thing/kind.yaml:13:9: spec.objects[0].template.spec.sise: unknown field, did you mean "size"?`}},
		"nested type": {nestedThing, otherKind(nil, "part", "string size = 1; Level level = 2;", strings.ReplaceAll(partObjects, "self.spec.size-3", "3")),
			[]string{`kinds/thing/kind.yaml:13:15: spec.objects[0].template.spec.size: "self.spec.count": want a string, got int`}},
		"nested broken": {nestedThing, otherKind(nil, "part", "int32 size = 1; Level level = 2;", strings.ReplaceAll(partObjects, "self.spec.size", "self.spec.sise")),
			[]string{`kinds/part/kind.yaml:8:97: spec.objects[0].template.data.size: "string(1/(self.spec.sise-3))": undefined field 'sise'`,
				`kinds/thing/kind.yaml:9:7: spec.objects[0].template: kind Part does not load, see kinds/part`}},
		"empty": {noObjects, nil, []string{`kinds/thing/kind.yaml:6:12: spec.objects: want at least one object, or another kind that collects this one`}},
		"cycle": {cycle("thing", "Part", ""), otherKind(nil, "part", "", cycle("part", "Thing", "")),
			[]string{`kinds/part/kind.yaml:8:15: spec.objects[0].template: kind Thing does not load, see kinds/thing`,
				`kinds/thing/kind.yaml:8:15: spec.objects[0].template: a cycle of kinds without an end: Part -> Thing -> Part`}},
		"cycle with an end": {cycle("thing", "Part", "    when: self.spec.count > 0\n"), otherKind(nil, "part", "", cycle("part", "Thing", "")), nil},
		"collect": {"  collect:\n    a: {kind: Pipelin}\n    data: {kind: Pipeline}\n    c: {kind: Pipeline, scope: world, onInvalid: never}\n    d: {}\n" + oneExpression("c[0].spec.sorce"),
			otherKind(nil, "pipeline", "string source = 1;", noObjects), []string{
				`kinds/thing/kind.yaml:7:15: spec.collect.a.kind: Pipelin: no such easy kind, did you mean "Pipeline"?`,
				`kinds/thing/kind.yaml:8:11: spec.collect.data: want a new name of letters and digits that is no word of CEL`,
				`kinds/thing/kind.yaml:9:32: spec.collect.c.scope: want tenant or fleet, got "world"`,
				`kinds/thing/kind.yaml:9:50: spec.collect.c.onInvalid: want exclude or hold, got "never"`,
				`kinds/thing/kind.yaml:10:8: spec.collect.d.kind: missing`,
				`kinds/thing/kind.yaml:17:19: spec.objects[0].template.data.out: "c[0].spec.sorce": undefined field 'sorce'`,
			}},
		"collected of the same name": {"  collect: {c: {kind: Pipeline}}\n" + oneExpression("'x'"),
			otherKind(map[string]string{"kinds/pipeline/pipeline.proto": strings.NewReplacer("Thing {", "Pipeline {", `"Thing"`, `"Pipeline"`).Replace(thingProto),
				"kinds/pipeline/kind.yaml": "apiVersion: swell.sh/v1\nkind: EasyKind\nmetadata: {name: x}\nspec: {message: example.Pipeline}\n"}, "pipeline", "", ""),
			[]string{`kinds/thing/kind.yaml:6:16: spec.collect.c: message example.Inner is declared by this kind and by kinds/pipeline: give one of them another name or put it into a file that both import`}},
		"unnamed": {cycle("thing", "Part", ""), map[string]string{"kinds/part/kind.yaml": "a: b\n"}, []string{
			`kinds/part/kind.yaml:1:1: apiVersion: missing, every document needs an apiVersion and a kind`,
			`kinds/part/kind.yaml:1:1: kind: missing, every document needs an apiVersion and a kind`,
			`kinds/thing/kind.yaml:8:15: spec.objects[0].template: easy.example.com/v1 Part: no such kind; kinds/part does not load, it may be that one`}},
		"template file": {oneExpression("template('a.tmpl', 1) + template('a.tmpl', 2)"), map[string]string{"kinds/thing/a.tmpl": "x\n{{if}}{{end}}"}, []string{
			`kinds/thing/a.tmpl:2: not a template: missing value for if`,
			`kinds/thing/kind.yaml:12:19: spec.objects[0].template.data.out: "template('a.tmpl', 1) + template('a.tmpl', 2)": template: "a.tmpl": has a problem`}},
		"function of a template": {oneExpression("template('a.tmpl', 1)"), map[string]string{"kinds/thing/a.tmpl": "{{_leave}}"}, []string{
			`kinds/thing/a.tmpl:1: not a template: function "_leave" not defined`,
			`kinds/thing/kind.yaml:12:19: spec.objects[0].template.data.out: "template('a.tmpl', 1)": template: "a.tmpl": has a problem`}},
		"a name of a function": {"  let:\n  - {name: yaml, value: '1'}\n" + oneExpression("'x'"), nil, []string{
			`kinds/thing/kind.yaml:7:5: spec.let[0].name: want a new name of letters and digits that is no word of CEL, got "yaml"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, problemLines(loadTree(t, newTree(c.spec, c.files)).Problems)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestHash: a kind's hash changes with what it reads, and with nothing else.
func TestHash(t *testing.T) {
	spec := oneExpression("template('a.tmpl', self.spec)") + "  - id: part\n    template: {apiVersion: easy.example.com/v1, kind: Part, metadata: {name: x}}\n"
	base := otherKind(map[string]string{"kinds/thing/a.tmpl": "x", "kinds/thing/tests/a.txtar": "x", "kinds/thing/b.tmpl": "x", "data/a.yaml": "1\n",
		"kinds/alone/alone.proto": strings.NewReplacer("Thing {", "Alone {", `"Thing"`, `"Alone"`).Replace(thingProto),
		"kinds/alone/kind.yaml":   "apiVersion: swell.sh/v1\nkind: EasyKind\nmetadata: {name: alone}\nspec:\n  message: example.Alone\n" + oneExpression("string(data.a)")}, "part", "", partObjects)
	base["kinds/part/kind.yaml"] = strings.ReplaceAll(base["kinds/part/kind.yaml"], "self.spec.size", "1")
	hashes := func(change, content string) (thing, alone string) {
		files := map[string]string{}
		for name, old := range base {
			files[name] = old
		}
		if change != "" {
			files[change] += content
		}
		kinds := loadTree(t, newTree(spec, files))
		if len(kinds.Problems) > 0 {
			t.Fatal(kinds.Problems)
		}
		return kinds.ByName("easy.example.com/v1", "Thing").Hash(), kinds.ByName("easy.example.com/v1", "Alone").Hash()
	}
	thing, alone := hashes("", "")
	if thing == "" || thing == alone {
		t.Errorf("hashes %q and %q", thing, alone)
	}
	for change, c := range map[string]struct{ thing, alone bool }{
		"kinds/thing/a.tmpl": {thing: true}, "kinds/thing/b.tmpl": {}, "kinds/thing/tests/a.txtar": {}, "kinds/thing/README.md": {},
		"kinds/part/kind.yaml": {thing: true}, "kinds/part/part.proto": {thing: true},
		"kinds/alone/kind.yaml": {alone: true}, "data/b.yaml": {alone: true}, "data/a.yaml": {},
	} {
		content := "# more\n"
		if strings.HasSuffix(change, ".proto") {
			content = "// more\n"
		}
		if change == "data/b.yaml" {
			content = "1\n"
		}
		changedThing, changedAlone := hashes(change, content)
		if got := changedThing != thing; got != c.thing {
			t.Errorf("%s: the hash of Thing changed: %t, want %t", change, got, c.thing)
		}
		if got := changedAlone != alone; got != c.alone {
			t.Errorf("%s: the hash of Alone changed: %t, want %t", change, got, c.alone)
		}
	}
}

// TestDeclarationIsShared: commits whose files are the same share the declaration, until none has it.
// The imports of another commit are not in a kind's hash.
func TestDeclarationIsShared(t *testing.T) {
	const file, imported = "kinds/part/part.proto", "kinds/part/more.proto"
	files := otherKind(nil, "part", "string a = 1;", oneExpression("self.metadata.name"))
	files[imported] = "syntax = \"proto3\"; package part; message More { string text = 1; }"
	load := func() *Kind {
		kinds := loadTree(t, newTree(oneExpression("self.metadata.name"), files))
		if len(kinds.Problems) > 0 {
			t.Fatal(kinds.Problems)
		}
		return kinds.ByName("easy.example.com/v1", "Part")
	}
	alone := load()
	first := files[file]
	files[file] = strings.NewReplacer("import ", "import \""+imported+"\";\nimport ", "string a", "More more = 2; string a").Replace(first)
	importing := load()
	if importing.message == alone.message || importing.hash == alone.hash {
		t.Error("another message has the same declaration or hash")
	}
	want := alone.hash
	runtime.KeepAlive(alone)
	files[imported] += "\n"
	if other := load(); other.message == importing.message || other.hash == importing.hash {
		t.Error("another import has the same declaration or hash")
	}
	files[imported] = strings.TrimSuffix(files[imported], "\n")
	if again := load(); again.message != importing.message || again.hash != importing.hash || again.rules != importing.rules {
		t.Error("the same files have another declaration or hash")
	}
	files[file] = first
	for range 20 { // in which order files are compared is by chance
		runtime.GC() // of the first ones, so that it is compared with the other
		if again := load(); again.hash != want {
			t.Fatal("the hash depends on what was loaded before")
		}
	}
	runtime.KeepAlive(importing)
}

// TestDeclarationIsForgotten: a declaration goes with the last kind that has it.
func TestDeclarationIsForgotten(t *testing.T) {
	from := source{file: "kinds/gone/gone.proto"}
	shared.add(from, &declaration{secrets: true})
	found := func() bool { return shared.find(from, func(*declaration) bool { return true }) != nil }
	for range 100 {
		runtime.GC()
		shared.mu.Lock()
		_, known := shared.known[from]
		shared.mu.Unlock()
		if !known && !found() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("it is known for good")
}

func TestConfigFolder(t *testing.T) {
	files := map[string]string{"conf/a.toml": "a = 1\n", "conf/sub/b.bin": "\xff\xfe", "same/a__b": "x", "same/a/b": "y", "bad/ä": "x", "big/x": strings.Repeat("x", maxConfigMap+1)}
	inputs := Inputs{
		File: func(name string) ([]byte, error) { return []byte(files[name]), nil },
		Files: func(folder string) ([]string, error) {
			switch folder {
			case "conf":
				return []string{"a.toml", "sub/b.bin"}, nil
			case "same":
				return []string{"a/b", "a__b"}, nil
			case "bad":
				return []string{"ä"}, nil
			case "big":
				return []string{"x"}, nil
			case "empty":
				return nil, nil
			}
			return nil, fmt.Errorf("%q: %w", folder, fs.ErrNotExist)
		},
	}
	kinds := loadTree(t, newTree(oneExpression("'x'"), nil))
	render := func(spec string) ([]Rendered, document.Problems) {
		return decodeThing(t, kinds, "apiVersion: swell.sh/v1\nkind: ConfigFolder\nmetadata: {name: conf}\nspec: "+spec+"\n").Render(NewPlace(testUnit, testTarget, inputs))
	}
	rendered, problems := render("{folder: conf, namespace: '{tenant}-{cell}', hashSuffix: true, labels: {a: b}}")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
		"metadata":   map[string]any{"name": "conf-8ce0dea627", "namespace": "shop-rz00a", "labels": map[string]any{"a": "b"}},
		"data":       map[string]any{"a.toml": "a = 1\n"},
		"binaryData": map[string]any{"sub__b.bin": "//4="},
	}, rendered[0].Object); diff != "" || rendered[0].ID != "configmap" {
		t.Errorf("%s (-want +got):\n%s", rendered[0].ID, diff)
	}
	k := kinds.ByName("swell.sh/v1", "ConfigFolder")
	if diff := cmp.Diff([]string{"configmap"}, k.ObjectIDs()); diff != "" || k.Hash() == "" || len(k.Collections()) > 0 {
		t.Errorf("hash %q (-want +got):\n%s", k.Hash(), diff)
	}
	for spec, want := range map[string]string{
		"{}":               "ConfigFolder conf: spec.folder: missing",
		"{folder: nosuch}": `ConfigFolder conf: spec.folder: "nosuch": file does not exist`,
		"{folder: empty}":  `ConfigFolder conf: spec.folder: "empty": there is no file in it`,
		"{folder: same}":   `files "a/b" and "a__b": both would be the key "a__b"`,
		"{folder: bad}":    `file "ä": want a name of letters`,
		"{folder: big}":    `larger than the 1024 KiB that a ConfigMap holds`,
	} {
		if _, problems := render(spec); len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%s: got %s, want %q", spec, problems, want)
		}
	}
}

// TestSecretExpression: the reason of an error showed what the Secret holds.
func TestSecretExpression(t *testing.T) {
	spec := strings.NewReplacer("ConfigMap", "Secret", "data: {out", "stringData: {out").Replace(oneExpression("string(int(self.spec.text))"))
	_, problems := evaluate(t, newTree(spec, nil), Inputs{})
	if len(problems) != 1 || strings.Contains(problems[0].String(), "hello") || !strings.Contains(problems[0].String(), "cannot be evaluated") {
		t.Errorf("got %s", problems)
	}
	spec = strings.NewReplacer("ConfigMap", "Secret", "data: {out", "stringData: {out", "${", "x${").Replace(oneExpression("self.spec.hosts"))
	_, problems = evaluate(t, newTree(spec, nil), Inputs{})
	if len(problems) != 1 || !strings.Contains(problems[0].String(), "can stand inside a string") {
		t.Errorf("got %s", problems)
	}
}

// TestSecretRetry: inside a text of a Secret, a file that cannot be read now was
// an error for ever.
func TestSecretRetry(t *testing.T) {
	for _, x := range []string{"${", "x${"} {
		spec := strings.NewReplacer("ConfigMap", "Secret", "data: {out", "stringData: {out", "${", x).Replace(oneExpression("file('pw.txt')"))
		for want, cause := range map[string]error{"input/output error": &fs.PathError{Op: "read", Path: "pw.txt", Err: errors.New("input/output error")}, "file does not exist": fs.ErrNotExist} {
			_, problems := evaluate(t, newTree(spec, nil), Inputs{File: func(string) ([]byte, error) { return nil, cause }})
			if len(problems) != 1 || problems[0].Retry != (want == "input/output error") || !strings.Contains(problems[0].String(), want) {
				t.Errorf("%s: got %s, want %q", x, problems, want)
			}
		}
	}
}

// TestDefinedTwice: kinds that refer to one that is defined twice went on with
// the first of the two.
func TestDefinedTwice(t *testing.T) {
	collecting := "  collect: {parts: {kind: Part}}\n" + oneExpression("string(parts.size())")
	copied := func(files map[string]string) map[string]string {
		return otherKind(files, "part", "int32 size = 1; Level level = 2;", partObjects)
	}
	once := copied(nil)
	twice := copied(map[string]string{"kinds/zpart/zpart.proto": once["kinds/part/part.proto"], "kinds/zpart/kind.yaml": once["kinds/part/kind.yaml"]})
	const duplicate = "kinds/zpart: kind easy.example.com/v1 Part: defined twice, first in kinds/part"
	for spec, want := range map[string][]string{
		nestedThing:          {"kinds/thing/kind.yaml:9:7: spec.objects[0].template: kind Part is defined twice", duplicate},
		collecting:           {"kinds/thing/kind.yaml:6:20: spec.collect.parts: kind Part is defined twice", duplicate},
		oneExpression("'x'"): {duplicate},
	} {
		before, after := loadTree(t, newTree(spec, once)), loadTree(t, newTree(spec, twice))
		if diff := cmp.Diff(want, problemLines(after.Problems)); diff != "" || len(before.Problems) > 0 {
			t.Errorf("%s (-want +got):\n%s", before.Problems, diff)
		}
		if got := after.Broken("easy.example.com/v1", "Part"); got != "kinds/zpart" || after.ByName("easy.example.com/v1", "Part") != nil {
			t.Errorf("broken in %q", got)
		}
		changed := before.HashOf("easy.example.com/v1", "Thing") != after.HashOf("easy.example.com/v1", "Thing")
		if changed != (len(want) == 2) {
			t.Errorf("%s: the hash changed: %t", spec, changed)
		}
	}
}

// TestOddNameBesideKind: a tree can be read past an odd name, but a kind with
// one in its folder does not load; the others do.
func TestOddNameBesideKind(t *testing.T) {
	kinds := loadTree(t, newTree("  objects: []\n", map[string]string{"kinds/thing/a\xe9.tmpl": "x"}))
	want := `kinds/thing/kind.yaml: the kind's definition: entry "a\xe9.tmpl": name is not UTF-8`
	if got := kinds.Problems.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
