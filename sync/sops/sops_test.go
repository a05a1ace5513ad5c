// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"maps"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/sops/sopstest"
)

const twoDocuments = `# a comment
apiVersion: v1
kind: Secret
metadata:
    name: db # behind a value
    namespace: shop
type: Opaque
stringData:
    # before a value
    password: hunter2-is-the-password
    empty: ""
    multi: |
        first

        third
    "odd key": 'it''s'
data:
    token: aHVudGVyMg==
---
apiVersion: v1
kind: Other
metadata: {name: x}
list: [1, 2.50, true, null, 2026-01-02, {a: b}, [c]]
# the end
`

// open decrypts a file with the key.
func open(t testing.TB, key sopstest.Key, name, content string) (map[string]any, error) {
	t.Helper()
	f, err := Read(name, []byte(content))
	if err != nil {
		return nil, err
	}
	keys := Keys{Secrets: config.Secrets{SecretKeys: config.SecretKeys{AgeKeyFiles: []string{key.File}}}}
	data, err := keys.DataKey(t.Context(), f, "")
	if err != nil {
		return nil, err
	}
	values, err := f.Open(data)
	if err != nil {
		return nil, err
	}
	found := map[string]any{}
	for at, value := range values {
		found[at.field+"."+at.key] = value
	}
	return found, nil
}

// TestOpen: what the real program encrypted, with each of its options.
func TestOpen(t *testing.T) {
	t.Parallel()
	key := sopstest.NewKey(t)
	secrets := map[string]any{"stringData.password": "hunter2-is-the-password", "stringData.multi": "first\n\nthird\n", "stringData.odd key": "it's", "data.token": "aHVudGVyMg=="}
	for name, args := range map[string][]string{
		"all":        nil,
		"regex":      sopstest.SecretRule,
		"suffix":     {"--encrypted-suffix", "ata"},
		"not suffix": {"--unencrypted-suffix", "name"},
		"not regex":  {"--unencrypted-regex", "^(metadata|kind|list)$"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := open(t, key, "x.yaml", key.Encrypt(t, "x.yaml", twoDocuments, args...))
			if err != nil || !maps.Equal(got, secrets) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	t.Run("json", func(t *testing.T) {
		t.Parallel()
		text := `{"apiVersion": "v1", "kind": "Secret", "numbers": [1, 2.5, 1e3, 12345678901234567, true, null], "stringData": {"a": "\u00e9\n", "n": 5, "b": false}}`
		got, err := open(t, key, "x.json", key.Encrypt(t, "x.json", text))
		if err != nil || !maps.Equal(got, map[string]any{"stringData.a": "é\n", "stringData.n": 5, "stringData.b": false}) {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// TestRefused: who has not the key, and who changed the file.
func TestRefused(t *testing.T) {
	t.Parallel()
	key, other := sopstest.NewKey(t), sopstest.NewKey(t)
	good := key.Encrypt(t, "x.yaml", twoDocuments, sopstest.SecretRule...)
	for name, test := range map[string]struct {
		key  sopstest.Key
		text string
		want string
	}{
		"another key":      {other, good, "x.yaml: no key opens it: it is encrypted for " + key.Recipient + ", and " + other.File + " has none of these keys"},
		"plain value":      {key, strings.Replace(good, "type: Opaque", "type: Other", 1), "somebody changed it"},
		"value removed":    {key, good[:strings.Index(good, "    multi:")] + good[strings.Index(good, "    odd key:"):], "somebody changed it"},
		"moved value":      {key, strings.Replace(good, "    password: ENC", "    passwort: ENC", 1), "stringData.passwort: is not what sops encrypted there"},
		"other namespace":  {key, strings.Replace(good, "namespace: shop", "namespace: pay", 1), "somebody changed it"},
		"plain in its way": {key, strings.Replace(good, "token: ENC[", "token: enc[", 1), "data.token: is no value that sops encrypted"},
		"time":             {key, strings.Replace(good, `lastmodified: "2`, `lastmodified: "3`, 1), "somebody changed it"},
		"no mac":           {key, strings.Replace(good, "    mac: ENC", "    mac: enc", 1), "sops: mac: want an encrypted value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := open(t, test.key, "x.yaml", test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Error("the error has a value")
			}
			if out, err := test.key.Run(t, "x.yaml", test.text, "decrypt"); err == nil {
				t.Errorf("sops decrypts it: %s", out)
			}
		})
	}
}

// TestDeep: a file of nothing but brackets is refused, and does not end the daemon.
func TestDeep(t *testing.T) {
	for _, name := range []string{"a.json", "a.yaml"} {
		content := `{"sops": {"mac": "", "version": ""}, "data": ` + strings.Repeat("[", 8<<20)
		if _, err := Read(name, []byte(content)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}
