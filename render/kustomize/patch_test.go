// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// badPatches are entries that kustomize refuses without a place, or takes for
// something else, and the one problem that each must be.
var badPatches = []struct {
	entry, want string
	// silent: kustomize takes it, and drops a part or puts it into another place.
	silent bool
}{
	{"patches: [{patch: '{metadata: {name: x}, data: {a: c}}'}]", "a/kustomization.yaml:2:19: patches: a patch without kind: write what the object has that it changes", false},
	{"patches: [{patch: '{apiVersion: v1, kind: ConfigMap, data: {a: c}}'}]", "a/kustomization.yaml:2:19: patches: a patch without metadata.name: write what the object has that it changes", false},
	{"patches: [{target: {kind: ConfigMap}, patch: '{data: {a: c}}'}]", "a/kustomization.yaml:2:46: patches: a patch without kind and metadata.name: kustomize wants both also beside a target, where any will do", false},
	{"patches:\n- target: {kind: ConfigMap}\n  patch: |\n    data: {a: c}", "a/kustomization.yaml:5: patches: a patch without kind and metadata.name", false},
	{"patches: [{patch: '{kind: AList, items: [{data: c}]}', target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:19: patches: a patch without kind and metadata.name", false},
	{"patches: [{path: p.yaml}]", "a/p.yaml:2:1: patches: a patch without kind and metadata.name", false},
	{"patches: [{target: {kind: ConfigMap}, patch: \"{kind: A, metadata: {name: u}}\\n---\\n{kind: A, metadata: {name: u}}\"}]", "a/kustomization.yaml:2:46: patches: 2 documents in a patch with a target: want one", false},
	{"patches: [{target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:11: patches: no patch: write it in patch, or name its file in path", false},
	{"patches: [{path: p.yaml, patch: '[]', target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:11: patches: patch and path at once: want one of them", false},
	{"patches: [{patch: hello, target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:19: patches: want an object (a merge patch) or a list of operations (a JSON patch)", false},
	{"patches: [{patch: '{a: b', target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:19: not valid YAML", false},
	{"patches: [{patch: '- {op: remove, path: /data/a}'}]", "a/kustomization.yaml:2:11: patches: a list of operations without a target: say which object it changes, in target.kind and target.name", false},
	{"patches: [{patch: '- {op: remove, path: /data/a}', target: {kind: '('}}]", "a/kustomization.yaml:2:67: patches: target.kind: want a regular expression: ", false},
	{"patches: [{patch: '- {op: remove, path: /data/a}', target: {labelSelector: 'a in'}}]", "a/kustomization.yaml:2:76: patches: target.labelSelector: want a selector such as app=web: ", false},
	{"patches: [{patch: '- a', target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:19: patches: operation 0: want a map with op and path", false},
	{"patches: [{patch: '- {path: /data/a}', target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:19: patches: operation 0: op: missing, want one of add, copy, move, remove, replace, test", false},
	{"patches: [{patch: '- {op: replce, path: /data/a, value: c}', target: {kind: ConfigMap}}]", `a/kustomization.yaml:2:19: patches: operation 0: op: unknown operation, did you mean "replace"?`, false},
	{"patches: [{patch: '- {op: remove}', target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:19: patches: operation 0: path: missing, want a place such as /spec/replicas", false},
	{"patches: [{patch: '- {op: remove, path: [data]}', target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:19: patches: operation 0: path: want a place that begins with a slash", false},
	{"patches: [{patch: '- {op: replace, path: data/a, value: c}', target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:19: patches: operation 0: path: want a place that begins with a slash", true},
	{"patches: [{patch: '- {op: move, path: /data/a}', target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:19: patches: operation 0: from: missing, want a place such as /spec/replicas", false},
	{"patches: [{patch: \"- {op: remove, path: /data/a}\\n---\\n- {op: remove, path: /data/b}\", target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:19: patches: a second document, which kustomize drops", true},
	{"patches: [{patch: '[{op: remove, path: /data/a}]', target: {kind: ConfigMap}}]", "a/kustomization.yaml:2:19: patches: a patch that begins with [ is JSON to kustomize, and this is none", false},
	{"patchesStrategicMerge: [p.yaml]", "a/p.yaml:2:1: patchesStrategicMerge: a patch without kind and metadata.name: write what the object has that it changes", false},
	{"patchesStrategicMerge: [j.yaml]", "a/j.yaml:1:1: patchesStrategicMerge: want an object with apiVersion, kind and metadata.name", false},
	{"patchesStrategicMerge: [empty.yaml]", "a/kustomization.yaml:2:25: patchesStrategicMerge: an empty file: want an object", false},
	{"patchesJson6902: [{target: {kind: ConfigMap, name: x}, path: p.yaml}]", "a/p.yaml:2:1: patchesJson6902: want a list of operations (a JSON patch); a merge patch goes into patches", false},
	{"patchesJson6902: [{target: {kind: ConfigMap}, path: j.yaml}]", "a/kustomization.yaml:2:28: patchesJson6902: target.name: missing", false},
	{"patchesJson6902: [{target: {kind: ConfigMap, name: x}, path: empty.yaml}]", "a/kustomization.yaml:2:19: patchesJson6902: no operations: want a list of them", false},
	{"patchesJson6902: [{path: j.yaml}]", "a/kustomization.yaml:2:19: patchesJson6902: a list of operations without a target", false},
	{"transformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: t}, patch: \"{data: {a: b}}\"}']", "a/kustomization.yaml:2:16: PatchTransformer: a patch without kind and metadata.name", false},
	{"transformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: t}}']", "a/kustomization.yaml:2:16: PatchTransformer: no patch: write it in patch", false},
}

// TestBadPatches: the problem of a patch is at its own place and says what to do,
// in no words of kustomize's. Kustomize refuses the same.
func TestBadPatches(t *testing.T) {
	for _, bad := range badPatches {
		files := fstest.MapFS{
			"a/kustomization.yaml": {Data: []byte("resources: [x.yaml]\n" + bad.entry)},
			"a/x.yaml":             {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}")},
			"a/p.yaml":             {Data: []byte("# a merge patch\ndata: {a: c}\n")},
			"a/j.yaml":             {Data: []byte("- {op: remove, path: /data/a}\n")},
			"a/empty.yaml":         {Data: []byte("# nothing\n")},
		}
		_, problems := Build(config.Files(files), "a", nil)
		if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), bad.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", bad.entry, problems, bad.want)
		}
		if refused := kustomizeRefuses(t, files); refused == bad.silent {
			t.Errorf("%s: kustomize refuses it: %t", bad.entry, refused)
		}
	}
}

// TestFoldersInCauses: a cause shows folders as the monorepo names them, and
// places in objects as they are.
func TestFoldersInCauses(t *testing.T) {
	files := fstest.MapFS{
		"a/kustomization.yaml": {Data: []byte("resources: [x.yaml]\npatches: [{patch: '- {op: test, path: /data/a, value: c}', target: {kind: ConfigMap}}]")},
		"a/x.yaml":             {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}")},
	}
	_, problems := Build(config.Files(files), "a", nil)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "/data/a") {
		t.Errorf("got %v, want one problem with /data/a", problems)
	}
	c := &closure{folders: map[string]*kustomization{"a": nil, "a/b": nil}}
	root := &kustomization{doc: &document.Document{File: "a/kustomization.yaml", Node: &yaml.Node{}}}
	for cause, want := range map[string]string{"cannot read /a/b": "cannot read a/b", "no file '/a/b/c.yaml'": "no file 'a/b/c.yaml'", "no value at /": "no value at /"} {
		if got := c.explain(root, errors.New(cause)).Message; got != "kustomize: "+want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// kustomizeRefuses says whether kustomize alone fails on the folder "a". Of some
// patches without a target it panics.
func kustomizeRefuses(t *testing.T, files fstest.MapFS) (refused bool) {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	for name, file := range files {
		if err := disk.WriteFile("/"+name, file.Data); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { refused = refused || recover() != nil }()
	_, err := run(disk, "a", false, nil, func() {})
	return err != nil
}
