// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// This program makes kubernetes-X.Y.json.gz out of the OpenAPI v3 documents
// that the Kubernetes source carries: every kind that can be created, and the
// types they are made of, without descriptions, and with no defaults but those
// of scalars. The documents leave out which texts an enum takes; those come
// from the Go code that an API server makes its own documents from.
package main

import (
	"compress/gzip"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

type kind struct {
	Group      string `json:"group,omitempty"`
	Version    string `json:"version"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced,omitempty"`
	Type       string `json:"type"`
}

func main() {
	log.SetFlags(0)
	for _, release := range os.Args[1:] {
		minor := regexp.MustCompile(`^v(\d+\.\d+)\.`).FindStringSubmatch(release)[1]
		write("kubernetes-"+minor+".json.gz", download(release))
	}
}

func download(release string) string {
	out, err := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes@"+release).Output()
	check(err)
	var module struct{ Dir string }
	check(json.Unmarshal(out, &module))
	return module.Dir
}

func write(name, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "api", "openapi-spec", "v3", "api*_openapi.json"))
	check(err)
	all := map[string]map[string]any{}
	kinds := map[string]kind{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(err)
		var doc struct {
			Paths      map[string]map[string]json.RawMessage
			Components struct{ Schemas map[string]map[string]any }
		}
		check(json.Unmarshal(text, &doc))
		for name, schema := range doc.Components.Schemas {
			all[name] = schema
		}
		for path, verbs := range doc.Paths {
			// What can be replaced by name is an object; what can only be
			// posted is a request, such as a review or a binding.
			if put, ok := verbs["put"]; ok && strings.HasSuffix(path, "/{name}") {
				addKind(kinds, path, put)
			}
		}
	}
	enums := addEnums(all, filepath.Join(dir, "pkg", "generated", "openapi", "zz_generated.openapi.go"))
	used := map[string]any{}
	list := []kind{}
	for _, k := range kinds {
		list = append(list, k)
		use(all, used, k.Type)
	}
	sort.Slice(list, func(i, j int) bool {
		return list[i].Group+"/"+list[i].Version+"/"+list[i].Kind < list[j].Group+"/"+list[j].Version+"/"+list[j].Kind
	})
	f, err := os.Create(name)
	check(err)
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	check(err)
	check(json.NewEncoder(z).Encode(map[string]any{"kinds": list, "types": used}))
	check(z.Close())
	check(f.Close())
	log.Printf("%s: %d kinds, %d types, %d enums", name, len(list), len(used), enums)
}

// addEnums adds the values of enums to the properties of all types, and counts
// them. In the generated code each type has a function, named for it, that
// holds a literal of its schema.
func addEnums(all map[string]map[string]any, file string) int {
	code, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	check(err)
	functions := map[string]*ast.FuncDecl{}
	for _, d := range code.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			functions[f.Name.Name] = f
		}
	}
	count := 0
	for name, schema := range all {
		short := "k8sio_" + strings.TrimPrefix(name, "io.k8s.")
		if _, path, ok := strings.Cut(name, ".pkg."); ok {
			short = "pkg_" + path
		}
		f := functions["schema_"+strings.ReplaceAll(short, ".", "_")]
		properties, _ := schema["properties"].(map[string]any)
		if f == nil || properties == nil {
			continue
		}
		for field, values := range enumsOf(f) {
			property := properties[field].(map[string]any)
			for _, inner := range []string{"items", "additionalProperties"} {
				if below, ok := property[inner].(map[string]any); ok {
					property = below
				}
			}
			property["enum"] = values
			count++
		}
	}
	return count
}

// enumsOf finds the enums in the literal of a schema, by property. Each
// property here is a text or a list of texts.
func enumsOf(f *ast.FuncDecl) map[string][]any {
	enums := map[string][]any{}
	property := ""
	ast.Inspect(f, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		if literal, ok := pair.Value.(*ast.CompositeLit); ok {
			switch key := pair.Key.(type) {
			case *ast.BasicLit:
				if literal.Type == nil { // of map[string]spec.Schema
					property, _ = strconv.Unquote(key.Value)
				}
			case *ast.Ident:
				if key.Name == "Enum" {
					enums[property] = texts(literal)
					return false
				}
			}
		}
		return true
	})
	return enums
}

func texts(list *ast.CompositeLit) (values []any) {
	for _, e := range list.Elts {
		text, err := strconv.Unquote(e.(*ast.BasicLit).Value)
		check(err)
		values = append(values, text)
	}
	return values
}

func addKind(kinds map[string]kind, path string, put json.RawMessage) {
	var op struct {
		GVK         *kind `json:"x-kubernetes-group-version-kind"`
		RequestBody struct {
			Content map[string]struct {
				Schema struct {
					Ref   string `json:"$ref"`
					AllOf []struct {
						Ref string `json:"$ref"`
					} `json:"allOf"`
				}
			}
		} `json:"requestBody"`
	}
	check(json.Unmarshal(put, &op))
	if op.GVK == nil {
		return
	}
	k := *op.GVK
	k.Namespaced = strings.Contains(path, "/namespaces/{namespace}/")
	for _, body := range op.RequestBody.Content {
		k.Type = body.Schema.Ref
		if len(body.Schema.AllOf) > 0 {
			k.Type = body.Schema.AllOf[0].Ref
		}
	}
	k.Type = strings.TrimPrefix(k.Type, "#/components/schemas/")
	if k.Type != "" {
		kinds[k.Group+"/"+k.Version+"/"+k.Kind] = k
	}
}

// use copies a type and all it refers to, stripped.
func use(all map[string]map[string]any, used map[string]any, name string) {
	if used[name] != nil {
		return
	}
	schema := all[name]
	used[name] = schema
	strip(all, used, schema)
}

func strip(all map[string]map[string]any, used map[string]any, schema map[string]any) {
	for _, key := range []string{"description", "x-kubernetes-group-version-kind", "x-kubernetes-unions", "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key"} {
		delete(schema, key)
	}
	switch schema["default"].(type) {
	case map[string]any, []any:
		delete(schema, "default")
	}
	if ref, ok := schema["$ref"].(string); ok {
		use(all, used, strings.TrimPrefix(ref, "#/components/schemas/"))
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if sub, ok := schema[key].(map[string]any); ok {
			strip(all, used, sub)
		}
	}
	if allOf, ok := schema["allOf"].([]any); ok {
		for _, sub := range allOf {
			strip(all, used, sub.(map[string]any))
		}
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		for _, sub := range properties {
			strip(all, used, sub.(map[string]any))
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
