// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package loopback serves simulated clusters to other processes of this machine: to
// the daemon of a script, or of a debugger. It keeps nothing of a cluster, and it never
// listens on an address that other machines reach.
package loopback

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/swell-sh/swell/sync/simulator"
)

// Server serves one cluster until it is closed.
type Server struct {
	http *httptest.Server
}

// Start serves the cluster by HTTPS at a free port.
func Start(c *simulator.Cluster) *Server {
	server := httptest.NewUnstartedServer(handler(c))
	server.EnableHTTP2 = true
	server.StartTLS()
	return &Server{server}
}

// Close ends the connections, those of watches too. The cluster keeps its objects.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// URL returns the address, which begins with https://.
func (s *Server) URL() string { return s.http.URL }

// Kubeconfig returns a kubeconfig with one context of this name, whose cluster and user
// are called the same. Every token is accepted.
func (s *Server) Kubeconfig(name string) *clientcmdapi.Config {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: s.http.URL, CertificateAuthorityData: authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "any"}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config
}

// handler passes requests to the simulator, and its answers back as they come.
func handler(c *simulator.Cluster) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := c.RoundTrip(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		for key, values := range answer.Header {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.StatusCode)
		out := flushing{w, http.NewResponseController(w)}
		_ = out.Flush()                  // a watch has begun, though it has no event yet
		_, _ = io.Copy(out, answer.Body) // the client may be gone
	}
}

// flushing sends every write at once: the events of a watch.
type flushing struct {
	io.Writer
	*http.ResponseController
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err != nil {
		return n, err
	}
	return n, f.Flush()
}
