// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
)

// leaky is a monorepo with one unit more: files of services/a/x, or at the root where a name begins with /.
func leaky(files map[string]string) *planter {
	p := commonSecrets("2", "plain")
	for name, content := range files {
		if rooted, ok := strings.CutPrefix(name, "/"); ok {
			p.files[rooted] = content
		} else {
			p.files["services/a/x/"+name] = content
		}
	}
	return p
}

// TestLeaks: values that excerpts and messages showed, each planted as k7Y8mPcUTVx9, or in words.
func TestLeaks(t *testing.T) {
	const chart = "apiVersion: swell.sh/v1\nkind: HelmChart\nmetadata: {name: x}\nspec:\n  chart: /charts/x\n"
	t.Chdir(t.TempDir())
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"values of a chart on the line of a problem": {map[string]string{"x.yaml": chart +
			"  namespace: shop\n  values: {password: k7Y8mPcUTVx9}\n  valuess: {a: b}\n"}, "valuess"},
		"values of a chart under a problem": {map[string]string{
			"/charts/x/Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n", "/charts/x/templates/a.yaml": "a: b\n",
			"/charts/x/values.schema.json": `{"properties": {"auth": {"properties": {"password": {"maxLength": 3}}}}}`,
			"x.yaml":                       chart + "  namespace: shop\n  values:\n    auth: {password: k7Y8mPcUTVx9}\n"},
			"values.auth.password"},
		"an unknown root key of a Secret": {map[string]string{"x.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: " +
			"shop}\nCorrect-Horse9: v\nhorsebattery: v\n"}, "(secret): unknown field"},
		"a key of a secret map": {map[string]string{"x.yaml": "apiVersion: easy.example.com/v1\nkind: Vault\nmetadata: " +
			"{name: x}\nspec:\n  creds:\n    Correct-Horse9: [v]\n"}, "spec.creds.(secret)"},
		"the second line of a misindented private key": {map[string]string{"x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: " +
			"{name: x, namespace: shop}\ndata:\n  tls.key: |\n    -----BEGIN PRIVATE KEY-----\n" +
			"k7Y8mPcUTVx9k7Y8mPcUTVx9\n    -----END PRIVATE KEY-----\n"}, "services/a/x/x.yaml"},
		"the password of a URL": {map[string]string{"x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shop}\n" +
			"data: {a: [\"https://u:k7Y8mPcUTVx9@host/\"]}\n"}, "data.a"},
		"the query of a URL": {map[string]string{"/fleet/x.yaml": "apiVersion: swell.sh/v1\nkind: Mask\nmetadata: {name: x}\nspec: " +
			"{where: {units: [\"https://host/?access_token=k7Y8mPcUTVx9\"]}}\n"}, "spec.where.units"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := strings.ReplaceAll(name, " ", "-")
			leaky(test.files).write(t, dir)
			var stdout, stderr bytes.Buffer
			for _, args := range [][]string{{"--excerpt"}, {"-o", "json"}} {
				execute(t.Context(), writingTo(&stdout, &stderr), append([]string{"check", dir, "--cache=none"}, args...))
			}
			got := stdout.String() + stderr.String()
			if where := newFinder([]string{"k7Y8mPcUTVx9", "Correct-Horse9", "horsebattery"}).find(got); where != "" {
				t.Errorf("shows %s\n%s", where, got)
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("want %s in\n%s", test.want, got)
			}
		})
	}
}

// plantedField is a document with one value in it.
type plantedField struct {
	path string
	root any
}

// plantedFields are documents of a kind with the value in each field of it that a text may stand in, be it
// the right form for the field or not: mappings in lists, maps by key and value.
func plantedFields(m protoreflect.MessageDescriptor, value any) (all []plantedField) {
	const deepest = 6
	var below func(m protoreflect.MessageDescriptor, path string, depth int, in func(any) any)
	below = func(m protoreflect.MessageDescriptor, path string, depth int, in func(any) any) {
		for i := range m.Fields().Len() {
			field := m.Fields().Get(i)
			name := field.JSONName()
			wrap := func(v any) any {
				switch {
				case field.IsMap():
					v = map[string]any{"k": v}
				case field.IsList():
					v = []any{v}
				}
				return in(map[string]any{name: v})
			}
			all = append(all, plantedField{path + "." + name, wrap(value)})
			inner := field.Message()
			if field.IsMap() {
				inner = field.MapValue().Message()
				all = append(all, plantedField{path + "." + name + " (key)",
					in(map[string]any{name: map[string]any{fmt.Sprint(value): "x"}})})
			}
			if inner != nil && depth < deepest && inner.ParentFile() == m.ParentFile() {
				below(inner, path+"."+name, depth+1, wrap)
			}
		}
	}
	if spec := m.Fields().ByName("spec"); spec != nil {
		below(spec.Message(), "spec", 0, func(v any) any { return map[string]any{"spec": v} })
	} else {
		below(m, "", 0, func(v any) any { return v })
	}
	return all
}

// TestPlantedFields: a credential in any field of any document of swell's own stands in no message
// and no excerpt. A new field is in it as soon as it is in the schema.
func TestPlantedFields(t *testing.T) {
	t.Chdir(t.TempDir())
	const token, second = "k7Y8mPcUTVx9rZ", "q3W5nLsDGHb2vX"
	f := newFinder([]string{token, second})
	values := []string{
		"https://user:" + token + "@host/path?access_token=" + second,
		"postgres://user:" + token + "@host/x y",
		"-----BEGIN PRIVATE KEY-----\n" + token + token + "\n" + second + "==\n-----END PRIVATE KEY-----\n",
	}
	count := 0
	look := func(document, text string) {
		if where := f.find(text); where != "" {
			t.Errorf("%s: shows %s", document, where)
		}
	}
	for _, m := range config.OwnDocuments() {
		p := &planter{files: map[string]string{}}
		maps.Copy(p.files, commonSecrets("2", "plain").files)
		kind := string(m.Name())
		for i, value := range values {
			for j, field := range plantedFields(m, value) {
				count++
				root := map[string]any{"apiVersion": "swell.sh/v1", "kind": kind, "metadata": map[string]any{"name": "x"}}
				maps.Copy(root, field.root.(map[string]any))
				text, err := yaml.Marshal(root)
				if err != nil {
					t.Fatal(err)
				}
				switch kind {
				case "Daemon":
					_, problems := config.ReadDaemon("daemon.yaml", text)
					look(kind+" "+field.path, problems.Error())
				case "HelmChart":
					p.files[fmt.Sprintf("services/a/c%d-%d/x.yaml", i, j)] = string(text)
				case "EasyKind":
					p.files[fmt.Sprintf("kinds/k%d-%d/kind.yaml", i, j)] = string(text)
				case "Defaults":
					p.files[fmt.Sprintf("services/d%d-%d/u/x.yaml", i, j)] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"
					p.files[fmt.Sprintf("services/d%d-%d/swell.yaml", i, j)] = string(text)
				default:
					p.files[fmt.Sprintf("fleet/f%d-%d.yaml", i, j)] = string(text)
				}
			}
		}
		p.write(t, kind)
		var stdout, stderr bytes.Buffer
		for _, args := range [][]string{{"--excerpt"}, {"-o", "json"}} {
			execute(t.Context(), writingTo(&stdout, &stderr), append([]string{"check", kind, "--cache=none"}, args...))
		}
		if !strings.Contains(stdout.String(), "(SW") && kind != "Daemon" {
			t.Errorf("%s: no problem:\n%.400s", kind, stdout.String()+stderr.String())
		}
		for line := range strings.Lines(stdout.String() + stderr.String()) {
			look(kind, line)
		}
	}
	t.Logf("%d documents", count)
}
