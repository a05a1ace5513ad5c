// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// This program makes unset.json of the Go types of Kubernetes' API: for each type the fields
// whose empty text, or zero, the API itself takes for no value. These are the scalars that
// are no pointers and are left out when they are empty: what a server decodes into such a
// field cannot tell the two apart. Booleans are not among them: false has no other default,
// and somebody who writes it wants it held.
package main

import (
	"encoding/json"
	"log"
	"os"
	"reflect"
	"slices"
	"strings"

	definitions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// more are those of the one built-in kind whose types are in a module of their own,
// k8s.io/kube-aggregator/pkg/apis/apiregistration/v1, and a field that is written when it is
// empty, but has a default.
var more = map[string][]string{
	"io.k8s.api.rbac.v1.RoleRef":                                          {"apiGroup"},
	"io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceSpec":   {"caBundle", "group", "version"},
	"io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference": {"name", "namespace"},
}

func main() {
	log.SetFlags(0)
	known := scheme.Scheme
	if err := definitions.AddToScheme(known); err != nil {
		log.Fatal(err)
	}
	all := map[string][]string{}
	for name, fields := range more {
		all[name] = fields
	}
	seen := map[reflect.Type]bool{}
	for _, t := range known.AllKnownTypes() {
		visit(t, all, seen)
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("unset.json", append(text, '\n'), 0o644); err != nil {
		log.Fatal(err)
	}
}

func visit(t reflect.Type, all map[string][]string, seen map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		visit(t.Elem(), all, seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[t] {
		return
	}
	seen[t] = true
	model, named := reflect.New(t).Interface().(interface{ OpenAPIModelName() string })
	for i := range t.NumField() {
		field := t.Field(i)
		visit(field.Type, all, seen)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if named && name != "" && name != "-" && strings.Contains(options, "omitempty") && isScalar(field.Type) {
			all[model.OpenAPIModelName()] = append(all[model.OpenAPIModelName()], name)
		}
	}
	if named {
		slices.Sort(all[model.OpenAPIModelName()])
		if len(all[model.OpenAPIModelName()]) == 0 {
			delete(all, model.OpenAPIModelName())
		}
	}
}

func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int32, reflect.Int64:
		return true
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8
	}
	return false
}
