// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRedact: values of Secrets that are common words hid field names and words
// of messages about anything else.
func TestRedact(t *testing.T) {
	const config = "apiVersion: v1\nkind: Config\nusers: [{name: admin, password: h4nter2x-password}]\n"
	for _, test := range []struct {
		name          string
		secrets       []string
		message, want string
	}{
		{"a common word", []string{"password", "username", "postgres", "https://", "postgres://", "template", "5432"},
			`spec.template: unknown field "username", did you mean "password"? postgres listens on 5432, https://host/x`, ""},
		{"a part of a word", []string{"ontainer", "passwords1", "replicas", "xreplicas"}, "spec.containerPort: 3 replicas, password", ""},
		{"parts of a file", []string{config}, "kind: Config: no such kind, apiVersion: v1, password: missing", ""},
		{"a secret with a common word", []string{"h4nter2x-password"}, "password: got h4nter2x-password", "password: got " + Redacted},
		{"a part of it", []string{"h4nter2x-password"}, "password: got nter2x-password", "password: got " + Redacted},
		{"a secret of common words", []string{"secret-password"}, "user: secret-password, password: secret", "user: " + Redacted + ", password: secret"},
		{"a secret in camel case", []string{"SecretPassword"}, "got SecretPassword and secret: password", "got " + Redacted + " and secret: password"},
		{"in a URL", []string{"postgres://admin:h4nter2x@db/x"}, "url postgres://admin:h4nter2x@db/x of postgres://localhost", "url " + Redacted + " of postgres://localhost"},
		{"in base64", []string{"password"}, base64.StdEncoding.EncodeToString([]byte("password")), Redacted},
		{"one that nobody knows", []string{"Tr0ub4dor&3"}, "got ub4dor&3 for port", "got " + Redacted + " for port"},
		{"signs", []string{"!#$%!#$%"}, "got !#$%!#$%", "got " + Redacted},
		{"short", []string{"1234", "a1b2"}, "pin 1234, a1b2, 51234", "pin " + Redacted + ", " + Redacted + ", 51234"},
		{"a known name", []string{"warehouse"}, "spec.warehouse: missing", "spec." + Redacted + ": missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r Redactor
			for _, text := range test.secrets {
				r.Add(text)
			}
			if test.want == "" {
				test.want = test.message
			}
			if got := r.Redact(test.message); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			texts := []string{test.message, "", test.message}
			r.RedactAll([]*string{&texts[0], &texts[1], &texts[2]})
			if diff := cmp.Diff([]string{test.want, "", test.want}, texts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRedactorKnows(t *testing.T) {
	var r Redactor
	r.Know("shopWarehouses")
	r.Add("warehouses")
	if got := r.Redact("spec.warehouses: missing"); got != "spec.warehouses: missing" {
		t.Error(got)
	}
}

// TestQuotes: a message was withheld for a secret of one letter or one common
// word, and a secret that is a part of another was not found beside it.
func TestQuotes(t *testing.T) {
	for _, test := range []struct {
		message string
		secrets []string
		want    []string
	}{
		{"no such key: password", []string{"password", "x", "se", "no", "key", "such-password", "mode"}, nil},
		{"got 51234 hunter", []string{"1234", "hunter22"}, []string{"1234", "hunter22"}},
		{"got abcdef77 there", []string{"abcdef77gh", "bcdef77"}, []string{"abcdef77gh", "bcdef77"}},
		{"user: secret-password", []string{"secret-password", "password"}, []string{"secret-password"}},
	} {
		if diff := cmp.Diff(test.want, QuotedIn(test.message, test.secrets)); diff != "" {
			t.Errorf("%s: %s", test.message, diff)
		}
		var r Redactor
		for _, text := range test.secrets {
			r.Add(text)
		}
		if got := r.Quotes(test.message); got != (test.want != nil) {
			t.Errorf("%s: got %t", test.message, got)
		}
	}
}

// TestCommonWordsFile: what is not a word of one case cannot be found.
func TestCommonWordsFile(t *testing.T) {
	words := strings.Fields(commonText)
	if !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != len(words) {
		t.Error("want each word once, in order")
	}
	for _, word := range words {
		if !CommonWords(word) {
			t.Errorf("%s: no word in small letters", word)
		}
	}
}

// BenchmarkQuotedIn is an object of 64 KiB and 1,000 secrets that it does not have.
func BenchmarkQuotedIn(b *testing.B) {
	object := strings.Repeat(`{"name":"password","value":"postgres"},`, 64<<10/39)
	var secrets []string
	for i := range 1000 {
		secrets = append(secrets, "postgres://u:"+strings.Repeat(string(rune('A'+i%26)), 5+i/26)+"-password")
	}
	for b.Loop() {
		QuotedIn(object, secrets)
	}
}
