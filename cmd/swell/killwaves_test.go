// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/sync/demo"
	"github.com/swell-sh/swell/sync/store"
)

// gatekeeper is what the gates of waves ask. It says no to what is not open.
type gatekeeper struct {
	*httptest.Server
	mu          sync.Mutex
	open, asked map[string]bool // by path
}

func newGatekeeper() *gatekeeper {
	g := &gatekeeper{open: map[string]bool{}, asked: map[string]bool{}}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.asked[r.URL.Path] = true
		if !g.open[r.URL.Path] {
			http.Error(w, "not yet", http.StatusForbidden)
		}
	}))
	return g
}

func (g *gatekeeper) let(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[path] = true
}

func (g *gatekeeper) was(path string) func() bool {
	return func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.asked[path]
	}
}

// gatedRollout has the three waves of the example, each with a gate at its start, a soak
// and a gate at its end.
func gatedRollout(version string) string {
	text := "apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec:\n  waves:\n"
	for _, wave := range []string{"name: canary, match: {labels: {ring: canary}}", "name: sas, match: {labels: {region: sas}}", "name: rest"} {
		text += fmt.Sprintf("  - {%s, soak: 1s, timeout: 10m, gates: [{http: {endpoint: keeper, path: \"/%[2]s/start/${wave}\", at: start, every: 1s}}, {http: {endpoint: keeper, path: \"/%[2]s/end/${wave}\", every: 1s}}]}\n", wave, version)
	}
	return text
}

// migration is a hook in the kind of cart that does not end by itself.
const migration = `  - id: migration
    when: here && name == 'cart'
    template:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: "migrate-${hash(self.spec.image)}", namespace: "${ns}", annotations: {swell.sh/hook: before, example.com/version: "${self.spec.image.split(':')[1]}"}}
      spec:
        template:
          spec:
            restartPolicy: Never
            containers: [{name: main, image: "registry.example.com/migrate:broken"}]
`

var (
	liveJobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	livePods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// killInEachWave releases new versions of cart, and kills the daemon in each wave four
// times: while the gate at its start says no, while a bundle is written in part, while the
// wave soaks, and while the gate at its end says no. The release goes on each time: no wave
// is skipped, and no object is written twice.
func (s *stage) killInEachWave() {
	keeper := newGatekeeper()
	defer keeper.Close()
	text, err := os.ReadFile(s.config)
	if err := errors.Join(err, os.WriteFile(s.config, fmt.Appendf(text, "  endpoints:\n  - {name: keeper, url: %q}\n", keeper.URL), 0o644),
		s.repo.Replace("kinds/runtime/kind.yaml", "  - id: service\n", migration+"  - id: service\n")); err != nil {
		s.Fatal(err)
	}
	kills, err := strconv.Atoi(cmp.Or(os.Getenv("SWELL_KILLS"), "12"))
	if err != nil {
		s.Fatal(err)
	}
	before := "1.4.3"
	for round := range max(1, kills/12) {
		version := fmt.Sprintf("2.%d.0", round)
		s.killInEachWaveOf(keeper, before, version)
		before = version
	}
}

func (s *stage) killInEachWaveOf(keeper *gatekeeper, running, version string) {
	if err := errors.Join(s.repo.Write("fleet/rollout.yaml", gatedRollout(version)), s.repo.Replace(demo.CartFile, "cart:"+running, "cart:"+version), s.repo.Push(s.Context(), version)); err != nil {
		s.Fatal(err)
	}
	s.patched() // from here on
	before := s.history()
	runs := []string{running, running, running, running}
	jobs := map[string]types.UID{}
	for _, wave := range []struct {
		name    string
		targets []int // of demo.CartTargets
	}{{"canary", []int{0}}, {"sas", []int{1}}, {"rest", []int{2, 3}}} {
		at := "wave " + wave.name + " of " + version + ": "
		start, end := "/"+version+"/start/"+wave.name, "/"+version+"/end/"+wave.name
		s.killedWhen(at+"the gate at its start", keeper.was(start))
		s.cartRuns(at+"before its start", runs)

		keeper.let(start)
		s.killedWhen(at+"the hook", func() bool {
			return !slices.ContainsFunc(wave.targets, func(i int) bool { return s.migrations(i)[version] == "" })
		})
		s.cartRuns(at+"written in part", runs)
		for _, i := range wave.targets {
			jobs[demo.CartTargets[i].Namespace] = s.migrations(i)[version]
			s.complete(i, jobs[demo.CartTargets[i].Namespace])
			runs[i] = version
		}

		s.killedWhen(at+"its soak", func() bool { return s.happened(before, "healthy", wave.name) == len(wave.targets) })
		s.cartRuns(at+"while it soaks", runs)
		if s.happened(before, "passed", wave.name) > 0 {
			s.Errorf("%sit was passed without its soak", at)
		}

		s.killedWhen(at+"the gate at its end", keeper.was(end))
		s.cartRuns(at+"before the gate at its end", runs)
		if s.happened(before, "passed", wave.name) > 0 {
			s.Errorf("%sit was passed without its gate", at)
		}
		keeper.let(end)
	}
	s.killedWhen("the end of "+version, func() bool { return s.happened(before, "done", "") == 1 })
	s.cartRuns("at the end", runs)

	var passed []string
	for _, e := range s.history()[len(before):] {
		if e.Kind == "passed" {
			passed = append(passed, e.Wave)
		}
	}
	if !slices.Equal(passed, []string{"canary", "sas", "rest"}) {
		s.Errorf("%s passed the waves %q", version, passed)
	}
	patched := s.patched()
	for i, target := range demo.CartTargets {
		if n := patched["deployments/"+target.Namespace+"/cart"]; n != 1 {
			s.Errorf("%s: the Deployment was written %d times: %v", target.Namespace, n, patched)
		}
		if uid := s.migrations(i)[version]; uid != jobs[target.Namespace] {
			s.Errorf("%s: the hook ran again: its Job has the UID %s, had %s", target.Namespace, uid, jobs[target.Namespace])
		}
	}
}

// killedWhen runs the daemon until ok, and kills it at once.
func (s *stage) killedWhen(what string, ok func() bool) {
	s.Helper()
	stop := s.daemon()
	defer stop()
	for deadline := time.Now().Add(5 * time.Minute); !ok(); s.pause(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			out, _ := verb(s.Context(), "", "status", "-o", "wide", "-c", s.config)
			s.Fatalf("%s: it did not come to that\n%s", what, out)
		}
	}
}

// cartRuns holds the versions that the four cells run.
func (s *stage) cartRuns(when string, want []string) {
	s.Helper()
	var got []string
	for _, target := range demo.CartTargets {
		d, err := s.clusters[target.Cluster].Deployment(s.Context(), target.Namespace, "cart")
		if err != nil {
			s.Fatal(err)
		}
		got = append(got, strings.TrimPrefix(d.Image, demo.CartImage))
	}
	if !slices.Equal(got, want) {
		s.Errorf("%s the cells run %q, want %q", when, got, want)
	}
}

// migrations are the UIDs of the hooks of cart in a cell, by the version.
func (s *stage) migrations(i int) map[string]types.UID {
	s.Helper()
	target := demo.CartTargets[i]
	list, err := s.clusters[target.Cluster].Client.Resource(liveJobs).Namespace(target.Namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	uids := map[string]types.UID{}
	for _, job := range list.Items {
		if version := job.GetAnnotations()["example.com/version"]; version != "" {
			uids[version] = job.GetUID()
		}
	}
	return uids
}

// complete lets the pods of a hook in a cell come to a good end.
func (s *stage) complete(i int, job types.UID) {
	s.Helper()
	target := demo.CartTargets[i]
	pods := s.clusters[target.Cluster].Client.Resource(livePods).Namespace(target.Namespace)
	s.eventually("the pods of the hook", func() bool {
		list, err := pods.List(s.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/controller-uid=" + string(job)})
		if err != nil {
			s.Fatal(err)
		}
		for _, pod := range list.Items {
			patch := []byte(`{"spec":{"containers":[{"name":"main","image":"registry.example.com/migrate:good"}]}}`)
			if _, err := pods.Patch(s.Context(), pod.GetName(), types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
				s.Fatal(err)
			}
		}
		return len(list.Items) > 0
	})
}

// history is that of cart, the oldest event first.
func (s *stage) history() []store.Event {
	s.Helper()
	state, err := store.OpenReadOnly(filepath.Join(filepath.Dir(s.config), "state"))
	if err != nil {
		s.Fatal(err)
	}
	defer state.Close()
	events, err := state.History("services/shop/cart", 10_000)
	if err != nil {
		s.Fatal(err)
	}
	slices.Reverse(events)
	return events
}

// happened counts the events of a kind in a wave since a history.
func (s *stage) happened(before []store.Event, kind, wave string) (n int) {
	s.Helper()
	for _, e := range s.history()[len(before):] {
		if e.Kind == kind && e.Wave == wave {
			n++
		}
	}
	return n
}

// patched counts, from the audit logs, the server-side applies of each object that went
// through since the last call.
func (s *stage) patched() map[string]int {
	s.Helper()
	counts := map[string]int{}
	for name := range s.clusters {
		file, err := os.Open(filepath.Join(s.logs, name+"-audit.log"))
		if err != nil {
			s.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Seek(s.read[name], 0); err != nil {
			s.Fatal(err)
		}
		lines := bufio.NewReader(file)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break
			}
			s.read[name] += int64(len(line))
			var e struct {
				Verb, UserAgent, RequestURI string
				ObjectRef                   struct{ Resource, Namespace, Name string }
				ResponseStatus              struct{ Code int }
			}
			if err := json.Unmarshal(line, &e); err != nil {
				s.Fatal(err)
			}
			if e.Verb == "patch" && e.UserAgent == "swell" && e.ResponseStatus.Code < 300 && !strings.Contains(e.RequestURI, "dryRun") {
				counts[e.ObjectRef.Resource+"/"+e.ObjectRef.Namespace+"/"+e.ObjectRef.Name]++
			}
		}
	}
	return counts
}
