// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/gate/gatetest"
	"github.com/swell-sh/swell/sync/rollout"
)

// ask has an asker answer one question.
func ask(t *testing.T, endpoints map[string]config.Endpoint, gate config.Gate) rollout.Answer {
	t.Helper()
	answered := make(chan struct{}, 1)
	a := New(endpoints, nil, func() { answered <- struct{}{} })
	question := rollout.Question{Unit: "services/shop/cart", Of: gate,
		Values: map[string]string{"unit": "services/shop/cart", "name": "cart", "wave": "canary", "clusters": "sas-1|vla-1"}}
	a.Ask(t.Context(), []rollout.Question{question, question}) // the second is not asked
	select {
	case <-answered:
	case <-time.After(time.Minute):
		t.Fatal("no answer within a minute")
	}
	a.Wait()
	answers := a.Collect()
	if len(answers) != 1 {
		t.Fatalf("got %d answers, want 1", len(answers))
	}
	return answers[0]
}

// TestHTTP: what an endpoint says of a wave, and what it is asked.
func TestHTTP(t *testing.T) {
	var asked, token atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.String())
		token.Store(r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/base/yes":
			w.WriteHeader(http.StatusNoContent)
		case "/base/moved":
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		case "/base/busy":
			http.Error(w, "try later", http.StatusServiceUnavailable)
		case "/base/echo":
			http.Error(w, "no such user: "+r.Header.Get("Authorization"), http.StatusForbidden)
		default:
			http.Error(w, "the \x1b[31mchange\x1b[0m is not\nsigned off", http.StatusForbidden)
		}
	}))
	defer server.Close()
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("s3cr3t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	endpoints := map[string]config.Endpoint{"ci": {URL: server.URL + "/base/", TokenFile: secret}, "away": {URL: "http://127.0.0.1:1"}}
	for _, c := range []struct {
		endpoint, path string
		kind           rollout.AnswerKind
		reason         string
	}{
		{"ci", "/yes?unit=${unit}&wave=${wave}", rollout.Yes, ""},
		{"ci", "/no", rollout.No, "endpoint ci: 403 Forbidden: the "},
		{"ci", "/moved", rollout.No, "endpoint ci: 302 Found"},
		{"ci", "/busy", rollout.NoAnswer, "endpoint ci: 503 Service Unavailable: try later"},
		{"ci", "/echo", rollout.No, "endpoint ci: 403 Forbidden: no such user: Bearer (secret)"},
		{"away", "/", rollout.NoAnswer, "endpoint away: connection refused"},
		{"none", "/", rollout.NoAnswer, `the daemon's configuration has no endpoint "none": add it to spec.endpoints`},
	} {
		answer := ask(t, endpoints, config.Gate{HTTP: &config.HTTPGate{Endpoint: c.endpoint, Path: c.path}})
		if answer.Kind != c.kind || !strings.HasPrefix(answer.Reason, c.reason) || strings.ContainsAny(answer.Reason, "\x1b\n") {
			t.Errorf("%s%s: got %s %q, want %s %q", c.endpoint, c.path, answer.Kind, answer.Reason, c.kind, c.reason)
		}
		if strings.Contains(c.path, "unit") && (asked.Load() != "/base/yes?unit=services%2Fshop%2Fcart&wave=canary" || token.Load() != "Bearer s3cr3t") {
			t.Errorf("asked %q with %q", asked.Load(), token.Load())
		}
	}
}

// TestPrometheus asks a real Prometheus server: numbers in and out of bounds, and what is
// no number, which is no answer.
func TestPrometheus(t *testing.T) {
	server := gatetest.Prometheus(t, func() string { return "errors{unit=\"cart\"} 0.2\nerrors{unit=\"web\"} 0.01\n" })
	endpoints := map[string]config.Endpoint{"main": {URL: server}, "away": {URL: "http://127.0.0.1:1"}}
	most, least := 0.1, -0.5
	query := func(endpoint, query string) rollout.Answer {
		gate := &config.PrometheusGate{Endpoint: endpoint, Query: query, AtMost: &most, AtLeast: &least}
		return ask(t, endpoints, config.Gate{Prometheus: gate})
	}
	for deadline := time.Now().Add(time.Minute); query("main", `errors{unit="web"}`).Kind != rollout.Yes; {
		if time.Now().After(deadline) {
			t.Fatalf("no samples within a minute: %+v", query("main", `errors{unit="web"}`))
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, c := range []struct {
		endpoint, query string
		kind            rollout.AnswerKind
		reason          string
	}{
		{"main", `errors{unit="${name}"}`, rollout.No, `errors{unit="cart"} is 0.2, above 0.1`},
		{"main", `sum(errors{unit!="${name}"})`, rollout.Yes, ""},
		{"main", `vector(0.1)`, rollout.Yes, ""},
		{"main", `vector(-0.5)`, rollout.Yes, ""},
		{"main", `vector(-0.6)`, rollout.No, "vector(-0.6) is -0.6, below -0.5"},
		{"main", `vector(0) / 0`, rollout.NoAnswer, "endpoint main: the query gives NaN"},
		{"main", `errors`, rollout.NoAnswer, "endpoint main: the query gives 2 numbers, want one"},
		{"main", `nothing`, rollout.NoAnswer, "endpoint main: the query gives 0 numbers, want one"},
		{"main", `errors[1m]`, rollout.NoAnswer, "endpoint main: "},
		{"main", `sum(`, rollout.NoAnswer, "endpoint main: "},
		{"away", `1`, rollout.NoAnswer, "endpoint away: connection refused"},
	} {
		answer := query(c.endpoint, c.query)
		if answer.Kind != c.kind || !strings.HasPrefix(answer.Reason, c.reason) || (c.reason == "") != (answer.Reason == "") {
			t.Errorf("%s: got %s %q, want %s %q", c.query, answer.Kind, answer.Reason, c.kind, c.reason)
		}
	}
}

// TestPromQL: no name of a folder says more in a query than it says as text.
func TestPromQL(t *testing.T) {
	values := map[string]string{
		"unit": `a"} or vector(1) #'` + "\n" + `\`, "name": "a.b", "wave": "canary",
		"clusters": "sas.1|vla-1", "tenant": "a`b",
	}
	for _, c := range []struct{ query, want string }{
		{`errors{unit="${unit}"}`, `errors{unit="a\"} or vector(1) #'\n\\"}`},
		{`errors{unit='${unit}'}`, `errors{unit='a"} or vector(1) #\'\n\\'}`},
		{`errors{unit=~"${name}|x", cluster=~"${clusters}"}`, `errors{unit=~"a\\.b|x", cluster=~"sas\\.1|vla-1"}`},
		{"errors{unit !~ `${name}`, other=`${name}`}", "errors{unit !~ `a\\.b`, other=`a.b`}"},
		{`errors_${wave}{a="\"${wave}", b="#"} # "`, `errors_canary{a="\"canary", b="#"} `},
		{`errors{unit=~"a"} > ${name}`, `!${name} is "a.b", which cannot stand outside of quotes`},
		{"errors{tenant=`${tenant}`}", "!${tenant} is \"a`b\", which cannot stand in backquotes"},
	} {
		got, err := promQL(c.query, values)
		if err != nil {
			got = "!" + err.Error()
		}
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.query, got, c.want)
		}
	}
}

// TestLongAnswers: of what an endpoint sends without end, a MiB is read.
func TestLongAnswers(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "refuse") {
			w.WriteHeader(http.StatusForbidden)
		}
		for chunk := []byte(strings.Repeat(" ", 64<<10)); sent.Load() < 256<<20; {
			n, err := w.Write(chunk)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	bound := 1.0
	endpoints := map[string]config.Endpoint{"long": {URL: server.URL}}
	query := &config.PrometheusGate{Endpoint: "long", Query: "1", AtMost: &bound}
	for want, gate := range map[string]config.Gate{
		"endpoint long: the answer is longer than 1 MiB": {Prometheus: query},
		"endpoint long: 403 Forbidden":                   {HTTP: &config.HTTPGate{Endpoint: "long", Path: "/refuse"}},
	} {
		sent.Store(0)
		if answer := ask(t, endpoints, gate); answer.Kind == rollout.Yes || answer.Reason != want {
			t.Errorf("got %s %q, want %q", answer.Kind, answer.Reason, want)
		}
		if n := sent.Load(); n >= 256<<20 {
			t.Errorf("%d bytes were read", n)
		}
	}
}

// TestPrometheusGoesNowhereElse: the token is for the endpoint, not for where it sends us.
func TestPrometheusGoesNowhereElse(t *testing.T) {
	var stolen atomic.Value
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen.Store(r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("s3cr3t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bound := 1.0
	endpoints := map[string]config.Endpoint{"prom": {URL: server.URL, TokenFile: secret}}
	gate := config.Gate{Prometheus: &config.PrometheusGate{Endpoint: "prom", Query: "1", AtMost: &bound}}
	if answer := ask(t, endpoints, gate); answer.Kind != rollout.NoAnswer {
		t.Errorf("got %s %q", answer.Kind, answer.Reason)
	}
	if got := stolen.Load(); got != nil {
		t.Errorf("the server of the redirect got %q", got)
	}
}
