// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/apply"
)

// secret stands in place of everything in a kubeconfig that nobody may see.
const secret = "s3cr3t-Zm9v"

// written is a kubeconfig with one context, sas-1, and what is wanted in its
// cluster and its user.
func written(cluster, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {%s}}
users:
- {name: u, user: {%s}}
contexts:
- {name: sas-1, context: {cluster: c, user: u}}
`, cluster, user)
}

const server = "server: 'https://sas-1.example.com'"

// readFrom reads a kubeconfig of the cluster sas-1.
func readFrom(t *testing.T, text string, allow ...config.Allowance) (*rest.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	k := kubeconfig{access: config.ClusterAccess{Name: "sas-1", Kubeconfig: file, Context: "sas-1"}, allow: allow}
	cfg, _, err := k.read()
	return cfg, err
}

func TestKubeconfigIsRefused(t *testing.T) {
	exec := "exec: {apiVersion: client.authentication.k8s.io/v1, command: get-token, args: [" + secret + "], interactiveMode: Never}"
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	for _, c := range []struct {
		name, text string
		allow      []config.Allowance
		want       string // empty: it is read
	}{
		{"token", written(server, "token: "+secret), nil, ""},
		{"through a proxy, by another name", written(server+", proxy-url: 'http://me:"+secret+"@proxy:3128', tls-server-name: api", "token: "+secret), nil, ""},
		{"exec", written(server, exec), nil, `context "sas-1": exec is refused, unless the daemon's configuration has spec.allow: [exec]`},
		{"exec, another one allowed", written(server, exec), []config.Allowance{config.AllowFiles}, "exec is refused"},
		{"exec allowed", written(server, exec), []config.Allowance{config.AllowExec}, ""},
		{"auth-provider", written(server, "auth-provider: {name: oidc, config: {refresh-token: "+secret+"}}"), nil, "auth-provider is refused, unless the daemon's configuration has spec.allow: [authProvider]"},
		{"auth-provider allowed", written(server, "auth-provider: {name: oidc, config: {idp-issuer-url: 'https://id', client-id: swell, refresh-token: "+secret+"}}"), []config.Allowance{config.AllowAuthProvider}, ""},
		{"tokenFile", written(server, "tokenFile: /etc/shadow"), nil, "tokenFile is refused, unless the daemon's configuration has spec.allow: [files]"},
		{"client-certificate and client-key", written(server, "client-certificate: a, client-key: b"), nil,
			"client-certificate is refused, unless the daemon's configuration has spec.allow: [files]; client-key is refused, unless the daemon's configuration has spec.allow: [files]"},
		{"certificate-authority", written(server+", certificate-authority: ca.crt", "token: "+secret), nil, "certificate-authority is refused"},
		{"insecure", written(server+", insecure-skip-tls-verify: true", "token: "+secret), nil, "insecure-skip-tls-verify is refused, unless the daemon's configuration has spec.allow: [insecureTLS]"},
		{"insecure allowed", written(server+", insecure-skip-tls-verify: true", "token: "+secret), []config.Allowance{config.AllowInsecureTLS}, ""},
		{"of another user", written(server, "token: "+secret) + "- {name: other, context: {cluster: c, user: v}}\n", nil, ""},
		{"no such file", written(server, "tokenFile: token"), []config.Allowance{config.AllowFiles}, "tokenFile: "},
		{"no context", "apiVersion: v1\nkind: Config\n", nil, `no context "sas-1"`},
		{"empty", "", nil, `no context "sas-1"`},
		{"no cluster", strings.Replace(written(server, "token: "+secret), "cluster: c,", "cluster: d,", 1), nil, `context "sas-1": no cluster "d"`},
		{"no user", strings.Replace(written(server, "token: "+secret), "user: u}}", "user: v}}", 1), nil, `context "sas-1": no user "v"`},
		{"no server", written("", "token: "+secret), nil, `context "sas-1": server: missing`},
		{"a password in the address", written("server: 'https://me:"+secret+"@sas-1'", ""), nil, "server: want an address without a user and a password in it"},
		{"no address", written("server: 'https://me:"+secret+" x@sas-1:no'", ""), nil, "server: want an address like https://api.example.com:6443"},
		{"no proxy", written(server+", proxy-url: 'ftp://me:"+secret+"@proxy'", ""), nil, "proxy-url: want an address like"},
		{"no proxy's port", written(server+", proxy-url: 'http://me:"+secret+"@proxy:x'", ""), nil, "proxy-url: want an address like"},
		{"a token in place of the file", secret, nil, "not a kubeconfig that can be read"},
		{"no YAML", "users: [" + secret + ":\n - }", nil, "not a kubeconfig that can be read, at line "},
		{"a key that is no base64", written(server, "client-key-data: '"+secret+"!'"), nil, "not a kubeconfig that can be read"},
		{"a wrong type", written(server, "token: ["+secret+"]"), nil, "not a kubeconfig that can be read"},
		{"another kind", "apiVersion: v1\nkind: " + secret + "\n", nil, "not a kubeconfig that can be read"},
		{"a certificate that is none", written(server, "client-certificate-data: "+encoded+", client-key-data: "+encoded), nil, "connect to "},
		{"a certificate without a key", written(server, "client-certificate-data: "+encoded), nil, "client-key-data or client-key must be specified for u"},
		{"token and password", written(server, "token: "+secret+", username: me, password: "+secret), nil, "more than one authentication method found for u"},
		{"authority that is none", written(server+", certificate-authority-data: "+encoded, ""), nil, "connect to "},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := readFrom(t, c.text, c.allow...)
			if err == nil { // what is only noticed when the parts are put together
				_, err = apply.Connect(cfg, "shop", apply.Options{})
			}
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			case err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), encoded) || strings.Contains(err.Error(), "\n")):
				t.Errorf("it gives away what nobody may see, or has lines: %q", err)
			}
		})
	}
}

// What a kubeconfig refers to belongs to what a connection is made of.
func TestKubeconfigWithFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("sas-1.yaml", written(server, "tokenFile: token"))
	write("token", "one\n")
	k := kubeconfig{access: config.ClusterAccess{Name: "sas-1"}, dir: dir, allow: []config.Allowance{config.AllowFiles}}
	cfg, first, err := k.read()
	if err != nil || cfg.BearerToken != "one" || cfg.BearerTokenFile != "" {
		t.Fatalf("got %v, %v", cfg, err)
	}
	if _, again, err := k.read(); err != nil || again != first {
		t.Errorf("nothing changed: %v, the same %t", err, again == first)
	}
	write("token", "two\n")
	if cfg, second, err := k.read(); err != nil || second == first || cfg.BearerToken != "two" {
		t.Errorf("a new token: %v, the same %t", err, second == first)
	}
	write("token", "\n")
	if _, _, err := k.read(); err == nil || !strings.HasSuffix(err.Error(), "token: empty") {
		t.Errorf("no token: got %v", err)
	}

	t.Setenv("SAS_1_KUBECONFIG", written(server, "tokenFile: token"))
	k = kubeconfig{access: config.ClusterAccess{Name: "sas-1", KubeconfigEnv: "SAS_1_KUBECONFIG"}, allow: k.allow}
	if _, _, err := k.read(); err == nil || !strings.Contains(err.Error(), `environment variable SAS_1_KUBECONFIG: context "sas-1": tokenFile: want a whole path`) {
		t.Errorf("a variable: got %v", err)
	}
}

func TestKubeconfigPlaces(t *testing.T) {
	dir := t.TempDir()
	for name, context := range map[string]string{"sas-1.yaml": "sas-1", "vla-1.kubeconfig": "admin", "myt-1.yaml": "myt-1", "myt-1.kubeconfig": "myt-1", "README.md": "", "Odd_Name.yaml": ""} {
		text := strings.ReplaceAll(written(server, "token: t-"+context), "name: sas-1", "name: "+context) + "current-context: " + context + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("IVA_1", written(server, "token: t-variable"))
	t.Setenv("EMPTY", "")
	for _, c := range []struct {
		access config.ClusterAccess
		token  string
		want   string
	}{
		{config.ClusterAccess{Name: "sas-1"}, "t-sas-1", ""},
		{config.ClusterAccess{Name: "vla-1"}, "t-admin", ""}, // the current context
		{config.ClusterAccess{Name: "vla-1", Context: "admin"}, "t-admin", ""},
		{config.ClusterAccess{Name: "vla-1", Context: "other"}, "", `vla-1.kubeconfig: no context "other"`},
		{config.ClusterAccess{Name: "myt-1"}, "", "want one kubeconfig, got "},
		{config.ClusterAccess{Name: "iva-1"}, "", "no iva-1.yaml or iva-1.kubeconfig in " + dir},
		{config.ClusterAccess{Name: "sas-1", KubeconfigEnv: "IVA_1"}, "t-variable", ""},
		{config.ClusterAccess{Name: "iva-1", KubeconfigEnv: "IVA_1"}, "", `environment variable IVA_1: no context "iva-1" and no current one`},
		{config.ClusterAccess{Name: "iva-1", KubeconfigEnv: "EMPTY"}, "", "environment variable EMPTY: empty or not set"},
		{config.ClusterAccess{Name: "iva-1", Kubeconfig: filepath.Join(dir, "none"), Context: "iva-1"}, "", "none: no such file or directory"},
	} {
		k := kubeconfig{access: c.access, dir: dir}
		cfg, _, err := k.read()
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: got %v, want %s", c.access, err, c.want)
		case c.want == "" && (err != nil || cfg.BearerToken != c.token):
			t.Errorf("%+v: got %v, want the token %s", c.access, err, c.token)
		}
	}
	names, err := clustersIn(dir)
	if got := fmt.Sprint(names); err != nil || got != "[myt-1 sas-1 vla-1]" {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := clustersIn(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("got %v", err)
	}
}
