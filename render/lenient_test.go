// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
)

// TestWhatOthersWrote renders documents as people and tools write them for kubectl and
// kustomize: they mean what they mean there. The values were read by kubectl 1.36
// (`kubectl create --dry-run=client -o json`) and kustomize 5.8.
func TestWhatOthersWrote(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop}\nspec:\n  containers: [{name: main, image: example.com/x:1}]\n"
	const job = "apiVersion: batch/v1\nkind: Job\nspec:\n  template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.com/x:1}]}}\n"
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop}\n"
	compilers := map[string]*Compiler{"kubernetes": {}, "strict": {}}
	for _, c := range []struct {
		name, document string
		want           string // a part of the object, or of the problem
		strict         string // the same under `yaml: strict`; empty: no matter
	}{
		{"octal mode", pod + "  volumes: [{name: v, configMap: {name: c, defaultMode: 0755}}]\n", `"defaultMode":493`, "is octal to some"},
		{"word for a boolean", pod + "  hostNetwork: no\n", `"hostNetwork":false`, "is a boolean to some"},
		{"word for a text", config + "data: {a: yes}\n", "data.a: want a string, got the boolean true; it is a word that is a boolean to some YAML readers", ""},
		{"number that is not octal", config + "data: {a: 09}\n", "a number that is octal to some YAML readers", ""},
		{"date", config + "data: {a: 2001-01-01}\n", `"a":"2001-01-01"`, `"a":"2001-01-01"`},
		{"status", pod + "status: {phase: Running}\n", `"kind":"Pod","metadata"`, ""},
		{"creationTimestamp", strings.Replace(pod, "name: p", "name: p, creationTimestamp: null", 1), `"name":"p"`, ""},
		{"managed-by of others", strings.Replace(config, "{name: c", "{labels: {app.kubernetes.io/managed-by: Helm}, name: c", 1), `"app.kubernetes.io/managed-by":"Helm"`, ""},
		{"no line feed at the end", config + "data:\n  a: |\n    text", `"a":"text\n"`, ""},
		{"Job that goes", job + "  ttlSecondsAfterFinished: 60\nmetadata: {name: j, namespace: shop}\n", `"ttlSecondsAfterFinished":60`, ""},
		{"generateName of a hook", job + "metadata: {generateName: migrate-, namespace: shop, annotations: {swell.sh/hook: before}}\n", `"name":"migrate-`, ""},
		{"generateName of others", "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: c-, namespace: shop}\n", "metadata.generateName: an object that is applied again and again needs a name", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for setting, want := range map[string]string{"kubernetes": c.want, "strict": c.strict} {
				files := exampleFiles(t, ".")
				files["swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\nspec: {yaml: " + setting + "}\n")}
				files["services/shop/notes/x.yaml"] = &fstest.MapFile{Data: []byte(c.document)}
				if got := seenIn(t, compilers[setting], files); !strings.Contains(got, want) {
					t.Errorf("%s: got\n%s\nwant %s", setting, got, want)
				}
			}
		})
	}
}

// TestKustomizeReadsAsKustomizeDoes: of a word, kustomize makes a text, and of a date
// another one.
func TestKustomizeReadsAsKustomizeDoes(t *testing.T) {
	files := exampleFiles(t, ".")
	files["services/shop/notes/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [x.yaml]\n")}
	files["services/shop/notes/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop}\ndata: {a: yes, b: 2001-01-01}\n")}
	if got, want := seenIn(t, &Compiler{}, files), `"data":{"a":"yes","b":"2001-01-01T00:00:00Z"}`; !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant %s", got, want)
	}
}

// TestGeneratedNameIsStable: the same hook has the same name, another one another name.
func TestGeneratedNameIsStable(t *testing.T) {
	var c Compiler
	name := func(image string) string {
		files := exampleFiles(t, ".")
		files["services/shop/notes/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: m-, namespace: shop, annotations: {swell.sh/hook: before}}\n" +
			"spec:\n  template: {spec: {restartPolicy: Never, containers: [{name: main, image: " + image + "}]}}\n")}
		_, after, _ := strings.Cut(seenIn(t, &c, files), `"name":"m-`)
		name, _, _ := strings.Cut(after, `"`)
		return name
	}
	if one, again, other := name("example.com/x:1"), name("example.com/x:1"), name("example.com/x:2"); one == "" || one != again || one == other {
		t.Errorf("got %q, again %q, of another image %q", one, again, other)
	}
}

// seenIn are the objects of services/shop/notes on its first target, or its problems.
func seenIn(t *testing.T, c *Compiler, files fstest.MapFS) string {
	t.Helper()
	files["services/shop/notes/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: notes}\nspec: {placement: {topology: cluster, match: {labels: {region: sas}}}}\n")}
	snapshot := c.Snapshot("", config.Files(files))
	var text strings.Builder
	for _, p := range snapshot.Problems {
		text.WriteString(p.String() + "\n")
	}
	if unit := snapshot.Units.Get("services/shop/notes"); unit != nil && text.Len() == 0 {
		bundles, err := snapshot.Bundles(unit)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range bundles[0].Objects {
			text.Write(o.JSON)
		}
	}
	return text.String()
}
