// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakeGitLab answers as GitLab's documentation says (its OpenAPI description has no notes of
// merge requests): with its rules for the states of a status, and refusing parameters that
// are not documented.
type fakeGitLab struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	requests []map[string]any // merge requests
	notes    []map[string]any
	states   map[string]string // of statuses, by pipeline and name
	foreign  string            // a commit that no branch has
	posted   []map[string]any
}

func newFakeGitLab(t *testing.T) *fakeGitLab {
	f := &fakeGitLab{t: t, states: map[string]string{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

var gitLabParameters = map[string][]string{
	"GET merge_requests":  {"state", "order_by", "sort", "target_branch", "per_page", "page"},
	"GET notes":           {"per_page", "page"},
	"POST notes":          {"body"},
	"PUT notes":           {"body"},
	"POST statuses":       {"state", "name", "description", "target_url", "pipeline_id", "ref"},
	"GET merge_request":   {},
	"DELETE notes":        {},
	"GET commit requests": {},
}

func (f *fakeGitLab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Header.Get("PRIVATE-TOKEN") != "glpat" {
		reply(w, http.StatusUnauthorized, map[string]any{"message": "401 Unauthorized"})
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	var sent map[string]any
	if len(body) > 0 {
		if err := json.Unmarshal(body, &sent); err != nil {
			f.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v4/")
	if path == "user" {
		reply(w, http.StatusOK, map[string]any{"username": "bot"})
		return
	}
	path, below := strings.CutPrefix(path, "projects/group%2Fsub%2Ffleet/")
	if !ok || !below {
		f.t.Errorf("%s %s", r.Method, r.URL)
	}
	f.answer(w, r, strings.Split(path, "/"), sent)
}

// known fails the test for a parameter that is not documented.
func (f *fakeGitLab) known(r *http.Request, what string, sent map[string]any) {
	for name := range r.URL.Query() {
		if !slices.Contains(gitLabParameters[r.Method+" "+what], name) {
			f.t.Errorf("%s %s: parameter %q is not documented", r.Method, what, name)
		}
	}
	for name := range sent {
		if !slices.Contains(gitLabParameters[r.Method+" "+what], name) {
			f.t.Errorf("%s %s: attribute %q is not documented", r.Method, what, name)
		}
	}
}

func (f *fakeGitLab) answer(w http.ResponseWriter, r *http.Request, path []string, sent map[string]any) {
	switch {
	case path[0] == "merge_requests" && len(path) == 1:
		f.known(r, "merge_requests", sent)
		reply(w, http.StatusOK, f.requests)
	case path[0] == "merge_requests" && len(path) == 2:
		f.known(r, "merge_request", sent)
		for _, m := range f.requests {
			if fmt.Sprint(m["iid"]) == path[1] {
				reply(w, http.StatusOK, m)
				return
			}
		}
		reply(w, http.StatusNotFound, map[string]any{"message": "404 Not found"})
	case path[0] == "merge_requests" && path[2] == "notes":
		f.known(r, "notes", sent)
		f.note(w, r, path[3:], sent)
	case path[0] == "statuses":
		f.known(r, "statuses", sent)
		f.status(w, path[1], sent)
	case path[0] == "repository":
		f.known(r, "commit requests", sent)
		reply(w, http.StatusOK, f.requests)
	default:
		f.t.Errorf("%s %v: not answered", r.Method, path)
	}
}

func (f *fakeGitLab) note(w http.ResponseWriter, r *http.Request, path []string, sent map[string]any) {
	switch {
	case len(path) == 0 && r.Method == "GET":
		size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		from := min(max(page-1, 0)*size, len(f.notes))
		to := min(from+size, len(f.notes))
		if to < len(f.notes) {
			w.Header().Set("X-Next-Page", strconv.Itoa(max(page, 1)+1))
		}
		reply(w, http.StatusOK, append([]map[string]any{}, f.notes[from:to]...))
		return
	case len(path) == 0:
		made := map[string]any{"id": 1000 + len(f.notes), "body": sent["body"], "author": map[string]any{"username": "bot"}}
		f.notes = append(f.notes, made)
		reply(w, http.StatusCreated, made)
		return
	}
	at := slices.IndexFunc(f.notes, func(n map[string]any) bool { return fmt.Sprint(n["id"]) == path[0] })
	switch {
	case at < 0:
		reply(w, http.StatusNotFound, map[string]any{"message": "404 Note Not Found"})
	case r.Method == "DELETE":
		f.notes = slices.Delete(f.notes, at, at+1)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == "GET":
		reply(w, http.StatusOK, f.notes[at])
	default:
		f.notes[at]["body"] = sent["body"]
		reply(w, http.StatusOK, f.notes[at])
	}
}

// status moves a status on: from running to running is an error, and a status that is over
// is another one when it is posted again.
func (f *fakeGitLab) status(w http.ResponseWriter, commit string, sent map[string]any) {
	if commit == f.foreign && sent["pipeline_id"] == nil && sent["ref"] == nil {
		reply(w, http.StatusNotFound, map[string]any{"message": "404 References for commit Not Found"})
		return
	}
	at := fmt.Sprint(commit, sent["pipeline_id"], sent["name"])
	state := fmt.Sprint(sent["state"])
	if f.states[at] == "running" && state == "running" {
		reply(w, http.StatusBadRequest, map[string]any{"message": "Cannot transition status via :run from :running (Reason(s): Status cannot transition via \"run\")"})
		return
	}
	f.states[at] = state
	f.posted = append(f.posted, sent)
	reply(w, http.StatusCreated, map[string]any{"id": 1, "status": state})
}

func TestGitLab(t *testing.T) {
	f := newFakeGitLab(t)
	head, merge := sha("a"), sha("b")
	f.requests = []map[string]any{
		{"iid": 7, "title": "A change", "state": "opened", "sha": head, "target_branch": "main", "source_project_id": 9, "target_project_id": 1, "author": map[string]any{"username": "ann"},
			"web_url": "https://git.example.com/7", "updated_at": "2026-11-24T10:00:00Z", "head_pipeline": map[string]any{"id": 55, "sha": head, "project_id": 1}},
		{"iid": 8, "state": "merged", "sha": sha("c"), "merge_commit_sha": merge, "target_branch": "main", "source_project_id": 1, "target_project_id": 1},
	}
	on, err := New(Config{Type: GitLab, URL: f.URL, Project: "group/sub/fleet", Token: func() (string, error) { return "glpat", nil }})
	if err != nil {
		t.Fatal(err)
	}
	open, err := on.Open(t.Context(), "main")
	if err != nil || len(open) != 2 {
		t.Fatal(open, err)
	}
	if p := open[0]; p.Number != 7 || p.Head != head || !p.Fork || !p.Open || p.Ref != "refs/merge-requests/7/head" || p.Merge != "" {
		t.Errorf("%+v", p)
	}
	if got, err := on.Get(t.Context(), 7); err != nil || got != open[0] {
		t.Errorf("Get = %+v, %v", got, err)
	}
	if _, err := on.Get(t.Context(), 4711); !IsNotFound(err) {
		t.Error(err)
	}
	if p, err := on.Merged(t.Context(), merge); err != nil || p.Number != 8 {
		t.Errorf("Merged = %+v, %v", p, err)
	}
	for i := range 150 {
		f.notes = append(f.notes, map[string]any{"id": i + 1, "body": "hello", "system": i%2 == 0, "author": map[string]any{"username": "ann"}})
	}
	id, err := on.Comment(t.Context(), 7, Comment{Subject: "preview of shop", Text: "one"})
	if err != nil || id != 1150 {
		t.Fatal(id, err)
	}
	if again, err := on.Comment(t.Context(), 7, Comment{Subject: "preview of shop", Text: "two"}); err != nil || again != id {
		t.Fatal(again, err)
	}
	if body := f.notes[150]["body"]; !strings.HasSuffix(fmt.Sprint(body), "\ntwo") || len(f.notes) != 151 {
		t.Errorf("%v, %d notes", body, len(f.notes))
	}
	// A status goes into the merge request's own pipeline; one that is there already is no
	// error; and no status is over before it has run.
	for _, state := range []State{Pending, Pending, Success, Pending, Failure} {
		if err := on.SetStatus(t.Context(), Status{Commit: head, Name: "swell/shop", State: state, Text: "text", Pull: 7}); err != nil {
			t.Fatal(err)
		}
	}
	var states []any
	for _, s := range f.posted {
		states = append(states, s["state"])
		if s["pipeline_id"] != 55.0 {
			t.Errorf("pipeline %v", s["pipeline_id"])
		}
	}
	if got := fmt.Sprint(states); got != "[running success running failed]" {
		t.Error(got)
	}
	if err := on.SetStatus(t.Context(), Status{Commit: merge, Name: "swell/shop", State: Success}); err != nil {
		t.Fatal(err)
	}
	if last := f.posted[len(f.posted)-1]; last["pipeline_id"] != nil {
		t.Errorf("a commit of the branch went into pipeline %v", last["pipeline_id"])
	}
	// The head of a fork without a pipeline is on no branch of the project.
	f.foreign = string(sha("d"))
	f.requests = append(f.requests, map[string]any{"iid": 9, "state": "opened", "sha": f.foreign, "target_branch": "main", "source_branch": "topic", "source_project_id": 9, "target_project_id": 1})
	if err := on.SetStatus(t.Context(), Status{Commit: sha("d"), Name: "swell/shop", State: Success, Pull: 9}); err != nil {
		t.Fatal(err)
	}
	if last := f.posted[len(f.posted)-1]; last["ref"] != "topic" {
		t.Errorf("the status of a fork's head has ref %v", last["ref"])
	}
}

func TestLocate(t *testing.T) {
	for repository, want := range map[string]string{
		"https://git.example.com/shop/fleet.git":            "https://git.example.com shop/fleet",
		"https://ann:secret@git.example.com:8443/a/b/c.git": "https://git.example.com:8443 a/b/c",
		"http://127.0.0.1:3000/shop/fleet":                  "http://127.0.0.1:3000 shop/fleet",
		"git@github.com:shop/fleet.git":                     "https://github.com shop/fleet",
		"ssh://git@git.example.com:2222/shop/fleet.git/":    "https://git.example.com shop/fleet",
		"github.com:shop/fleet":                             "https://github.com shop/fleet",
		"/srv/git/fleet.git":                                "",
		"https://git.example.com/fleet.git":                 "",
		"file:///srv/git/fleet.git":                         "",
		"":                                                  "",
	} {
		got := ""
		if at, project, ok := Locate(repository); ok {
			got = at + " " + project
		}
		if got != want {
			t.Errorf("Locate(%q) = %q, want %q", repository, got, want)
		}
	}
}
