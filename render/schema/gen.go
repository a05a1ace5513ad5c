// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// This program makes kubernetes-X.Y.json.gz out of the OpenAPI v3 documents
// that the Kubernetes source carries: every kind that can be created, and the
// types they are made of, without descriptions and defaults.
package main

import (
	"compress/gzip"
	"encoding/json"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
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
	return filepath.Join(module.Dir, "api", "openapi-spec", "v3")
}

func write(name, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "api*_openapi.json"))
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
	log.Printf("%s: %d kinds, %d types", name, len(list), len(used))
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
	for _, key := range []string{"description", "default", "x-kubernetes-group-version-kind", "x-kubernetes-unions"} {
		delete(schema, key)
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
