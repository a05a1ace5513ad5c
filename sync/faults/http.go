// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
)

// HTTP starts a proxy that looks into requests, before a real API server, and
// returns the configuration for it. answer answers each request; forward brings
// it to the API server. Connections to the proxy are HTTP/2 with a certificate
// of its own; credentials are the client's.
func HTTP(t testing.TB, cfg *rest.Config, answer func(w http.ResponseWriter, r *http.Request, forward http.Handler)) *rest.Config {
	t.Helper()
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	bare := rest.AnonymousClientConfig(cfg)
	transport, err := rest.TransportFor(bare)
	if err != nil {
		t.Fatal(err)
	}
	quiet := log.New(io.Discard, "", 0)
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport,
		ErrorLog:  quiet,
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r, forward) }))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = quiet
	server.StartTLS()
	t.Cleanup(server.Close)
	through := rest.CopyConfig(cfg)
	through.Host = server.URL
	through.CAFile = ""
	through.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return through
}
