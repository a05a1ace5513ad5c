// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// oddForge answers all requests with the same object, which has what the objects of all forges
// have, or a list of it; and one of them with another text.
type oddForge struct {
	object   map[string]any
	text     string // what it answers in place of an object
	at       int    // which request, from 0
	requests int
}

func (f *oddForge) RoundTrip(r *http.Request) (*http.Response, error) {
	var value any = f.object
	for _, list := range []string{"/pulls", "/merge_requests", "/comments", "/notes"} {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, list) || strings.Contains(r.URL.Path, "/repository/commits/") || strings.HasSuffix(r.URL.Path, "/commits/c/pulls") {
			value = []any{f.object}
		}
	}
	content, err := json.Marshal(value)
	if f.requests == f.at {
		content = []byte(strings.ReplaceAll(f.text, "OBJECT", string(content)))
	}
	f.requests++
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(content)))}, err
}

func anyObject() map[string]any {
	branch := map[string]any{"sha": "a", "ref": "main", "label": "main", "repo_id": 1, "repo": map[string]any{"id": 1}}
	return map[string]any{
		"number": 7, "iid": 7, "title": "A change", "state": "open", "html_url": "https://git.example.com/7", "web_url": "https://git.example.com/7",
		"user": map[string]any{"login": "bot"}, "author": map[string]any{"username": "bot"}, "login": "bot", "username": "bot",
		"head": branch, "base": maps.Clone(branch), "sha": "a", "source_branch": "change", "target_branch": "main", "source_project_id": 1, "target_project_id": 1,
		"head_pipeline": map[string]any{"id": 55, "sha": "a", "project_id": 1}, "merged": true, "merge_commit_sha": "c", "merged_at": "2026-11-24T10:00:00Z", "updated_at": "2026-11-24T10:00:00Z",
		"id": 5, "body": "<!-- swell: preview of shop: 1 -->",
	}
}

// variants calls do with the object, less or other than it is at one place, all the way down.
func variants(object map[string]any, do func()) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		is := object[name]
		if below, ok := is.(map[string]any); ok {
			variants(below, do)
		}
		delete(object, name)
		do()
		for _, other := range []any{nil, -1, "x", []any{}, []any{nil}, map[string]any{}} {
			object[name] = other
			do()
		}
		object[name] = is
	}
}

var callsOfForge = map[string]func(*testing.T, Forge) error{
	"Open":   func(t *testing.T, on Forge) error { _, err := on.Open(t.Context(), "main"); return err },
	"Get":    func(t *testing.T, on Forge) error { _, err := on.Get(t.Context(), 7); return err },
	"Merged": func(t *testing.T, on Forge) error { _, err := on.Merged(t.Context(), "c"); return err },
	"SetStatus": func(t *testing.T, on Forge) error {
		return on.SetStatus(t.Context(), Status{Commit: "a", Name: "swell/shop", State: Success, Pull: 7})
	},
	"Comment": func(t *testing.T, on Forge) error {
		_, err := on.Comment(t.Context(), 7, Comment{Subject: "preview of shop", Text: "text"})
		return err
	},
	"Comment again": func(t *testing.T, on Forge) error {
		_, err := on.Comment(t.Context(), 7, Comment{Subject: "preview of shop", Text: "text", ID: 5})
		return err
	},
}

// An answer with status 200 that is none ends a request, and not the daemon: a real Gitea
// answers with null where a query of its database fails.
func TestOddAnswers(t *testing.T) {
	call := func(is Type, name string, f *oddForge) (err error) {
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("%s: %s: %q in answer %d, %v: %v\n%s", is, name, f.text, f.at, f.object, r, debug.Stack())
			}
		}()
		on, err := New(Config{Type: is, URL: "http://git.example.com", Project: "shop/fleet", Token: func() (string, error) { return "secret", nil }, Transport: f})
		if err != nil {
			t.Fatal(err)
		}
		return callsOfForge[name](t, on)
	}
	for _, is := range []Type{GitHub, GitLab, Gitea} {
		for _, name := range slices.Sorted(maps.Keys(callsOfForge)) {
			plain := &oddForge{object: anyObject(), at: -1}
			if err := call(is, name, plain); err != nil {
				t.Errorf("%s: %s: %v", is, name, err)
			}
			for at := range plain.requests {
				for _, text := range []string{"", "null", "[null]", "[OBJECT, null]", "1", `"x"`, "true", "[1]", "{", "OBJECT x", "<html></html>", "Service ready"} {
					if err := call(is, name, &oddForge{object: anyObject(), text: text, at: at}); err == nil {
						t.Errorf("%s: %s: %q in answer %d is taken", is, name, text, at)
					}
				}
				_ = call(is, name, &oddForge{object: anyObject(), text: "[]", at: at})
				if err := call(is, name, &oddForge{object: anyObject(), text: "{}", at: at}); err == nil && name == "Get" {
					t.Errorf("%s: %s: {} is taken", is, name)
				}
			}
			object := anyObject()
			variants(object, func() { _ = call(is, name, &oddForge{object: object, at: -1}) })
		}
	}
}

// A forge's fault says where it is, and nothing that is not for showing.
func TestWordsOfFaults(t *testing.T) {
	for _, test := range []struct {
		status     int
		body, want string
	}{
		{200, "<!DOCTYPE html>", "pull request 7: http://git.example.com: the answer is a web page, and no JSON: is this the forge's URL?"},
		{502, "", "pull request 7: 502 Bad Gateway"},
		{200, `"Bearer secret-secret"`, "pull request 7: http://git.example.com: the answer is no object, and no list of objects, in JSON: either this is not the forge's URL, or the forge has a fault of its own"},
		{401, `{"message": "Bad credentials: Bearer secret-secret"}`, "pull request 7: 401 Unauthorized: Bad credentials: Bearer (secret)"},
	} {
		on, err := New(Config{Type: GitHub, URL: "http://git.example.com", Project: "shop/fleet", Token: func() (string, error) { return "secret-secret", nil },
			Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: test.status, Request: r, Body: io.NopCloser(strings.NewReader(test.body))}, nil
			})})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := on.Get(t.Context(), 7); fmt.Sprint(err) != test.want {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
	for _, at := range []string{"http://u:secret@git.example.com", "http://secret@git.example.com:x", "git.example.com"} {
		for _, c := range []Config{{Type: GitHub, URL: at, Project: "shop/fleet"}, {Type: GitHub, URL: "https://git.example.com", API: at, Project: "shop/fleet"}} {
			if _, err := New(c); err == nil || !strings.Contains(err.Error(), "want http:// or https:// with a host") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: %v", at, err)
			}
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
