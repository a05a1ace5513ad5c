// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
)

// audited is one request of swell that has ended, from an audit log.
type audited struct {
	Stage, Verb, UserAgent, RequestURI string
	User, ImpersonatedUser             struct{ Username string }
	ObjectRef                          struct{ Resource, Namespace, Name string }
	ResponseStatus                     struct{ Code int }
	ResponseObject                     json.RawMessage
}

// audit reads from the audit logs of the API servers what swell asked of them for the
// world since the last time. The log is written before a request is answered.
func (w *world) audit() (events []audited) {
	w.Helper()
	for _, name := range []string{"dev-1", "dev-2"} {
		events = append(events, w.auditOf(name)...)
	}
	return events
}

// auditOf does so for one cluster.
func (w *world) auditOf(cluster string) []audited {
	w.Helper()
	if _, alone := w.TB.(*testing.B); alone || w.simulated != nil {
		return w.auditLog(cluster)
	}
	return slices.DeleteFunc(w.auditLog(cluster), func(event audited) bool { return !event.names(w.tenant) })
}

// auditLog is what swell asked of a cluster since the last time, for whatever world,
// but for the renewals of this one's Lease.
func (w *world) auditLog(cluster string) (events []audited) {
	w.Helper()
	add := func(event audited) {
		if event.UserAgent == "swell" && !event.renews(w.tenant) {
			events = append(events, event)
		}
	}
	if w.simulated != nil {
		for _, event := range w.recorder.since(cluster, w.read[cluster]) {
			w.read[cluster]++
			add(event)
		}
		return events
	}
	file, err := os.Open(filepath.Join(w.clusters.Dir, cluster+"-audit.log"))
	w.must(err)
	defer file.Close()
	_, err = file.Seek(w.read[cluster], 0)
	w.must(err)
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return events // an unfinished line is for the next time
		}
		w.read[cluster] += int64(len(line))
		var event audited
		w.must(json.Unmarshal(line, &event))
		add(event)
	}
}

// requests counts what audit reads: verbs and resources with their number. Where
// a watch for health begins, the look at the list counts as a watch too.
func (w *world) requests() map[string]int {
	w.Helper()
	counts := map[string]int{}
	for _, event := range w.audit() {
		switch {
		case !event.over():
		case strings.Contains(event.RequestURI, "limit=1&") || strings.HasSuffix(event.RequestURI, "limit=1"):
			counts["watch "+event.ObjectRef.Resource]++
		default:
			counts[event.Verb+" "+event.ObjectRef.Resource]++
		}
	}
	return counts
}

// asked is requests without the watches. They begin in the background, so one
// that was begun before may be among what came after. More than one of a sort are
// an error all the same.
func (w *world) asked() map[string]int {
	w.Helper()
	counts := w.requests()
	for what, n := range counts {
		if !strings.HasPrefix(what, "watch ") {
			continue
		}
		if most := 2 * 3; n > most { // in two clusters, for drift, and for health with its list
			w.Errorf("%d requests %q", n, what)
		}
		delete(counts, what)
	}
	return counts
}

// names says that a request is about something of a tenant, or made as one of its
// accounts: other worlds share the cluster.
func (a *audited) names(tenant string) bool {
	for _, text := range []string{a.RequestURI, a.User.Username, a.ImpersonatedUser.Username} {
		for i := strings.Index(text, tenant); i >= 0; i = strings.Index(text, tenant) {
			text = text[i+len(tenant):]
			if text == "" || !strings.ContainsAny(text[:1], "abcdefghijklmnopqrstuvwxyz0123456789") {
				return true
			}
		}
	}
	return false
}

// renews says that a request is about the Lease of a monorepo, which is renewed
// whatever happens.
func (a *audited) renews(repository string) bool {
	return a.ObjectRef.Resource == "leases" && a.ObjectRef.Namespace == "kube-system" && a.ObjectRef.Name == "swell-"+repository
}

// over says that a request was answered. A watch counts when its answer begins,
// not when somebody ends it.
func (a *audited) over() bool {
	if a.Verb == "watch" {
		return a.Stage == "ResponseStarted"
	}
	return a.Stage == "ResponseComplete"
}

// manyConfigMaps is a unit of plain ConfigMaps on dev-2/c.
func (w *world) manyConfigMaps(n int) {
	w.write("services/many/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: many}\nspec: {placement: {match: {labels: {site: two}}}}\n")
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: many-%05d, namespace: %s-c}\ndata: {number: \"%d\"}\n---\n", i, w.tenant, i)
	}
	w.write("services/many/many.yaml", b.String())
}

// TestNothingChanged: passes over nothing changed send nothing at all, and a
// sweep sends one metadata LIST per kind.
func TestNothingChanged(t *testing.T) { simulated(t, testNothingChanged) }

func testNothingChanged(t *testing.T, w *world) {
	w.nothingChanged(t, 600)
}

// total counts the requests whose verb and resource begin with prefix.
func total(requests map[string]int, prefix string) int {
	n := 0
	for what, count := range requests {
		if strings.HasPrefix(what, prefix) {
			n += count
		}
	}
	return n
}

// nothingChanged releases n ConfigMaps, looks at what passes over nothing
// changed send, and at what a sweep sends.
func (w *world) nothingChanged(tb testing.TB, n int) {
	w.manyConfigMaps(n)
	w.commit()
	schedule, err := cron.ParseStandard("*/10 * * * *")
	w.must(err)
	w.drift = config.Drift{Schedule: schedule, Location: time.UTC}
	w.stop()
	w.start()
	w.release()
	w.until("the ConfigMaps", w.is("many", 1, rollout.Done))
	first := w.requests()
	if first["patch configmaps"] < n {
		tb.Errorf("first release: %d PATCH of ConfigMaps, want %d", first["patch configmaps"], n)
	}
	for range 5 {
		w.commit() // an empty commit is nothing changed
		w.pass()
	}
	if got := w.asked(); len(got) != 0 {
		tb.Errorf("five passes over nothing changed sent %v", got)
	}
	w.now = w.now.Truncate(10 * time.Minute).Add(10 * time.Minute)
	r := w.pass()
	swept := w.asked()
	if lists, looks := total(swept, "list "), swept["get namespaces"]; lists+looks != total(swept, "") || looks != 2 {
		tb.Errorf("a sweep over nothing changed sent %v, want nothing but lists and one look at who is there", swept)
	}
	if len(r.Swept) != 2 || len(r.Drifts) != 0 || len(r.Actions) != 0 {
		tb.Errorf("swept %v, drifts %v, actions %v", r.Swept, r.Drifts, r.Actions)
	}
}
