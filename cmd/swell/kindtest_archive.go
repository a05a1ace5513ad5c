// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
)

const (
	wantPrefix   = "want/"
	wantProblems = "want/problems.txt"
)

// kindTest is one archive of a kind's tests. The format is in the help of
// swell kind test.
type kindTest struct {
	kind   string // the kind's folder, "kinds/runtime"
	file   string // of the archive, "kinds/runtime/tests/basic.txtar"
	raw    []byte
	inputs []txtar.File // the unit's files, and those of the fleet under "fleet/"
	want   map[string]string
}

// name is "runtime/basic".
func (t *kindTest) name() string {
	return path.Base(t.kind) + "/" + strings.TrimSuffix(path.Base(t.file), ".txtar")
}

func readKindTest(kind, file string, raw []byte) (*kindTest, error) {
	t := &kindTest{kind: kind, file: file, raw: raw, want: map[string]string{}}
	seen := map[string]bool{}
	for _, f := range txtar.Parse(raw).Files {
		switch {
		case !fs.ValidPath(f.Name) || f.Name == ".":
			return nil, fmt.Errorf("%s: file %q: want a path relative to the unit's folder", file, f.Name)
		case seen[f.Name]:
			return nil, fmt.Errorf("%s: file %q: stands in the archive twice", file, f.Name)
		case strings.HasPrefix(f.Name, wantPrefix):
			t.want[f.Name] = string(f.Data)
		default:
			t.inputs = append(t.inputs, f)
		}
		seen[f.Name] = true
	}
	if len(t.inputs) == 0 {
		return nil, fmt.Errorf("%s: no files: want a unit's documents, like spec.yaml", file)
	}
	return t, nil
}

// What a test gets that does not bring its own.
const (
	defaultTestFleet = `apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: test-1, labels: {region: test}}
spec:
  cells:
  - {name: a}
  - {name: b}
`
	defaultTestRollout = `apiVersion: swell.sh/v1
kind: Rollout
metadata: {name: default}
spec:
  waves:
  - {name: all}
`
	defaultTestDefaults = `apiVersion: swell.sh/v1
kind: Defaults
metadata: {name: test}
spec: {tenant: test, placement: {topology: cell}}
`
)

// unit is the folder that the archive's files stand in.
func (t *kindTest) unit(folders config.Folders) string { return path.Join(folders.Units[0], t.name()) }

// files are those of a monorepo whose only unit is the test's.
func (t *kindTest) files(folders config.Folders) []txtar.File {
	var files []txtar.File
	add := func(name, content string) {
		files = append(files, txtar.File{Name: name, Data: []byte(content)})
	}
	own := map[string]bool{} // what the archive brings: Cluster, Rollout, Defaults
	for _, f := range t.inputs {
		switch below, fleet := strings.CutPrefix(f.Name, "fleet/"); {
		case fleet:
			own["Cluster"] = true
			docs, _ := document.ReadDocuments(f.Name, f.Data) // its problems are found again
			for _, doc := range docs {
				own[doc.Kind] = true
			}
			add(path.Join(folders.Fleet, below), string(f.Data))
		default:
			own["Defaults"] = own["Defaults"] || f.Name == "swell.yaml"
			add(path.Join(t.unit(folders), f.Name), string(f.Data))
		}
	}
	if !own["Cluster"] {
		add(path.Join(folders.Fleet, "default-cluster.yaml"), defaultTestFleet)
	}
	if !own["Rollout"] {
		add(path.Join(folders.Fleet, "default-rollout.yaml"), defaultTestRollout)
	}
	if !own["Defaults"] {
		add(path.Join(t.unit(folders), "swell.yaml"), defaultTestDefaults)
	}
	for _, folder := range folders.Units[1:] { // Load wants each of them
		add(path.Join(folder, ".keep"), "")
	}
	return files
}

// results are the want sections as they should be: the objects of each target
// or else the problems.
func (t *kindTest) results(s *render.Snapshot, folders config.Folders) (map[string]string, error) {
	got := map[string]string{}
	problems := slices.Clone(s.Repository.Problems)
	for _, p := range s.Problems {
		if s.Held || p.Unit != "" || config.Within(p.File, t.kind) {
			problems = append(problems, p)
		}
	}
	for _, unit := range s.Units.Sorted() {
		problems = append(problems, unit.Problems...)
		bundles, err := s.Bundles(unit)
		if err != nil {
			return nil, err
		}
		for _, bundle := range bundles {
			text, err := objectsText(bundle)
			if err != nil {
				return nil, err
			}
			name := wantPrefix + string(bundle.Target) + ".yaml"
			if got[name] != "" {
				got[name] += "---\n" // of another unit
			}
			got[name] += text
		}
	}
	if len(problems) > 0 {
		got[wantProblems] = t.problemsText(problems, folders)
	}
	return got, nil
}

// problemsText is one line a problem. Paths of the unit and of the fleet are
// those of the archive.
func (t *kindTest) problemsText(problems document.Problems, folders config.Folders) string {
	problems = problems.Sorted()
	for i, p := range problems {
		if below, ok := strings.CutPrefix(p.File, folders.Fleet+"/"); ok {
			problems[i].File = "fleet/" + below
		}
	}
	var b strings.Builder
	printProblems(&b, problems)
	unit := t.unit(folders)
	return strings.NewReplacer(unit+"/", "", unit, "unit").Replace(b.String())
}

// objectsText is a bundle's objects as YAML, as the kind made them: without the
// labels and annotations that swell adds to everything.
func objectsText(b *object.Bundle) (string, error) {
	var text strings.Builder
	for i, o := range b.Objects {
		var object map[string]any
		decoder := json.NewDecoder(bytes.NewReader(o.JSON))
		decoder.UseNumber()
		if err := decoder.Decode(&object); err != nil {
			return "", fmt.Errorf("%s: %w", o.ID, err)
		}
		metadata, _ := object["metadata"].(map[string]any)
		without(metadata, "labels", config.LabelsSet...)
		if labels, _ := metadata["labels"].(map[string]any); labels[config.LabelManagedBy] == config.ManagedBy {
			without(metadata, "labels", config.LabelManagedBy)
		}
		without(metadata, "annotations", config.AnnotationUnit)
		if config.MaySecret(o.ID.Kind) {
			hideValues(object)
		}
		plain, err := json.Marshal(o.Redactor().RedactValue(object))
		if err != nil {
			return "", fmt.Errorf("%s: %w", o.ID, err)
		}
		document, err := jsonToYAML(plain)
		if err != nil {
			return "", fmt.Errorf("%s: %w", o.ID, err)
		}
		if i > 0 {
			text.WriteString("---\n")
		}
		text.Write(document)
	}
	return text.String(), nil
}

// without removes keys of a field, and the field when it is empty then.
func without(m map[string]any, field string, keys ...string) {
	values, _ := m[field].(map[string]any)
	for _, key := range keys {
		delete(values, key)
	}
	if len(values) == 0 {
		delete(m, field)
	}
}

// hideValues replaces the values of a Secret by a hash, so that a change is
// seen and the value is not.
func hideValues(secret map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		values, _ := secret[field].(map[string]any)
		for key, value := range values {
			sum := sha256.Sum256(fmt.Append(nil, value))
			values[key] = "hidden, sha256 " + hex.EncodeToString(sum[:6])
		}
	}
}

// withWant is the archive with other want sections, at its end. All the rest
// stays byte for byte.
func withWant(raw []byte, want map[string]string) ([]byte, error) {
	var out bytes.Buffer
	keep := true
	for line := range bytes.Lines(raw) {
		if marker := txtar.Parse(line).Files; len(marker) == 1 {
			keep = !strings.HasPrefix(marker[0].Name, wantPrefix)
		}
		if keep {
			out.Write(line)
		}
	}
	if out.Len() > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
		out.WriteByte('\n')
	}
	inputs := len(txtar.Parse(out.Bytes()).Files)
	names := slices.Sorted(maps.Keys(want))
	for _, name := range names {
		fmt.Fprintf(&out, "-- %s --\n%s", name, want[name])
	}
	again := txtar.Parse(out.Bytes()).Files[inputs:]
	same := slices.EqualFunc(again, names, func(f txtar.File, name string) bool { return f.Name == name && string(f.Data) == want[name] })
	if !same {
		return nil, fmt.Errorf("a line of the results looks like the start of a file in the archive")
	}
	return out.Bytes(), nil
}
