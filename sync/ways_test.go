// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/exectest"
	"github.com/swell-sh/swell/sync/rollout"
)

// connectProxy is an HTTP proxy for connections; it counts them.
func connectProxy(t *testing.T) (address string, connections *atomic.Int32) {
	t.Helper()
	connections = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if user, password, ok := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth(); !ok || user != "me" || password != "word" {
			rw.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		target, err := net.Dial("tcp", r.Host)
		if err != nil || r.Method != http.MethodConnect {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		defer target.Close()
		rw.WriteHeader(http.StatusOK)
		client, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer client.Close()
		connections.Add(1)
		go io.Copy(target, client)
		_, _ = io.Copy(client, target)
	}))
	t.Cleanup(server.Close)
	return server.URL, connections
}

// TestWaysToACluster: each way that a kubeconfig may name leads to a real API
// server.
func TestWaysToACluster(t *testing.T) {
	clusters := realClusters(t)
	proxy, proxied := connectProxy(t)
	for _, way := range []struct {
		name  string
		allow []config.Allowance
		edit  func(w *world, dir string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo)
		env   bool
	}{
		{name: "through a proxy", edit: func(_ *world, _ string, cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			cluster.ProxyURL = "http://me:word@" + proxy[len("http://"):]
		}},
		{name: "by another name", edit: func(_ *world, _ string, cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			cluster.TLSServerName = "localhost"
		}},
		{name: "in a variable", env: true, edit: func(*world, string, *clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {}},
		{name: "files", allow: []config.Allowance{config.AllowFiles}, edit: func(w *world, dir string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
			w.place(filepath.Join(dir, "token"), user.Token+"\n")
			w.place(filepath.Join(dir, "ca.crt"), string(cluster.CertificateAuthorityData))
			user.Token, user.TokenFile = "", "token"
			cluster.CertificateAuthorityData, cluster.CertificateAuthority = nil, "ca.crt"
		}},
		{name: "exec", allow: []config.Allowance{config.AllowExec}, edit: func(w *world, dir string, _ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
			program := filepath.Join(dir, "get-token")
			w.must(exectest.WriteProgram(program, fmt.Appendf(nil, "#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"%s\"}}'\n", user.Token)))
			user.Token = ""
			user.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: program}
		}},
		{name: "insecure", allow: []config.Allowance{config.AllowInsecureTLS}, edit: func(_ *world, _ string, cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			cluster.CertificateAuthorityData, cluster.InsecureSkipTLSVerify = nil, true
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			w := newWorld(t)
			dir := t.TempDir()
			all, err := clientcmd.LoadFromFile(clusters.Kubeconfig)
			w.must(err)
			context := all.Contexts["dev-2"]
			way.edit(w, dir, all.Clusters[context.Cluster], all.AuthInfos[context.AuthInfo])
			text, err := clientcmd.Write(*all)
			w.must(err)
			file := filepath.Join(dir, "kubeconfig")
			w.place(file, string(text))
			w.access["dev-2"] = config.ClusterAccess{Name: "dev-2", Kubeconfig: file, Context: "dev-2"}
			if way.env {
				t.Setenv("DEV_2_KUBECONFIG", string(text))
				w.access["dev-2"] = config.ClusterAccess{Name: "dev-2", KubeconfigEnv: "DEV_2_KUBECONFIG"}
			}
			w.allow = way.allow
			w.stop()
			w.start()
			w.release()
			if way.name == "through a proxy" && proxied.Load() == 0 {
				t.Error("nobody went through the proxy")
			}
			if len(way.allow) == 0 {
				return
			}
			w.allow = nil
			w.stop()
			w.start()
			w.app("app", "2", "one")
			w.commit()
			w.until("the refusal", func() bool {
				targets := w.unit("app").Targets
				if targets["dev-1/a"].Health == rollout.HealthGood {
					w.now = w.now.Add(10 * time.Minute)
				}
				return targets["dev-2/c"].Trouble == rollout.TroubleUnreachable
			})
			want := fmt.Sprintf("is refused, unless the daemon's configuration has spec.allow: %v", way.allow)
			if reason := w.unit("app").Targets["dev-2/c"].Reason; !strings.Contains(reason, want) {
				t.Errorf("reason %q, want %q in it", reason, want)
			}
		})
	}
}
