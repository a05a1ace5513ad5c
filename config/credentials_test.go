// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"testing"
)

// credentialField is how the fields of the configuration are called that name files.
var credentialField = regexp.MustCompile(`Files?$|^Kubeconfig$`)

// Every field of the configuration that names a file is a credential: a new one is not forgotten.
func TestCredentials(t *testing.T) {
	d := &Daemon{Clusters: map[string]ClusterAccess{"a": {}}, Endpoints: map[string]Endpoint{"a": {}}}
	d.Secrets.Tenants = map[string]SecretKeys{"a": {}}
	var want []string
	name := func(field reflect.StructField) string {
		want = append(want, fmt.Sprintf("/%s.%d", field.Name, len(want)))
		return want[len(want)-1]
	}
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Map:
			for _, key := range v.MapKeys() {
				item := reflect.New(v.Type().Elem()).Elem()
				fill(item)
				v.SetMapIndex(key, item)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				field := v.Type().Field(i)
				switch {
				case !field.IsExported():
				case !credentialField.MatchString(field.Name):
					fill(v.Field(i))
				case field.Type.Kind() == reflect.Slice:
					v.Field(i).Set(reflect.ValueOf([]string{name(field)}))
				default:
					v.Field(i).SetString(name(field))
				}
			}
		}
	}
	fill(reflect.ValueOf(d).Elem())
	var got []string
	for _, c := range d.Credentials() {
		got = append(got, c.File)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) || len(want) < 10 {
		t.Errorf("got %q, want %q", got, want)
	}
}
