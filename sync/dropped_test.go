// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/diff"
)

// baseTrees is a source that knows one commit.
type baseTrees struct {
	Source
	tree config.Tree
}

func (b baseTrees) Tree(config.Commit) (config.Tree, error) { return b.tree, nil }

// Between: no commit is between two.
func (b baseTrees) Between(_, to config.Commit) ([]config.Commit, error) {
	return []config.Commit{to}, nil
}

const (
	extra      = "services/shop/extra"
	extraFirst = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first, namespace: shop-rz00a}\n"
	extraOther = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: shop-rz00a}\ndata: {a: b}\n"
	extraJSON  = "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"ConfigMap\",\n" +
		"\t\"metadata\": {\"name\": \"third\", \"namespace\": \"shop-rz00a\"}\n}\n"
)

// withExtra adds a unit of three files to the example.
func withExtra(f files) files {
	f[extra+"/swell.yaml"] = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: extra}\n" +
		"spec: {placement: {match: {labels: {ring: canary}}}}\n"
	f[extra+"/first.yaml"], f[extra+"/other.yaml"], f[extra+"/third.json"] = extraFirst, extraOther, extraJSON
	return f
}

// noManifests are contents of a file that somebody, or something, has spoiled.
var noManifests = map[string]string{
	"a pointer of LFS": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
	"a page":           "<html><body>503</body></html>\n",
	"a list":           "- op: add\n  path: /a\n",
	"a number":         "42\n",
	"a sops file":      "data: ENC[AES256_GCM,data:abc=,type:str]\nsops: {version: 3.9.0}\n",
	"no first lines":   "metadata: {name: other, namespace: shop-rz00a}\ndata: {a: b}\n",
	"Kind":             "apiVersion: v1\nKind: ConfigMap\nmetadata: {name: other}\n",
	"nothing":          "",
	"a line":           "---\n",
	"only comments":    "# gone\n",
	"commented out":    "# apiVersion: v1\n# kind: ConfigMap\n# metadata: {name: other}\n",
	"an empty list":    "apiVersion: v1\nkind: List\nitems: []\n",
	"values":           "replicas: 2\nimage: {tag: v1}\n",
	"a conflict":       "<<<<<<< HEAD\n" + extraOther + "=======\n" + extraOther + ">>>>>>> other\n",
}

// TestAFileThatIsNoManifestAnyMore: its objects stay, and preview and daemon say why.
func TestAFileThatIsNoManifestAnyMore(t *testing.T) {
	t.Parallel()
	for name, content := range noManifests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, why := previewEdit(t, func(f files) { f[extra+"/other.yaml"] = content })
			if len(report.Changes) > 0 || !strings.HasPrefix(why, extra+"/other.yaml") {
				t.Errorf("changes %v, kept %q", report.Changes, why)
			}
		})
	}
}

// TestFormsOfAUnit: what becomes of its objects when somebody changes what its folder is.
func TestFormsOfAUnit(t *testing.T) {
	t.Parallel()
	const kustomization = extra + "/kustomization.yaml"
	for name, test := range map[string]struct {
		edit func(files)
		kept string // in the reason; empty: nothing is kept
		gone int    // how many objects are deleted
	}{
		"the file is removed": {func(f files) { delete(f, extra+"/other.yaml") }, "", 1},
		"its document moves": {func(f files) {
			f[extra+"/first.yaml"] += "---\n" + extraOther
			f[extra+"/other.yaml"] = "a: b\n"
		}, "", 0},
		"another file changes": {func(f files) {
			f[extra+"/first.yaml"] += "data: {c: d}\n"
			f[extra+"/values.yaml"] = "a: b\n"
		}, "", 0},
		"JSON that is an object no more": {func(f files) { f[extra+"/third.json"] = "{}" }, extra + "/third.json: holds no documents", 0},
		"no JSON":                        {func(f files) { delete(f, extra+"/third.json") }, "", 1},
		"nothing but JSON for others": {func(f files) {
			delete(f, extra+"/first.yaml")
			delete(f, extra+"/other.yaml")
			f[extra+"/third.json"] = "[1]"
		}, extra + "/third.json: holds no documents", 0},
		"nothing but JSON": {func(f files) {
			delete(f, extra+"/first.yaml")
			delete(f, extra+"/other.yaml")
		}, "", 2},
		"a kustomization without it": {func(f files) { f[kustomization] = "resources: [first.yaml, third.json]\n" },
			extra + "/other.yaml: " + kustomization + " does not name it", 0},
		"a kustomization with both": {func(f files) { f[kustomization] = "resources: [first.yaml, other.yaml, third.json]\n" }, "", 0},
		"a chart": {func(f files) { f[extra+"/Chart.yaml"] = "apiVersion: v2\nname: x\nversion: 1.0.0\n" },
			"a Helm chart", 0},
		"left out by .swellignore": {func(f files) { f[extra+"/.swellignore"] = "other.yaml\n" }, extra + "/other.yaml", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, why := previewEdit(t, test.edit)
			gone := 0
			for _, c := range report.Changes {
				if c.Action == diff.Deleted {
					gone += len(c.Targets)
				}
			}
			if gone != test.gone || (why == "") != (test.kept == "") || !strings.Contains(why, test.kept) {
				t.Errorf("%d deleted, want %d; kept %q, want %q", gone, test.gone, why, test.kept)
			}
		})
	}
}

// previewEdit compares the preview of an edit with what the daemon makes of it. why says
// that the unit keeps what it has.
func previewEdit(t *testing.T, edit func(files)) (report *diff.Report, why string) {
	t.Helper()
	f := withExtra(exampleFiles(t))
	var compiler render.Compiler
	base, baseTree := compiler.Snapshot("base", f.tree()), f.tree()
	edit(f)
	report = comparePreview(t, newFleetOf(t, t.TempDir(), cache.Memory(), base, baseTree), &compiler, base, baseTree, f)
	if len(report.Kept) > 0 {
		return report, report.Kept[0].Reason
	}
	if head := compiler.Snapshot("head", f.tree()); len(head.Problems) > 0 {
		return report, head.Problems[0].String()
	}
	return report, ""
}

// TestPropertyAFileThatStaysLosesNothing: whatever is written into the file of a unit that
// is no document, no object goes while the file is there.
func TestPropertyAFileThatStaysLosesNothing(t *testing.T) {
	f := withExtra(exampleFiles(t))
	var compiler render.Compiler
	base := compiler.Snapshot("base", f.tree())
	lines := []string{"a: b", "- c", "metadata: {name: other}", "spec: {}", "# kind: ConfigMap", "apiVersion: v1", "kind: List", "items: []",
		"---", "<p>", "{}", "text", "", "...", "\ufeff"}
	rapidtest.Check(t, 30, 0, func(rt *rapid.T) {
		f[extra+"/other.yaml"] = strings.Join(rapid.SliceOfN(rapid.SampledFrom(lines), 0, 4).Draw(rt, "lines"), "\n")
		report, err := Preview(base, compiler.Snapshot("head", f.tree()), &compiler, config.DefaultGuard)
		if err != nil {
			rt.Fatal(err)
		}
		if slices.ContainsFunc(report.Changes, func(c diff.Change) bool { return c.Action == diff.Deleted || c.Action == diff.Held }) {
			rt.Fatalf("%q: %v", f[extra+"/other.yaml"], report.Changes)
		}
	})
}
