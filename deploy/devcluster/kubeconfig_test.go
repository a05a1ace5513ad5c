// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfigRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	a := access{Cluster: "a", Server: "https://127.0.0.1:1", CA: []byte("ca"), User: "admin", Token: "secret-a"}
	b := access{Cluster: "b", Server: "https://127.0.0.1:2", CA: []byte("cb"), User: "admin", Token: "secret-b"}
	if err := writeKubeconfig(path, a, b); err != nil {
		t.Fatal(err)
	}
	conf, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if conf.CurrentContext != "a" {
		t.Errorf("current context %q, want the first", conf.CurrentContext)
	}
	for _, want := range []access{a, b} {
		got, err := clientcmd.NewNonInteractiveClientConfig(*conf, want.Cluster, nil, nil).ClientConfig()
		if err != nil {
			t.Fatal(err)
		}
		if got.Host != want.Server || got.BearerToken != want.Token || string(got.CAData) != string(want.CA) {
			t.Errorf("context %s: got %s", want.Cluster, got)
		}
	}
	// What kubectl writes back is still ours to remove.
	if err := clientcmd.WriteToFile(*conf, path); err != nil {
		t.Fatal(err)
	}
	if err := removeKubeconfig(path); err != nil {
		t.Error(err)
	}
	if err := removeKubeconfig(path); err != nil {
		t.Errorf("no file: %v", err)
	}
}

// TestKubeconfigOfOthers guards "--kubeconfig ~/.kube/config".
func TestKubeconfigOfOthers(t *testing.T) {
	const users = "apiVersion: v1\nkind: Config\ncontexts:\n- name: production\n  context: {cluster: production}\n"
	for text, want := range map[string]string{
		users:       "not written by devcluster",
		"[not yaml": "--kubeconfig: ",
		"":          "",
	} {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := removeKubeconfig(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
		if _, err := os.Stat(path); want != "" && err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
