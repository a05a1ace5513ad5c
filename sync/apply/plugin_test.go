// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/swell-sh/swell/config/exectest"
)

// TestAPluginThatHangs: a credential plug-in that does not end costs one request its time,
// and no later one. When it has ended, requests are sent again.
func TestAPluginThatHangs(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, 200, jsonType+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1", `{"kind":"PartialObjectMetadata","metadata":{"uid":"1"}}`)
	}))
	defer server.Close()
	dir := t.TempDir()
	plugin, end := filepath.Join(dir, "plugin"), filepath.Join(dir, "end")
	if err := exectest.WriteProgram(plugin, []byte(`#!/bin/sh
while [ ! -e `+end+` ]; do sleep 0.05; done
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"x"}}'
`)); err != nil {
		t.Fatal(err)
	}
	ended := func() { _ = os.WriteFile(end, nil, 0o600) }
	defer ended()
	c, err := Connect(&rest.Config{
		Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		ExecProvider: &clientcmdapi.ExecConfig{
			Command: plugin, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		},
	}, testRepository, Options{Timeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got := applyOne(t, c)
		if !errors.Is(got.Err, ErrUnreachable) {
			t.Fatalf("got %v", got.Err)
		}
		if text := got.Err.Error(); !strings.Contains(text, "the credential plug-in "+plugin+" of the kubeconfig does not end") &&
			!strings.Contains(text, "not tried: the cluster does not answer") {
			t.Errorf("got %s", text)
		}
	}
	began := time.Now()
	if _, err := c.Identity(t.Context()); err == nil || time.Since(began) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	ended()
	eventually(t, func() (bool, string) {
		_, err := c.Identity(t.Context())
		return err == nil, "it does not answer"
	})
}
