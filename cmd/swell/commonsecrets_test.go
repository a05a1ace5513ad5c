// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

// commonSecrets is a monorepo with secrets that are words which stand everywhere,
// and one that is none.
func commonSecrets(replicas, mode string) *planter {
	return &planter{files: map[string]string{
		"swell.yaml": "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: planted}\nspec: {units: [services], checks: {plainSecrets: pass}}\n",
		"fleet/c.yaml": "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: c-1, labels: {ring: canary}}\nspec: {kubernetes: \"1.36\", tenants: [\"*\"]}\n" +
			"---\napiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n",
		"kinds/vault/vault.proto": plantedProto,
		"kinds/vault/kind.yaml": `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: vault}
spec:
  message: example.vault.Vault
  objects:
  - id: config
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${self.metadata.name}", namespace: shop}
      data:
        mode: "${self.spec.mode} of postgres"
        url: "postgres://username:${self.spec.password}@host"
        number: "${self.spec.mode == 'int' ? string(int(self.spec.mode)) : 'x'}"
`,
		"services/a/swell.yaml":   "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec:\n  tenant: shop\n  placement: {topology: cluster, match: {labels: {ring: canary}}}\n",
		"services/a/space/x.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
		"services/a/words/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: words, namespace: shop}\nstringData:\n" +
			"  a: password\n  b: username\n  c: postgres\n  d: https://\n  e: containers\n  f: template\n  g: h4nter2x7Zq\n  h: \"5432\"\n",
		"services/a/words/x.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: postgres, namespace: shop}\nspec:\n  replicas: " + replicas + "\n  selector: {matchLabels: {app: postgres}}\n" +
			"  template:\n    metadata: {labels: {app: postgres}}\n    spec:\n      containers: [{name: postgres, image: postgres, ports: [{containerPort: 5432}]}]\n",
		"services/a/spec/x.yaml": "apiVersion: easy.example.com/v1\nkind: Vault\nmetadata: {name: spec}\nspec: {mode: " + mode + ", password: h4nter2x7Zq, token: postgres, conn: {url: password}, creds: {a: username, b: mode}}\n",
	}}
}

// TestCommonSecrets: secrets whose values are common words hid field names, words
// of messages and values of other objects.
func TestCommonSecrets(t *testing.T) {
	t.Chdir(t.TempDir())
	commonSecrets("2", "plain").write(t, "base")
	commonSecrets("3", "quiet").write(t, "head")
	bad := commonSecrets("two", "int")
	bad.files["services/a/words/x.yaml"] = strings.Replace(bad.files["services/a/words/x.yaml"], "containers:", "container:", 1)
	bad.write(t, "bad")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"check", "bad"}, []string{
			`spec.replicas: want an integer`, `spec.template.spec.container: unknown field, did you mean "containers"?`, `type conversion error from 'string' to 'int'`}},
		{[]string{"diff", "base", "head"}, []string{"+ spec.replicas: 3", "+ data.mode: quiet of (secret)"}},
		{[]string{"blame", "ConfigMap/spec", "head"}, []string{"quiet of (secret)", "data.url: (secret)://(secret):(secret)@host"}},
		{[]string{"check", "head"}, nil},
	} {
		var stdout, stderr bytes.Buffer
		execute(t.Context(), writingTo(&stdout, &stderr), append(test.args, "--cache=none"))
		got := stdout.String() + stderr.String()
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%v: want %s in\n%s", test.args, want, got)
			}
		}
		if strings.Contains(got, "h4nter2x7Zq") {
			t.Errorf("%v shows a secret:\n%s", test.args, got)
		}
	}
}

// TestCommonPasswords: a password that is a common word was shown in a value of
// another object, where anyone sees that it is the password.
func TestCommonPasswords(t *testing.T) {
	t.Chdir(t.TempDir())
	for dir, password := range map[string]string{"base": "oracle", "head": "production"} {
		p := commonSecrets("2", "plain")
		p.files["services/a/spec/x.yaml"] = strings.Replace(p.files["services/a/spec/x.yaml"], "h4nter2x7Zq", password, 1)
		p.write(t, dir)
	}
	for _, args := range [][]string{
		{"diff", "base", "head"}, {"diff", "base", "head", "-o", "json"}, {"blame", "ConfigMap/spec", "head"}, {"blame", "ConfigMap/spec", "base"},
		{"render", "head", "--explain", "--unit", "services/a/spec"},
	} {
		var stdout, stderr bytes.Buffer
		execute(t.Context(), writingTo(&stdout, &stderr), append(args, "--cache=none"))
		got := stdout.String() + stderr.String()
		if strings.Contains(got, "oracle") || strings.Contains(got, "production") || !strings.Contains(got, "(secret)") {
			t.Errorf("%v: want the password hidden:\n%s", args, got)
		}
	}
}

// TestSecretInAnotherField: a value of the wrong form beside secret fields may be
// one of theirs, and was shown in excerpts.
func TestSecretInAnotherField(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, mode := range []string{"{password:k7Y8mPcUTV}", "[k7Y8mPcUTV]", "{a: k7Y8mPcUTV}"} {
		commonSecrets("2", mode).write(t, "head")
		var stdout, stderr bytes.Buffer
		execute(t.Context(), writingTo(&stdout, &stderr), []string{"check", "head", "--cache=none", "--excerpt"})
		if got := stdout.String() + stderr.String(); strings.Contains(got, "k7Y8mPcUTV") || !strings.Contains(got, "spec.mode") {
			t.Errorf("%s: want a problem of spec.mode that does not show it:\n%s", mode, got)
		}
	}
}
