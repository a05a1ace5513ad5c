// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/gate"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/sops"
	"github.com/swell-sh/swell/sync/source"
)

// echoed are the ways in which a server repeats a text.
var echoed = map[string]func(string) string{
	"raw":              func(s string) string { return s },
	"base64":           func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 of a pair": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("x:" + s)) },
	"URL-encoded":      url.QueryEscape,
	"JSON":             func(s string) string { text, _ := json.Marshal(s); return string(text) },
	"hexadecimal":      func(s string) string { return hex.EncodeToString([]byte(s)) },
}

// echo repeats everything that it was sent: headers, credentials, queries.
func echo(w http.ResponseWriter, r *http.Request) {
	status, _ := strconv.Atoi(r.Header.Get("X-Status"))
	form := echoed[r.Header.Get("X-Form")]
	all := []string{r.Header.Get("Authorization"), r.Header.Get("PRIVATE-TOKEN"), r.URL.RawQuery}
	if user, password, ok := r.BasicAuth(); ok {
		all = append(all, user, password, user+":"+password)
	}
	if _, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok {
		all = append(all, token)
	}
	for _, values := range r.URL.Query() {
		all = append(all, values...)
	}
	var text strings.Builder
	for _, value := range all {
		text.WriteString(form(value) + " ")
	}
	answer := text.String()
	switch r.Header.Get("X-Type") {
	case "application/json":
		body, _ := json.Marshal(map[string]any{"message": answer, "status": "error", "errorType": "bad_data", "error": answer})
		answer = string(body)
	case "application/broken":
		answer = `{"status": "success", "data": ` + answer
	}
	w.Header().Set("Content-Type", r.Header.Get("X-Type"))
	w.Header().Set("Retry-After", form(r.Header.Get("Authorization")))
	w.WriteHeader(status)
	fmt.Fprint(w, answer)
}

// asking tells the server how to answer.
type asking struct {
	status, kind, form string
	to                 string // the host and port of the server
}

func (a asking) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Status", a.status)
	r.Header.Set("X-Type", a.kind)
	r.Header.Set("X-Form", a.form)
	r.URL.Scheme, r.URL.Host = "http", a.to
	return http.DefaultTransport.RoundTrip(r)
}

// TestServersThatEcho: whatever a server that we talk to repeats of what we sent, in whatever form, no
// error and no answer of it has a credential.
func TestServersThatEcho(t *testing.T) {
	const token = "k7Y8/mPcU+Vx9 \"rZ'q&é"
	const headerToken = "k7Y8mPcUTVx9rZq" // where a header takes no others
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()
	file := func(name, content string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	var shown []string
	for _, encode := range echoed {
		for _, secret := range []string{token, headerToken} {
			shown = append(shown, encode(secret), encode("git:"+secret), encode("ann:"+secret))
		}
	}
	answers := 0
	look := func(client, text string) {
		answers++
		if text == "" {
			t.Errorf("%s: says nothing", client)
		}
		for _, leak := range append(shown, "k7Y8") {
			if strings.Contains(strings.ToLower(text), strings.ToLower(leak)) {
				t.Errorf("%s: shows %s in %s", client, leak, text)
				return
			}
		}
	}
	bound := 1.0
	for form := range echoed {
		for _, status := range []string{"200", "401", "403", "422", "500", "503"} {
			for _, kind := range []string{"text/headerToken", "text/html", "application/json", "application/broken"} {
				scene := strings.Join([]string{form, status, kind}, ", ")
				way := asking{status, kind, form, host}

				endpoints := map[string]config.Endpoint{
					"token": {URL: server.URL, TokenFile: file("token", headerToken)},
					"url":   {URL: "http://ann:" + url.QueryEscape(headerToken) + "@" + host + "/?key=" + url.QueryEscape(token)},
				}
				for name := range endpoints {
					for _, asked := range []config.Gate{
						{HTTP: &config.HTTPGate{Endpoint: name, Path: "/x"}},
						{Prometheus: &config.PrometheusGate{Endpoint: name, Query: "1", AtMost: &bound}},
					} {
						if status == "200" && asked.HTTP != nil {
							continue
						}
						done := make(chan struct{}, 1)
						asker := gate.New(endpoints, way, func() { done <- struct{}{} })
						asker.Ask(t.Context(), []rollout.Question{{Unit: "a", Of: asked}})
						<-done
						for _, answer := range asker.Collect() {
							look("gate "+name+": "+scene, answer.Reason)
						}
					}
				}
				for _, c := range []forge.Type{forge.GitHub, forge.GitLab, forge.Gitea} {
					f, err := forge.New(forge.Config{Type: c, URL: "http://forge.example.com", Project: "shop/fleet",
						Token: func() (string, error) { return headerToken, nil }, Transport: way, Now: time.Now})
					if err != nil {
						t.Fatal(err)
					}
					_, err = f.Get(t.Context(), 7)
					look(string(c)+": "+scene, fmt.Sprint(err))
				}
			}
		}
	}
	git := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git")
		for name, value := range map[string]string{"X-Status": "401", "X-Type": "text/headerToken", "X-Form": strings.ReplaceAll(form, "_",
			" ")} {
			r.Header.Set(name, value)
		}
		echo(w, r)
	}))
	defer git.Close()
	for form := range echoed {
		path := "/" + strings.ReplaceAll(form, " ", "_") + ".git"
		for name, c := range map[string]source.Config{
			"token file": {URL: git.URL + path, Auth: source.Auth{TokenFile: file("git", token)}},
			"short":      {URL: git.URL + path, Auth: source.Auth{TokenFile: file("short", "k7Y8a")}},
			"URL":        {URL: strings.Replace(git.URL, "://", "://ann:"+url.QueryEscape(headerToken)+"@", 1) + path},
			"user alone": {URL: strings.Replace(git.URL, "://", "://"+headerToken+"@", 1) + path},
		} {
			c.Dir = t.TempDir()
			s, err := source.Open(c)
			if err == nil {
				_, err = s.Fetch(t.Context())
				s.Close()
			}
			look("git "+name+", "+form, fmt.Sprint(err))
		}
	}
	// A helper that opens files of sops says what it likes.
	f, err := sops.Read("db.yaml", []byte(echoSealed))
	if err != nil {
		t.Fatal(err)
	}
	for form, encode := range echoed {
		answer := file("said", "gpg: no key opens it: "+encode(headerToken)+" "+encode(token)+"\n")
		helper := file("helper", "#!/bin/sh\ncat "+answer+" >&2\nexit 2\n")
		if err := os.Chmod(helper, 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := (&sops.Keys{Secrets: config.Secrets{SecretKeys: config.SecretKeys{Helper: []string{"/bin/sh",
			helper}}}}).DataKey(t.Context(), f, "")
		look("helper of sops, "+form, fmt.Sprint(err))
		if !strings.Contains(fmt.Sprint(err), "gpg: no key opens it") {
			t.Errorf("the helper's words are not shown: %v", err)
		}
	}
	t.Logf("%d answers", answers)
}

// echoSealed is a file that a key of PGP opens.
const echoSealed = `apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {a: "ENC[AES256_GCM,data:AA==,iv:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=,tag:AAAAAAAAAAAAAAAAAAAAAA==,type:str]"}
sops:
  pgp: [{created_at: "2026-01-01T00:00:00Z", enc: x, fp: "85D77543B3D624B63CEA9E6DBC17301B491B3F21"}]
  lastmodified: "2026-01-01T00:00:00Z"
  mac: "ENC[AES256_GCM,data:AA==,iv:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=,tag:AAAAAAAAAAAAAAAAAAAAAA==,type:str]"
  encrypted_regex: ^(data|stringData)$
  version: 3.9.0
`
