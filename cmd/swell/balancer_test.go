// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// nssWrapper is a library that looks up the names of hosts in a file.
const nssWrapper = "libnss_wrapper.so"

// nginx runs the real one on configurations of the kind L7Balancer. Names of
// services lead to this machine.
type nginx struct {
	*testing.T
	dir string
}

func newNginx(t *testing.T) *nginx {
	t.Helper()
	missing := func(what, pkg string) {
		text := fmt.Sprintf("%s is missing: install Debian's package %s", what, pkg)
		if os.Getenv("CI") != "" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	if _, err := exec.LookPath("nginx"); err != nil {
		missing("nginx", "nginx-light")
	}
	probe := exec.Command("true")
	probe.Env = append(os.Environ(), "LD_PRELOAD="+nssWrapper)
	if out, err := probe.CombinedOutput(); err != nil || len(out) > 0 { // the loader goes on without it, with a word
		missing(nssWrapper, "libnss-wrapper")
	}
	dir, err := os.MkdirTemp("", "nginx") // short: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &nginx{t, dir}
}

// command is nginx as the kind starts it, in a folder of the test. Only the
// hosts are known.
func (n *nginx) command(conf string, hosts []string, args ...string) *exec.Cmd {
	n.Helper()
	var known strings.Builder
	for _, host := range hosts {
		fmt.Fprintf(&known, "127.0.0.1 %s\n", host)
	}
	for name, content := range map[string]string{"nginx.conf": conf, "hosts": known.String()} {
		if err := os.WriteFile(filepath.Join(n.dir, name), []byte(content), 0o644); err != nil {
			n.Fatal(err)
		}
	}
	args = append(args, "-e", "stderr", "-p", n.dir, "-c", filepath.Join(n.dir, "nginx.conf"))
	cmd := exec.CommandContext(n.Context(), "nginx", args...)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+nssWrapper, "NSS_WRAPPER_HOSTS="+filepath.Join(n.dir, "hosts"))
	return cmd
}

// test is nginx -t.
func (n *nginx) test(conf string, hosts []string) (string, error) {
	n.Helper()
	out, err := n.command(conf, hosts, "-t").CombinedOutput()
	return string(out), err
}

var upstreamServer = regexp.MustCompile(`(?m)^ +server ([^ :;{]+):\d+`)

// services are the names that a configuration passes requests to.
func services(conf string) []string {
	names := map[string]bool{}
	for _, m := range upstreamServer.FindAllStringSubmatch(conf, -1) {
		names[m[1]] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// nginxConf is the configuration among objects; empty when there is none.
func nginxConf(objects []map[string]any) string {
	return configOf(objects, "nginx.conf").text
}

// TestNginxTakesTheConfiguration has a real nginx -t judge what the kind
// L7Balancer makes of the example and of its own tests.
func TestNginxTakesTheConfiguration(t *testing.T) {
	n := newNginx(t)
	confs := map[string]string{}
	for name, objects := range goldens(t, "balancer") {
		confs[name] = nginxConf(objects)
	}
	if len(confs) < 2 {
		t.Fatalf("%d configurations in the kind's tests, want 2 or more", len(confs))
	}
	shop := nginxConf(renderedObjects(t, checkedExample(t, nil).Snapshot, "services/shop/balancer"))
	confs["example"] = shop
	for name, conf := range confs {
		if out, err := n.test(conf, services(conf)); err != nil || conf == "" {
			t.Errorf("%s: %v\n%s\n%s", name, err, out, conf)
		}
	}
	// nginx does judge: other configurations and names are refused.
	for want, out := range map[string]func() (string, error){
		"directive is not allowed here": func() (string, error) {
			return n.test(strings.Replace(shop, "worker_processes", "proxy_pass", 1), services(shop))
		},
		`"proxy_read_timeout" directive invalid value`: func() (string, error) {
			return n.test(strings.Replace(shop, "proxy_read_timeout 2s", "proxy_read_timeout 2x", 1), services(shop))
		},
		`host not found in upstream "catalog:80"`: func() (string, error) { return n.test(shop, []string{"cart", "checkout", "web"}) },
		`duplicate location "/cart/"`: func() (string, error) {
			return n.test(strings.Replace(shop, "location /catalog/", "location /cart/", 1), services(shop))
		},
	} {
		if text, err := out(); err == nil || !strings.Contains(text, want) {
			t.Errorf("want nginx to say %q, got %v: %s", want, err, text)
		}
	}
}

// TestNginxServes runs nginx with a rendered configuration and sends requests
// through it. Only where it listens is another place than in a pod.
func TestNginxServes(t *testing.T) {
	n := newNginx(t)
	var mu sync.Mutex
	calls := map[string]int{}
	called := func(what string) int {
		mu.Lock()
		defer mu.Unlock()
		calls[what]++
		return calls[what]
	}
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if call := called(r.Method + " " + r.URL.Path); strings.HasPrefix(r.URL.Path, "/flaky/") && call < 3 {
			panic(http.ErrAbortHandler) // the connection closes without an answer
		}
		fmt.Fprintf(w, "%s %s %v", r.Host, r.URL.Path, r.Header.Get("X-Request-Id") != "")
	}))
	defer backend.Close()
	_, port, err := net.SplitHostPort(backend.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	spec := strings.ReplaceAll(`apiVersion: easy.example.com/v1
kind: L7Balancer
metadata: {name: edge}
spec:
  hosts: [edge.example.com]
  defaults: {port: PORT, retries: 2}
  upstreams:
    web: {}
    flaky: {path: /flaky/}
    once: {service: flaky, path: /flaky/once/, retries: 0}
    gone: {path: /gone/, port: 1}
`, "PORT", port)
	laid := checkedExample(t, map[string]string{"services/shop/edge/balancer.yaml": spec})
	conf := nginxConf(renderedObjects(t, laid.Snapshot, "services/shop/edge"))
	socket := filepath.Join(n.dir, "http")
	here := strings.NewReplacer("listen 8080", "listen unix:"+socket, "listen 8081", "listen unix:"+filepath.Join(n.dir, "status"))
	cmd := n.command(here.Replace(conf), services(conf))
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	client := &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialUntil(ctx, socket)
	}}}
	for _, c := range []struct {
		method, url string
		code        int
		body        string
	}{
		{"GET", "http://edge.example.com/", 200, "edge.example.com / true"},
		{"GET", "http://edge.example.com/flaky/a", 200, "edge.example.com /flaky/a true"}, // the third try
		{"POST", "http://edge.example.com/flaky/b", 502, ""},                              // has an effect perhaps
		{"GET", "http://edge.example.com/flaky/once/", 502, ""},
		{"GET", "http://edge.example.com/gone/", 502, ""},
		{"GET", "http://other.example.com/", 421, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != c.code || c.body != "" && string(body) != c.body {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.url, response.StatusCode, body, c.code, c.body)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for path, want := range map[string]int{"GET /flaky/a": 3, "POST /flaky/b": 1, "GET /flaky/once/": 1} {
		if calls[path] != want {
			t.Errorf("%s reached the service %d times, want %d", path, calls[path], want)
		}
	}
}

// dialUntil dials a socket that is about to be there.
func dialUntil(ctx context.Context, socket string) (net.Conn, error) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err == nil {
			return connection, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-ticker.C:
		}
	}
}
