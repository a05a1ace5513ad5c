// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/easy"
)

var update = flag.Bool("update", false, "write what comes out into testdata")

// easyOf compiles the first .proto of an archive and its only kind.
func easyOf(t testing.TB, archive *txtar.Archive) *easy.Schema {
	t.Helper()
	main := archive.Files[0].Name
	file, problems := document.CompileProto(main, func(name string) ([]byte, error) {
		if content, ok := easy.ProtoFile(name); ok {
			return content, nil
		}
		for _, f := range archive.Files {
			if f.Name == name {
				return f.Data, nil
			}
		}
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	k, problems := easy.New(file.Messages().Get(0))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return k
}

func parse(t testing.TB, name string) *txtar.Archive {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func indented(t testing.TB, value any) []byte {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asYAML(t testing.TB, value any) []byte {
	t.Helper()
	b, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGolden holds the schemas of each archive against the files in it.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 2 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive := parse(t, filepath.Base(name))
			k := easyOf(t, archive)
			got := []txtar.File{
				{Name: "crd.yaml", Data: asYAML(t, k.CRD())},
				{Name: "schema.json", Data: indented(t, k.JSONSchema())},
				{Name: "openapi.json", Data: indented(t, easy.OpenAPI([]*easy.Schema{k}, nil))},
			}
			if *update {
				kept := *archive
				kept.Files = nil
				for _, f := range archive.Files {
					if path.Ext(f.Name) == ".proto" {
						kept.Files = append(kept.Files, f)
					}
				}
				kept.Files = append(kept.Files, got...)
				if err := os.WriteFile(name, txtar.Format(&kept), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want := map[string]string{}
			for _, f := range archive.Files {
				want[f.Name] = string(f.Data)
			}
			for _, f := range got {
				if diff := cmp.Diff(want[f.Name], string(f.Data)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", f.Name, diff)
				}
			}
		})
	}
}

// TestDeterministic compiles and writes the same kind again and again.
func TestDeterministic(t *testing.T) {
	archive := parse(t, "everything.txtar")
	write := func() string {
		k := easyOf(t, archive)
		all := []*easy.Schema{k}
		return string(asYAML(t, k.CRD())) + string(indented(t, k.JSONSchema())) + string(indented(t, easy.OpenAPI(all, nil))) +
			string(indented(t, easy.EditorSchema(all, nil, true)))
	}
	first := write()
	for range 10 {
		if diff := cmp.Diff(first, write()); diff != "" {
			t.Fatal(diff)
		}
	}
}
