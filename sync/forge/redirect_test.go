// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// renamed answers for shop/fleet, and redirects requests for shop/old to it.
type renamed struct {
	oddForge
	status int
	host   string // where it redirects to; empty: the same
	came   []string
}

func (f *renamed) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if path := r.URL.EscapedPath(); strings.Contains(path, "old") {
		to := *r.URL
		to.Path, to.RawPath = "", ""
		to.RawQuery, to.Host = "", r.URL.Host
		if f.host != "" {
			to.Host = f.host
		}
		location := to.String() + strings.Replace(path, "old", "fleet", 1)
		if r.URL.RawQuery != "" {
			location += "?" + r.URL.RawQuery
		}
		return &http.Response{StatusCode: f.status, Request: r, Header: http.Header{"Location": {location}}, Body: http.NoBody}, nil
	}
	token := r.Header.Get("Authorization") + r.Header.Get("PRIVATE-TOKEN")
	f.came = append(f.came, strings.Join([]string{r.Method, r.URL.Host + r.URL.RequestURI(), token, strings.TrimSpace(string(body))}, " "))
	return f.oddForge.RoundTrip(r)
}

func forgeAt(t *testing.T, kind Type, project string, transport http.RoundTripper) Forge {
	t.Helper()
	token := func() (string, error) { return "secret", nil }
	forge, err := New(Config{Type: kind, URL: "http://git.example.com", Project: project, Token: token, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return forge
}

// TestRenamedRepository: requests for a repository that was renamed go to the new one, with method and
// body, and none goes elsewhere.
func TestRenamedRepository(t *testing.T) {
	call := func(kind Type, project, name string, f *renamed) error {
		f.oddForge = oddForge{object: anyObject(), at: -1}
		return callsOfForge[name](t, forgeAt(t, kind, project, f))
	}
	for _, kind := range []Type{GitHub, GitLab, Gitea} {
		for _, name := range slices.Sorted(maps.Keys(callsOfForge)) {
			direct := &renamed{}
			if err := call(kind, "shop/fleet", name, direct); err != nil {
				t.Fatal(err)
			}
			for _, status := range []int{301, 302, 307, 308} {
				f := &renamed{status: status}
				if err := call(kind, "shop/old", name, f); err != nil || !slices.Equal(f.came, direct.came) {
					t.Errorf("%s: %s: after %d: %v:\n got %s\nwant %s", kind, name, status, err,
						strings.Join(f.came, "\n     "), strings.Join(direct.came, "\n     "))
				}
				f = &renamed{status: status, host: "other.example.com"}
				err := call(kind, "shop/old", name, f)
				if err == nil || strings.Contains(strings.Join(f.came, " "), "other.example.com") {
					t.Errorf("%s: %s: to another host: %v: %s", kind, name, err, f.came)
				}
			}
		}
	}
}

// TestWritesOfARenamedRepository: a write that is redirected counts once against the bound of writes.
func TestWritesOfARenamedRepository(t *testing.T) {
	f := &renamed{status: http.StatusTemporaryRedirect, oddForge: oddForge{object: anyObject(), at: -1}}
	forge := forgeAt(t, GitHub, "shop/old", f)
	for range 40 {
		if err := callsOfForge["SetStatus"](t, forge); err != nil {
			t.Fatalf("after %d writes: %v", len(f.came), err)
		}
	}
}
