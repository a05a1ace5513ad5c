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

// renamed answers for shop/fleet, and redirects what is asked of shop/old to it.
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
	f.came = append(f.came, r.Method+" "+r.URL.Host+r.URL.RequestURI()+" "+r.Header.Get("Authorization")+r.Header.Get("PRIVATE-TOKEN")+" "+strings.TrimSpace(string(body)))
	return f.oddForge.RoundTrip(r)
}

// TestRenamedRepository: what is asked of a repository that was renamed is asked of the new one, with
// method and body, and nothing is asked elsewhere.
func TestRenamedRepository(t *testing.T) {
	call := func(is Type, project, name string, f *renamed) error {
		f.oddForge = oddForge{object: anyObject(), at: -1}
		on, err := New(Config{Type: is, URL: "http://git.example.com", Project: project, Token: func() (string, error) { return "secret", nil }, Transport: f})
		if err != nil {
			t.Fatal(err)
		}
		return callsOfForge[name](t, on)
	}
	for _, is := range []Type{GitHub, GitLab, Gitea} {
		for _, name := range slices.Sorted(maps.Keys(callsOfForge)) {
			direct := &renamed{}
			if err := call(is, "shop/fleet", name, direct); err != nil {
				t.Fatal(err)
			}
			for _, status := range []int{301, 302, 307, 308} {
				f := &renamed{status: status}
				if err := call(is, "shop/old", name, f); err != nil || !slices.Equal(f.came, direct.came) {
					t.Errorf("%s: %s: after %d: %v:\n got %s\nwant %s", is, name, status, err, strings.Join(f.came, "\n     "), strings.Join(direct.came, "\n     "))
				}
				f = &renamed{status: status, host: "other.example.com"}
				err := call(is, "shop/old", name, f)
				if err == nil || slices.ContainsFunc(f.came, func(request string) bool { return strings.Contains(request, "other.example.com") }) {
					t.Errorf("%s: %s: to another host: %v: %s", is, name, err, f.came)
				}
			}
		}
	}
}

// TestWritesOfARenamedRepository: a write that is redirected counts once against the bound of writes.
func TestWritesOfARenamedRepository(t *testing.T) {
	f := &renamed{status: http.StatusTemporaryRedirect, oddForge: oddForge{object: anyObject(), at: -1}}
	on, err := New(Config{Type: GitHub, URL: "http://git.example.com", Project: "shop/old", Token: func() (string, error) { return "secret", nil }, Transport: f})
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if err := callsOfForge["SetStatus"](t, on); err != nil {
			t.Fatalf("after %d writes: %v", len(f.came), err)
		}
	}
}
