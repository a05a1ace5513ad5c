// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swell-sh/swell/sync/demo"
	"github.com/swell-sh/swell/sync/forge/giteatest"
	"github.com/swell-sh/swell/sync/simulator"
)

// refusing returns a fault of simulated clusters: writes with a text in them are refused, as
// by an admission webhook.
func refusing(text string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPatch {
			return nil, nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(text)) {
			return nil, nil
		}
		return &http.Response{
			StatusCode: http.StatusForbidden,
			Header: http.Header{
				"Content-Type": {"application/json"},
				"Audit-Id":     {"1"}, // as an API server marks its own answers
			},
			Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,` +
				`"message":"admission webhook \"images.example.com\" denied the request: no image cart:6.6.6"}`)),
		}, nil
	}
}

// newClusters are the example's clusters, where nobody may have cart:6.6.6. They return
// what a daemon's configuration says of them.
func newClusters(t *testing.T, dir string) {
	t.Helper()
	for _, name := range demo.Clusters {
		c := simulator.New()
		c.Fault = refusing("cart:6.6.6")
		serveCluster(t, c, filepath.Join(dir, name+".yaml"))
	}
}

// merge merges a pull request as soon as Gitea lets it, and returns the branch's new commit.
func (r *reviewed) merge(number int) string {
	r.Helper()
	r.eventually("a merge", func() bool {
		return r.gitea.Try(r.Context(), r.ann, "POST", fmt.Sprintf("repos/%s/pulls/%d/merge", r.project, number), map[string]string{"Do": "merge"}, nil) == nil
	})
	r.git("fetch", "-q", r.gitea.CloneURL(r.ann, r.project), "main")
	r.git("checkout", "-q", "-B", "main", "FETCH_HEAD")
	return r.git("rev-parse", "HEAD")
}

// says is a transcript of a day.
type says struct {
	*testing.T
	text *strings.Builder
}

func (s says) line(format string, args ...any) { fmt.Fprintf(s.text, format+"\n", args...) }

// statuses waits until the waves of a commit are all in one of these states, and writes them
// down.
func (r *reviewed) waves(s says, commit string, want func(map[string]giteatest.Status) bool) {
	r.Helper()
	var all map[string]giteatest.Status
	defer func() {
		if r.Failed() {
			r.Logf("last: %v", all)
		}
	}()
	r.eventually("the waves of "+commit, func() bool {
		all = r.gitea.Statuses(r.TB, r.project, commit)
		return want(all)
	})
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		s.line("  %s  %s  %s", name, all[name].Status, all[name].Description)
	}
}

func are(state string, names ...string) func(map[string]giteatest.Status) bool {
	return func(all map[string]giteatest.Status) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return all[name].Status != state })
	}
}

// A day of a change: pushed, previewed, merged, released wave by wave; and one that is rolled
// back. With SWELL_TRANSCRIPT, a file, it writes down what the forge shows.
func TestADayOfAChange(t *testing.T) {
	r := newReviewed(t, "  kubeconfigDir: clusters\n")
	newClusters(t, filepath.Join(filepath.Dir(r.config), "clusters"))
	if err := os.WriteFile(filepath.Join(r.dir, "fleet", "rollout.yaml"), []byte(strings.ReplaceAll(demo.Rollout, "timeout: 15s", "timeout: 10m")), 0o644); err != nil {
		t.Fatal(err)
	}
	first := r.push("main")
	s := says{t, &strings.Builder{}}
	r.run()
	r.waves(s, first, are("success", "swell/shop: the commit", "swell/shop: canary", "swell/shop: sas", "swell/shop: rest"))
	s.text.Reset()

	s.line("Ann pushes a branch and opens a pull request.")
	r.branch("good")
	r.edit("services/shop/cart/runtime.yaml", "cart:1.4.2", "cart:1.5.0")
	number, head := r.propose("good", "Cart 1.5.0")
	status, comments := r.preview(number, head)
	s.line("The preview: %s, %q. The comment:\n\n%s", status.Status, status.Description, strings.Join(comments, "\n"))
	s.line("Bob reads it and approves. Ann merges it. The statuses of the merge commit:")
	r.gitea.Do(t, r.gitea.User(t, "bob"), "POST", fmt.Sprintf("repos/%s/pulls/%d/reviews", r.project, number), map[string]string{"event": "APPROVED", "body": "The canary will tell."}, nil)
	merged := r.merge(number)
	soaks := func(all map[string]giteatest.Status) bool {
		return strings.HasPrefix(all["swell/shop: canary"].Description, "soaks until")
	}
	r.waves(s, merged, soaks)
	s.line("and when it is through:")
	r.waves(s, merged, are("success", "swell/shop: the commit", "swell/shop: canary", "swell/shop: sas", "swell/shop: rest"))
	if now := len(r.gitea.Comments(t, r.project, number)); now != 1 {
		t.Errorf("%d comments on a pull request whose release went well", now)
	}

	s.line("\nAnother one is refused by a cluster.")
	r.branch("bad")
	r.edit("services/shop/cart/runtime.yaml", "cart:1.5.0", "cart:6.6.6")
	number, head = r.propose("bad", "Cart 6.6.6")
	if status, _ := r.preview(number, head); status.Status != "success" {
		t.Errorf("%+v: nobody can know", status)
	}
	merged = r.merge(number)
	s.line("The statuses of its merge commit:")
	r.waves(s, merged, are("failure", "swell/shop: canary", "swell/shop: sas", "swell/shop: rest"))
	if text := r.gitea.Statuses(t, r.project, merged)["swell/shop: canary"].Description; !strings.HasPrefix(text, "rolled back: sas-1/rz00a: apply Deployment") {
		t.Errorf("the canary's status: %q", text)
	}
	var comment string
	r.eventually("a comment on the merged pull request", func() bool {
		for _, c := range r.gitea.Comments(t, r.project, number) {
			if strings.Contains(c.Body, "<!-- swell: release of shop: ") {
				comment = c.Body
			}
		}
		return strings.Contains(comment, "rolled back")
	})
	r.has(comment, "services/shop/cart: rolled back in wave canary: sas-1/rz00a: ", "no image cart:6.6.6", "swell retry services/shop/cart")
	s.line("The comment on the merged pull request:\n\n%s", comment)
	r.show("rollback", number, "")
	if file := os.Getenv("SWELL_TRANSCRIPT"); file != "" {
		if err := os.WriteFile(file, []byte(s.text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
