// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/testdata/large"
)

// toldHook is a webhook of a Gitea, as it came.
type toldHook struct {
	at     time.Time
	event  string
	action string
	body   string // of a comment
}

// hooks has a Gitea tell a server of the benchmark's own what it tells the daemon, so that
// both ends of a preview are seen by one clock.
func (r *reviewed) hooks() <-chan toldHook {
	r.Helper()
	told := make(chan toldHook, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		var body struct {
			Action  string
			Comment struct{ Body string }
		}
		at := time.Now()
		if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
			r.Error(err)
		}
		told <- toldHook{at, q.Header.Get("X-Gitea-Event-Type"), body.Action, body.Comment.Body}
	}))
	r.Cleanup(server.Close)
	r.gitea.Do(r.TB, r.ann, "POST", "repos/"+r.project+"/hooks", map[string]any{"type": "gitea", "active": true, "events": []string{"pull_request_sync", "pull_request_comment", "issue_comment"},
		"config": map[string]string{"url": server.URL, "content_type": "json", "secret": "x"}}, nil)
	return told
}

// next waits for an event.
func (r *reviewed) next(told <-chan toldHook, is func(toldHook) bool) toldHook {
	r.Helper()
	late := time.After(10 * time.Minute)
	for {
		select {
		case h := <-told:
			if is(h) {
				return h
			}
		case <-late:
			r.Fatal("nothing was told")
		}
	}
}

// numberOf is a number of the environment, or another one where it is not set.
func numberOf(b *testing.B, variable string, otherwise int) int {
	b.Helper()
	if text := os.Getenv(variable); text != "" {
		if _, err := fmt.Sscan(text, &otherwise); err != nil {
			b.Fatalf("%s: %v", variable, err)
		}
	}
	return otherwise
}

// specsOf is how many specs a benchmark of previews has: SWELL_SPECS, or 10,000.
func specsOf(b *testing.B) int { return numberOf(b, "SWELL_SPECS", 10_000) }

// BenchmarkWebhookToComment is the time from a push to a pull request to the comment that
// says what it changes, both as Gitea tells of them: one spec of many, and a kind. The fleet is
// masked: a daemon that tries a hundred thousand units in clusters that are not there is another
// benchmark.
// SWELL_SPECS is how many specs there are: 10,000 where it is not set.
func BenchmarkWebhookToComment(b *testing.B) {
	specs := specsOf(b)
	r := newReviewedOf(b, "  kubeconfigDir: clusters\n", func(r *reviewed) {
		if err := (large.Monorepo{Example: "../../testdata/monorepo", Specs: specs}).Repository(filepath.Join(r.dir, "bare")); err != nil {
			b.Fatal(err)
		}
		r.dir = filepath.Join(r.dir, "work")
		gitIn(b, filepath.Dir(r.dir), "clone", "-q", "bare", "work")
		masked := "apiVersion: swell.sh/v1\nkind: Mask\nmetadata: {name: all}\nspec: {reason: there are no clusters, where: {units: [services]}}\n"
		if err := os.WriteFile(filepath.Join(r.dir, "fleet", "mask.yaml"), []byte(masked), 0o644); err != nil {
			b.Fatal(err)
		}
		r.commit("A mask")
	})
	r.patience = 15 * time.Minute // a hundred thousand units are rendered twice
	told := r.hooks()
	r.run()
	edits := 0
	for _, change := range []struct {
		name string
		edit func(i int)
	}{
		{"spec", func(i int) {
			if err := os.WriteFile(filepath.Join(r.dir, large.SpecFile(7)), []byte(large.Spec(7, fmt.Sprintf("2.0.%d", i))), 0o644); err != nil {
				b.Fatal(err)
			}
		}},
		{"kind", func(i int) {
			r.git("checkout", "-q", "main", "--", "kinds")
			r.edit("kinds/runtime/kind.yaml", "        replicas: \"${has", fmt.Sprintf("        revisionHistoryLimit: %d\n        replicas: \"${has", i+1))
		}},
	} {
		r.branch(change.name)
		change.edit(0)
		number, head := r.propose(change.name, "A change of a "+change.name)
		r.preview(number, head)
		for len(told) > 0 {
			<-told
		}
		b.Run(fmt.Sprintf("%s/specs=%d", change.name, specs), func(b *testing.B) {
			var took []time.Duration
			for range b.N {
				edits++
				change.edit(edits)
				r.push(change.name)
				from := r.next(told, func(h toldHook) bool { return h.event == "pull_request_sync" })
				to := r.next(told, func(h toldHook) bool { return strings.Contains(h.event, "comment") })
				took = append(took, to.at.Sub(from.at))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds(), "s/median")
			b.ReportMetric(took[len(took)-1].Seconds(), "s/most")
			b.ReportMetric(0, "ns/op")
		})
	}
}
