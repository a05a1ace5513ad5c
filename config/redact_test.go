// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config/document"
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
		{"a common word", []string{"containers", "username", "postgres", "https://", "postgres://", "template", "5432"},
			`spec.template: unknown field "username", did you mean "containers"? postgres listens on 5432, https://host/x`, ""},
		{"a part of a word", []string{"ontainer", "passwords1", "replicas", "xreplicas"}, "spec.containerPort: 3 replicas, username", ""},
		{"parts of a file", []string{config}, "kind: Config: no such kind, apiVersion: v1, username: missing", ""},
		{"a secret with a common word", []string{"h4nter2x-username"}, "username: got h4nter2x-username", "username: got " + document.Redacted},
		{"a part of it", []string{"h4nter2x-username"}, "username: got nter2x-username", "username: got " + document.Redacted},
		{"a secret of common words", []string{"secret-username"}, "user: secret-username, username: secret", "user: " + document.Redacted + ", username: secret"},
		{"a secret in camel case", []string{"SecretUsername"}, "got SecretUsername and secret: username", "got " + document.Redacted + " and secret: username"},
		{"a password that many have", []string{"password", "administrator"}, "got password of administrator", "got " + document.Redacted + " of " + document.Redacted},
		{"in a URL", []string{"postgres://admin:h4nter2x@db/x"}, "url postgres://admin:h4nter2x@db/x of postgres://localhost", "url " + document.Redacted + " of postgres://localhost"},
		{"in base64 for URLs, with - alone", []string{"~h>>>nter~>"}, "fmg-Pj5udGVyfj4=", document.Redacted},
		{"in base64 for URLs, with _ alone", []string{"h???nter2?x?"}, "aD8_P250ZXIyP3g_", document.Redacted},
		{"in base64", []string{"password"}, base64.StdEncoding.EncodeToString([]byte("password")), document.Redacted},
		{"one that nobody knows", []string{"Tr0ub4dor&3"}, "got ub4dor&3 for port", "got " + document.Redacted + " for port"},
		{"signs", []string{"!#$%!#$%"}, "got !#$%!#$%", "got " + document.Redacted},
		{"short", []string{"1234", "a1b2"}, "pin 1234, a1b2, 51234", "pin " + document.Redacted + ", " + document.Redacted + ", 51234"},
		{"a name that nobody knows", []string{"warehouse"}, "spec.bar: got warehouse", "spec.bar: got " + document.Redacted},
		{"names of fields and groups", []string{"values", "source", "name", "default", "toolkit", "notification", "warehouse"},
			`spec.warehouse: notification.toolkit.fluxcd.io/v1 of source.toolkit.fluxcd.io has default values and a name, see self.warehouse.size`, ""},
		{"longer words than the secret", []string{"notification", "warehouse"}, "notifications of warehouses", ""},
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

// TestRedactValue: passwords that are common words were shown in values, in the place
// of the password, and so were parts of secrets of several such words.
func TestRedactValue(t *testing.T) {
	const file = "user: admin\npassword: production\n"
	for _, test := range []struct {
		name, secret string
		value, want  any
	}{
		{"a short common word", "oracle", "postgres://username:oracle@host", "postgres://username:" + document.Redacted + "@host"},
		{"a long one", "production", "postgres://username:production@host", "postgres://username:" + document.Redacted + "@host"},
		{"of three letters", "sys", "user=sys x=system", "user=" + document.Redacted + " x=system"},
		{"of four", "core", "Core of cores", document.Redacted + " of cores"},
		{"of two", "db", "db", "db"},
		{"a field name", "containers", "containers", document.Redacted},
		{"a number", "5432", json.Number("5432"), document.Redacted},
		{"a line of a file", file, "password: production", document.Redacted},
		{"lines in other order", file, "password: production, user: admin", document.Redacted + ", " + document.Redacted},
		{"other lines", "magic tree photon studio", "magic\n  tree\nphoton\nstudio", document.Redacted},
		{"escaped lines", "magic tree photon studio", `"magic\ntree\r\nphoton\nstudio"`, `"` + document.Redacted + `"`},
		{"other signs", "magic tree photon studio", "magic-tree-photon-studio", document.Redacted},
		{"a part with other signs", "magic tree photon studio", "x tree_photon y", "x " + document.Redacted + " y"},
		{"one word of several", "magic tree photon studio", "a tree", "a tree"},
		{"a part of a passphrase", "correct-admin-default-service-mongo-horse", "is admin-default-service-mongo", "is " +
			document.Redacted},
		{"signs alone", "-- -- -- --", "x -- -- -- -- y", "x " + document.Redacted + " y"},
		{"groups", "source", "source.toolkit.fluxcd.io", "source.toolkit.fluxcd.io"},
		{"a group's label that is long", "notification", "notification.toolkit.fluxcd.io/v1beta3",
			"notification.toolkit.fluxcd.io/v1beta3"},
		{"fields in an expression", "values", "has(self.values) && size(self.values.name) > 0",
			"has(self.values) && size(self.values.name) > 0"},
		{"the value itself", "values", "values", document.Redacted},
		{"the end of a sentence", "source", "It is source. So what", "It is " + document.Redacted + ". So what"},
		{"one word of prose", "the default port of this service", "has default values", "has default values"},
		{"two words of prose", "the default port of this service", "has default port", "has " + document.Redacted},
		{"what names an object", "default", map[string]any{"kind": "Default", "namespace": "default", "note": "default"},
			map[string]any{"kind": "Default", "namespace": "default", "note": document.Redacted}},
		{"a secret in what names an object", "h4nter2x7Zq", map[string]any{"name": "x-h4nter2x7Zq"}, map[string]any{"name": "x-" +
			document.Redacted}},
		{"a key", "containers", map[string]any{"containers": "containers"}, map[string]any{"containers": document.Redacted}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r Redactor
			r.Add(test.secret)
			if diff := cmp.Diff(test.want, r.RedactValue(test.value)); diff != "" {
				t.Error(diff)
			}
			if text, ok := test.value.(string); ok && test.want != test.value && QuotedIn(text, []string{test.secret}) == nil {
				t.Error("the object does not keep the secret")
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
// word, and a secret that is a part of another was not found beside it. In a value,
// a common word counts.
func TestQuotes(t *testing.T) {
	for _, test := range []struct {
		message string
		secrets []string
		quotes  bool
		in      []string // what a value of that text holds
	}{
		{"no such key: username", []string{"username", "x", "se", "no", "key", "such-username", "mode"}, false, []string{"username", "key", "such-username"}},
		{"no such key: password", []string{"password"}, true, []string{"password"}},
		{"got 51234 hunter", []string{"1234", "hunter22"}, true, []string{"1234"}},
		{"got abcdef77 there", []string{"abcdef77gh", "bcdef77"}, true, []string{"abcdef77gh"}},
		{"user: secret-username", []string{"secret-username", "username", "mode"}, true, []string{"secret-username", "username"}},
	} {
		if diff := cmp.Diff(test.in, QuotedIn(test.message, test.secrets)); diff != "" {
			t.Errorf("%s: %s", test.message, diff)
		}
		var r Redactor
		for _, text := range test.secrets {
			r.Add(text)
		}
		if got := r.Quotes(test.message); got != test.quotes {
			t.Errorf("%s: got %t", test.message, got)
		}
	}
}

// TestDefaultPasswords: passwords that programs come with are no common words, other
// than those that are names of fields.
func TestDefaultPasswords(t *testing.T) {
	for _, word := range []string{"admin", "administrator", "changeme", "demo", "guest", "letmein", "login", "magic", "oracle", "pass", "passwd", "password", "prod", "production", "public", "pwd", "test"} {
		if CommonWords(word) {
			t.Errorf("%s is shown in messages", word)
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
