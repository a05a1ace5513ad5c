// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/swell-sh/swell/config"
)

// operation is what GitHub's published OpenAPI description says of one: the schemas of its
// query parameters and of its body. testdata/github.json has those that are used here, of
// the description of api.github.com in @octokit/openapi 23.0.2.
type operation struct {
	method string
	path   *regexp.Regexp
	query  map[string]*jsonschema.Schema
	body   *jsonschema.Schema
}

func gitHubOperations(t *testing.T) (all []operation) {
	t.Helper()
	content, err := os.ReadFile("testdata/github.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("github.json", document); err != nil {
		t.Fatal(err)
	}
	compile := func(parts ...string) *jsonschema.Schema {
		pointer := "github.json#"
		for _, part := range parts {
			part = strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
			pointer += "/" + strings.NewReplacer("{", "%7B", "}", "%7D", " ", "%20").Replace(part)
		}
		schema, err := compiler.Compile(pointer)
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
	for name, is := range document.(map[string]any) {
		method, path, _ := strings.Cut(name, " ")
		pattern := regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`)
		op := operation{method: method, path: regexp.MustCompile("^" + pattern + "$"), query: map[string]*jsonschema.Schema{}}
		known := is.(map[string]any)
		if query, ok := known["query"].(map[string]any); ok {
			for name := range query {
				op.query[name] = compile(operationName(method, path), "query", name)
			}
		}
		if known["body"] != nil {
			op.body = compile(operationName(method, path), "body")
		}
		all = append(all, op)
	}
	return all
}

func operationName(method, path string) string { return method + " " + path }

// check holds a request against the description.
func (o *operation) check(r *http.Request, body []byte) error {
	for name, values := range r.URL.Query() {
		schema := o.query[name]
		if schema == nil {
			return fmt.Errorf("query parameter %q: not known", name)
		}
		var value any = values[0]
		if n, err := strconv.Atoi(values[0]); err == nil {
			value = json.Number(strconv.Itoa(n))
		}
		if err := schema.Validate(value); err != nil {
			return err
		}
	}
	switch {
	case o.body == nil && len(bytes.TrimSpace(body)) > 0:
		return fmt.Errorf("a body that is not known: %s", body)
	case o.body == nil || len(body) == 0 && o.method == "POST" && strings.Contains(o.path.String(), "access_tokens"):
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return o.body.Validate(value)
}

// fakeGitHub answers in the shapes of GitHub, and holds each request against its
// description.
type fakeGitHub struct {
	*httptest.Server
	t          *testing.T
	operations []operation
	key        *rsa.PublicKey // of the App; nil: there is none
	now        func() time.Time

	mu       sync.Mutex
	pulls    []map[string]any
	comments []map[string]any
	statuses []map[string]any
	runs     []map[string]any
	minted   int
	account  string // whose the token of somebody is
	requests []string
	// refuse answers a request in place of the server, when it returns true.
	refuse func(http.ResponseWriter, *http.Request) bool
}

func newFakeGitHub(t *testing.T) *fakeGitHub {
	f := &fakeGitHub{t: t, operations: gitHubOperations(t), now: time.Now, account: "bot"}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeGitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v3")
	if !ok {
		f.t.Errorf("%s %s: not below /api/v3", r.Method, r.URL)
	}
	f.requests = append(f.requests, r.Method+" "+path)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	known := slices.IndexFunc(f.operations, func(o operation) bool { return o.method == r.Method && o.path.MatchString(path) })
	if known < 0 {
		f.t.Errorf("%s %s: GitHub has no such operation", r.Method, path)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if err := f.operations[known].check(r, body); err != nil {
		f.t.Errorf("%s %s: %v\n%s", r.Method, r.URL, err, body)
	}
	if f.refuse != nil && f.refuse(w, r) {
		return
	}
	if !f.authorized(r, path) {
		reply(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
		return
	}
	f.answer(w, r, path, body)
}

// authorized checks the credential: the proof of the App, its token, or the token of somebody.
func (f *fakeGitHub) authorized(r *http.Request, path string) bool {
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if f.key != nil && (path == "/app" || strings.HasPrefix(path, "/app/")) {
		return f.isProof(given)
	}
	if f.key != nil {
		return given == "ghs_"+strconv.Itoa(f.minted)
	}
	return strings.HasPrefix(given, "secret")
}

// isProof checks a JSON Web Token as GitHub does.
func (f *fakeGitHub) isProof(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(f.key, crypto.SHA256, sum[:], signature) != nil {
		return false
	}
	var claims struct {
		Issuer  string `json:"iss"`
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
	}
	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(content, &claims) != nil {
		return false
	}
	now := f.now().Unix()
	return claims.Issuer == "4711" && claims.Issued <= now && claims.Expires > now && claims.Expires-now <= 600
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func (f *fakeGitHub) answer(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	var sent map[string]any
	_ = json.Unmarshal(body, &sent)
	part := strings.Split(strings.TrimPrefix(path, "/repos/shop/fleet/"), "/")
	switch {
	case path == "/user" && f.key == nil:
		reply(w, http.StatusOK, map[string]any{"login": f.account})
	case path == "/app":
		reply(w, http.StatusOK, map[string]any{"slug": "swell-previews"})
	case strings.HasSuffix(path, "/access_tokens"):
		f.minted++
		reply(w, http.StatusCreated, map[string]any{"token": "ghs_" + strconv.Itoa(f.minted), "expires_at": f.now().Add(time.Hour).Format(time.RFC3339)})
	case part[0] == "pulls" && len(part) == 1:
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		f.paged(w, r, f.pulls, max(page, 1))
	case part[0] == "commits" && part[2] == "check-runs":
		f.checkRuns(w, r)
	case part[0] == "pulls", part[0] == "commits":
		var found []map[string]any
		for _, p := range f.pulls {
			if part[0] == "commits" || fmt.Sprint(p["number"]) == part[1] {
				found = append(found, p)
			}
		}
		switch {
		case part[0] == "commits":
			reply(w, http.StatusOK, found)
		case len(found) == 0:
			reply(w, http.StatusNotFound, map[string]any{"message": "Not Found"})
		default:
			reply(w, http.StatusOK, found[0])
		}
	case part[0] == "statuses":
		sent["sha"] = part[1]
		f.statuses = append(f.statuses, sent)
		reply(w, http.StatusCreated, sent)
	case part[0] == "check-runs":
		if r.Method == "PATCH" {
			sent["of"] = part[1]
		}
		f.runs = append(f.runs, sent)
		reply(w, http.StatusCreated, map[string]any{"id": 77, "output": map[string]any{"annotations_count": annotationsIn(sent)}})
	case part[0] == "issues" && part[1] == "comments":
		f.comment(w, r, part[2], sent)
	case part[0] == "issues" && r.Method == "GET":
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		f.paged(w, r, f.comments, max(page, 1))
	case part[0] == "issues":
		login := f.account
		if f.key != nil {
			login = "swell-previews[bot]"
		}
		made := map[string]any{"id": 1000 + len(f.comments), "body": sent["body"], "user": map[string]any{"login": login}}
		f.comments = append(f.comments, made)
		reply(w, http.StatusCreated, made)
	default:
		f.t.Errorf("%s %s: not answered", r.Method, path)
	}
}

// checkRuns answers with the one that was made, if it has the name.
func (f *fakeGitHub) checkRuns(w http.ResponseWriter, r *http.Request) {
	found := []map[string]any{}
	for _, run := range f.runs {
		switch {
		case run["of"] == nil && run["name"] == r.URL.Query().Get("check_name"):
			found = append(found, map[string]any{"id": 77, "external_id": run["external_id"], "output": map[string]any{"annotations_count": annotationsIn(run)}})
		case run["of"] != nil:
			output := found[len(found)-1]["output"].(map[string]any)
			output["annotations_count"] = output["annotations_count"].(int) + annotationsIn(run)
		}
	}
	reply(w, http.StatusOK, map[string]any{"total_count": len(found), "check_runs": found})
}

func annotationsIn(sent map[string]any) int {
	output, _ := sent["output"].(map[string]any)
	annotations, _ := output["annotations"].([]any)
	return len(annotations)
}

// paged answers with a page, and the link to the next one.
func (f *fakeGitHub) paged(w http.ResponseWriter, r *http.Request, all []map[string]any, page int) {
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	from := min((page-1)*size, len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		next := *r.URL
		query := next.Query()
		query.Set("page", strconv.Itoa(page+1))
		next.RawQuery = query.Encode()
		w.Header().Set("Link", fmt.Sprintf(`<%s%s>; rel="next"`, f.URL, next.String()))
	}
	reply(w, http.StatusOK, append([]map[string]any{}, all[from:to]...))
}

func (f *fakeGitHub) comment(w http.ResponseWriter, r *http.Request, id string, sent map[string]any) {
	at := slices.IndexFunc(f.comments, func(c map[string]any) bool { return fmt.Sprint(c["id"]) == id })
	switch {
	case at < 0:
		reply(w, http.StatusNotFound, map[string]any{"message": "Not Found"})
	case r.Method == "DELETE":
		f.comments = slices.Delete(f.comments, at, at+1)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == "GET":
		reply(w, http.StatusOK, f.comments[at])
	default:
		f.comments[at]["body"] = sent["body"]
		reply(w, http.StatusOK, f.comments[at])
	}
}

func (f *fakeGitHub) seen() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := strings.Join(f.requests, ", ")
	f.requests = nil
	return strings.ReplaceAll(seen, "/repos/shop/fleet", "")
}

func gitHubPullOf(number int, repository int, merged string) map[string]any {
	p := map[string]any{"number": number, "title": "A change", "state": "open", "html_url": "https://git.example.com/shop/fleet/pull/" + strconv.Itoa(number), "user": map[string]any{"login": "ann"},
		"head": map[string]any{"sha": strings.Repeat("a", 40), "repo": map[string]any{"id": repository}}, "base": map[string]any{"ref": "main", "repo": map[string]any{"id": 1}},
		"updated_at": "2026-11-24T10:00:00Z", "merge_commit_sha": strings.Repeat("c", 40)}
	if merged != "" {
		p["state"], p["merged_at"], p["merge_commit_sha"] = "closed", "2026-11-24T11:00:00Z", merged
	}
	return p
}

func onGitHub(t *testing.T, f *fakeGitHub, change func(*Config)) Forge {
	t.Helper()
	c := Config{Type: GitHub, URL: f.URL, Project: "shop/fleet", Token: func() (string, error) { return "secret", nil }}
	if change != nil {
		change(&c)
	}
	on, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

func TestGitHub(t *testing.T) {
	f := newFakeGitHub(t)
	for i := range 130 { // two pages
		f.pulls = append(f.pulls, gitHubPullOf(i+1, 1+i%2, ""))
	}
	merged := strings.Repeat("d", 40)
	f.pulls = append(f.pulls, gitHubPullOf(500, 0, merged))
	on := onGitHub(t, f, nil)
	open, err := on.Open(t.Context(), "main")
	if err != nil || len(open) != 131 {
		t.Fatalf("%d pull requests, %v", len(open), err)
	}
	if p := open[1]; !p.Fork || p.Number != 2 || p.Ref != "refs/pull/2/head" || p.Merge != "" || !p.Open || p.Base != "main" {
		t.Errorf("%+v", p)
	}
	if p := open[0]; p.Fork {
		t.Errorf("%+v: no fork", p)
	}
	if p, err := on.Merged(t.Context(), sha("d")); err != nil || p.Number != 500 || p.Open {
		t.Errorf("Merged = %+v, %v", p, err)
	}
	if p, err := on.Merged(t.Context(), sha("e")); err != nil || p.Number != 0 {
		t.Errorf("Merged = %+v, %v", p, err)
	}
	f.seen()
	for i := range 150 {
		f.comments = append(f.comments, map[string]any{"id": i + 1, "body": "hello", "user": map[string]any{"login": "ann"}})
	}
	id, err := on.Comment(t.Context(), 7, Comment{Subject: "preview of shop", Text: "one"})
	if err != nil || id != 1150 {
		t.Fatalf("Comment = %d, %v", id, err)
	}
	// Two pages are looked through, before and after.
	pages := "GET /issues/7/comments, GET /issues/7/comments"
	if seen, want := f.seen(), "GET /user, "+pages+", POST /issues/7/comments, "+pages; seen != want {
		t.Errorf("requests %s\nwant %s", seen, want)
	}
	if again, err := on.Comment(t.Context(), 7, Comment{Subject: "preview of shop", Text: "two", ID: id}); err != nil || again != id || f.seen() != "GET /issues/comments/1150, PATCH /issues/comments/1150" {
		t.Errorf("Comment = %d, %v", again, err)
	}
	// The same text is not written again by who does not know the ID.
	if again, err := on.Comment(t.Context(), 7, Comment{Subject: "preview of shop", Text: "two"}); err != nil || again != id || f.seen() != pages {
		t.Errorf("Comment = %d, %v", again, err)
	}
	if err := on.SetStatus(t.Context(), Status{Commit: sha("a"), Name: "swell/shop", State: Success, Text: "no changes"}); err != nil {
		t.Fatal(err)
	}
	if err := on.Report(t.Context(), Report{}); !errors.Is(err, ErrNoReports) {
		t.Error(err)
	}
}

// sha is the name of a commit.
func sha(digit string) config.Commit { return config.Commit(strings.Repeat(digit, 40)) }

func TestGitHubApp(t *testing.T) {
	f := newFakeGitHub(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	f.key = &key.PublicKey
	file := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	f.now = func() time.Time { return now }
	on := onGitHub(t, f, func(c *Config) {
		c.Token, c.App, c.Now = nil, &App{ID: "4711", Installation: 12, KeyFile: file}, f.now
	})
	report := Report{Commit: sha("a"), Name: "swell/shop lines", Title: "120 problems", Summary: "text"}
	for i := range 120 {
		report.Notes = append(report.Notes, Note{Path: "services/a.yaml", Line: i, Column: i % 2, Title: "SW1001", Text: "wrong"})
	}
	// The second request is refused: the next try goes on with the same check run.
	f.refuse = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != "PATCH" {
			return false
		}
		f.refuse = nil
		reply(w, http.StatusBadGateway, map[string]any{"message": "no"})
		return true
	}
	if err := on.Report(t.Context(), report); err == nil || len(f.runs) != 1 {
		t.Fatalf("%v, %d requests", err, len(f.runs))
	}
	for range 2 { // the second time there is nothing to do
		if err := on.Report(t.Context(), report); err != nil {
			t.Fatal(err)
		}
	}
	var sizes []int
	for _, run := range f.runs {
		sizes = append(sizes, len(run["output"].(map[string]any)["annotations"].([]any)))
	}
	if fmt.Sprint(sizes) != "[50 50 20]" || f.runs[2]["of"] != "77" {
		t.Errorf("annotations %v", sizes)
	}
	if _, err := on.Comment(t.Context(), 7, Comment{Subject: "x", Text: "y"}); err != nil {
		t.Fatal(err)
	}
	if len(f.comments) != 1 || f.minted != 1 {
		t.Errorf("%d comments, %d tokens", len(f.comments), f.minted)
	}
	status := func() error {
		return on.SetStatus(t.Context(), Status{Commit: report.Commit, Name: "x", State: Pending})
	}
	now = now.Add(56 * time.Minute)
	if err := status(); err != nil || f.minted != 2 {
		t.Errorf("a token that ends soon: %v, %d tokens", err, f.minted)
	}
	f.minted++ // GitHub takes that one no more
	if err := status(); !IsDenied(err) {
		t.Errorf("a revoked token: %v", err)
	}
	if err := status(); err != nil || f.minted != 4 {
		t.Errorf("after a revoked token: %v, %d tokens", err, f.minted)
	}
	// An App that was taken away is no commit that is not there.
	f.refuse = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/access_tokens") {
			return false
		}
		reply(w, http.StatusNotFound, map[string]any{"message": "Not Found"})
		return true
	}
	now = now.Add(56 * time.Minute)
	if err := status(); !IsUnauthorized(err) || IsFinal(err) || IsNotFound(err) || !strings.Contains(err.Error(), "installation 12 of the App 4711: 404 Not Found") {
		t.Errorf("an App that is gone: %v", err)
	}
}

// TestManyAtOnce: the previewer and announcements write at the same time through one client.
// They share one token of the App, one account and one limit. Run with -race.
func TestManyAtOnce(t *testing.T) {
	f := newFakeGitHub(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	f.key = &key.PublicKey
	file := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600); err != nil {
		t.Fatal(err)
	}
	on := onGitHub(t, f, func(c *Config) { c.Token, c.App = nil, &App{ID: "4711", Installation: 12, KeyFile: file} })
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := on.Comment(t.Context(), 7, Comment{Subject: fmt.Sprint("preview ", i), Text: "text"}); err != nil {
				t.Error(err)
			}
			if err := on.SetStatus(t.Context(), Status{Commit: sha("a"), Name: fmt.Sprint(i), State: Pending}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(f.statuses) != 8 || len(f.comments) != 8 || f.minted != 1 {
		t.Errorf("%d statuses, %d comments, %d tokens", len(f.statuses), len(f.comments), f.minted)
	}
	f.refuse = func(w http.ResponseWriter, _ *http.Request) bool {
		reply(w, http.StatusTooManyRequests, map[string]any{"message": "slow down"})
		return true
	}
	for range 8 {
		all.Go(func() {
			if _, err := on.Get(t.Context(), 7); !errors.As(err, new(*LimitError)) {
				t.Errorf("%v, want the limit", err)
			}
		})
	}
	all.Wait()
}

// Whoever the credential turns out to be, a pull request has one comment.
func TestGitHubAccounts(t *testing.T) {
	write := func(t *testing.T, on Forge, id int64, text string) int64 {
		t.Helper()
		id, err := on.Comment(t.Context(), 7, Comment{Subject: "preview of shop", ID: id, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	t.Run("a job with the token of an App", func(t *testing.T) {
		f := newFakeGitHub(t)
		f.account = "ours[bot]"
		f.refuse = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/user") {
				return false
			}
			reply(w, http.StatusForbidden, map[string]any{"message": "Resource not accessible by integration"})
			return true
		}
		for _, text := range []string{"one", "two", "three"} {
			write(t, onGitHub(t, f, func(c *Config) { c.JobLogin = "github-actions[bot]" }), 0, text)
		}
		if len(f.comments) != 1 || !strings.HasSuffix(fmt.Sprint(f.comments[0]["body"]), "\nthree") {
			t.Errorf("comments %v", f.comments)
		}
	})
	t.Run("an ID of another time", func(t *testing.T) {
		f := newFakeGitHub(t)
		const words = "what somebody wrote"
		f.comments = []map[string]any{{"id": 15, "body": words, "user": map[string]any{"login": "ann"}}, {"id": 16, "body": words, "user": map[string]any{"login": f.account}}}
		on := onGitHub(t, f, nil)
		for _, id := range []int64{15, 16, 17} {
			if got := write(t, on, id, fmt.Sprint("one ", id)); got != 1002 {
				t.Errorf("%d: comment %d", id, got)
			}
		}
		if len(f.comments) != 3 || f.comments[0]["body"] != words || f.comments[1]["body"] != words {
			t.Errorf("%v", f.comments)
		}
	})
	t.Run("another account's token", func(t *testing.T) {
		f := newFakeGitHub(t)
		token := "secret"
		on := onGitHub(t, f, func(c *Config) { c.Token = func() (string, error) { return token, nil } })
		id := write(t, on, 0, "one")
		f.account = "anew"
		token = "secret2"
		next := write(t, on, id, "two")
		if next == id || write(t, on, next, "three") != next || len(f.comments) != 2 {
			t.Errorf("comment %d after %d: %v", next, id, f.comments)
		}
	})
}

// A forge that takes no more is asked no more, until it said.
func TestLimits(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, test := range []struct {
		name   string
		status int
		header map[string]string
		text   string
		pause  time.Duration
	}{
		{"too many", 429, nil, "", time.Minute},
		{"too many, after", 429, map[string]string{"Retry-After": "17"}, "", 17 * time.Second},
		{"too many, after a date", 429, map[string]string{"Retry-After": now.Add(90 * time.Second).UTC().Format(http.TimeFormat)}, "", 90 * time.Second},
		{"primary", 403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(now.Unix()+600, 10)}, "API rate limit exceeded", 10 * time.Minute},
		{"secondary", 403, nil, "You have exceeded a secondary rate limit. Please wait", time.Minute},
		{"secondary, after", 403, map[string]string{"Retry-After": "30"}, "You have exceeded a secondary rate limit", 30 * time.Second},
		{"closed, after", 503, map[string]string{"Retry-After": "120"}, "", 2 * time.Minute},
		{"a year", 429, map[string]string{"Retry-After": "31536000"}, "", time.Hour},
		{"centuries", 429, map[string]string{"Retry-After": "9999999999"}, "", time.Hour},
		{"the past", 429, map[string]string{"Retry-After": "-5"}, "", time.Second},
		{"no right", 403, nil, "Resource not accessible by integration", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeGitHub(t)
			at := now
			on := onGitHub(t, f, func(c *Config) { c.Now = func() time.Time { return at } })
			f.refuse = func(w http.ResponseWriter, _ *http.Request) bool {
				for name, value := range test.header {
					w.Header().Set(name, value)
				}
				reply(w, test.status, map[string]any{"message": test.text})
				return true
			}
			_, err := on.Get(t.Context(), 7)
			var limit *LimitError
			if test.pause == 0 {
				if !IsDenied(err) || !strings.Contains(err.Error(), test.text) {
					t.Fatal(err)
				}
				return
			}
			if !errors.As(err, &limit) || limit.Until.Sub(now) != test.pause {
				t.Fatalf("%v, want a pause of %s", err, test.pause)
			}
			f.refuse = nil
			f.pulls = []map[string]any{gitHubPullOf(7, 1, "")}
			at = now.Add(test.pause - time.Second)
			f.seen()
			if _, err := on.Get(t.Context(), 7); test.pause > time.Second && !errors.As(err, &limit) || test.pause > time.Second && f.seen() != "" {
				t.Errorf("asked before: %v", err)
			}
			at = now.Add(test.pause)
			if _, err := on.Get(t.Context(), 7); err != nil {
				t.Error(err)
			}
		})
	}
}

// Writing keeps below GitHub's secondary limits by itself.
func TestWritesAreSpaced(t *testing.T) {
	f := newFakeGitHub(t)
	at := time.Unix(1_800_000_000, 0)
	on := onGitHub(t, f, func(c *Config) { c.Now = func() time.Time { return at } })
	write := func() bool {
		err := on.SetStatus(t.Context(), Status{Commit: sha("a"), Name: "x", State: Success})
		var limit *LimitError
		if err != nil && !errors.As(err, &limit) {
			t.Fatal(err)
		}
		return err == nil
	}
	minute, hour := 0, 0
	for second := range 3600 {
		at = at.Add(time.Second)
		for write() {
			hour++
			if second < 60 {
				minute++
			}
		}
	}
	if minute > 80 || hour > 500 || hour < 400 {
		t.Errorf("%d writes in the first minute, %d in the hour", minute, hour)
	}
}

// The credential goes to the forge alone.
func TestNoCredentialElsewhere(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s, Authorization %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(other.Close)
	f := newFakeGitHub(t)
	f.refuse = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	if _, err := onGitHub(t, f, nil).Get(t.Context(), 7); err == nil || !strings.Contains(err.Error(), "redirected") {
		t.Error(err)
	}
}
