// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	gosync "sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/simulator"
	"github.com/swell-sh/swell/sync/source/gittest"
)

// machine is a cluster as it stands somewhere, whatever it is called.
type machine struct {
	*simulator.Cluster
	names []string // that Git may call it
	named string   // how the newest commit calls it; empty: it is not of the fleet
	cells []string
	away  bool
}

// fleets is a world whose clusters are renamed, leave, come back, are made anew, and have their
// kubeconfigs swapped, while units change. Whoever looks at each request knows what Git wants.
type fleets struct {
	*world
	rand     *rand.Rand
	machines []*machine
	swapped  bool
	apps     map[string]string // the tag of each
	events   []string

	mu      gosync.Mutex
	commits []intended        // what each wants
	taken   int               // which of them the daemon has taken; it may be about to take any after it
	pins    map[string]string // the UID of each cluster by its name, as the state has it
	allowed map[string]string // to what an operator let that be changed
	wrong   []string
}

// intended is what a commit wants.
type intended struct {
	id    config.Commit
	apps  map[string]string // the tag of each
	names []string          // of its Clusters
}

// TestFleetsAtRandom: whatever happens to the names of clusters, nothing is written to one that is
// not who it was, or not of the fleet; nothing that Git wants is deleted; and in the end
// all clusters have what Git wants, under the names that it gives them. SWELL_FLEETS is how many
// more histories; SWELL_FLEET is the one to play.
func TestFleetsAtRandom(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("SWELL_FLEETS"))
	seeds := []uint64{12, 14, 19, 22, 33, 50, 239} // each found something
	for i := range count {
		seeds = append(seeds, 1000+uint64(i))
	}
	if chosen, err := strconv.ParseUint(os.Getenv("SWELL_FLEET"), 10, 64); err == nil {
		seeds = []uint64{chosen}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newFleets(t, seed).play() })
		})
	}
}

func newFleets(t *testing.T, seed uint64) *fleets {
	f := &fleets{world: emptyWorld(t),
		rand: rand.New(rand.NewPCG(seed, 1)), apps: map[string]string{"app": "1"}, allowed: map[string]string{}}
	f.tenant, f.fresh, f.connected = "fleets", true, f.transport
	f.machines = []*machine{
		{Cluster: simulator.New(), names: []string{"dev-1", "east"}, named: "dev-1", cells: []string{"a", "b"}},
		{Cluster: simulator.New(), names: []string{"dev-2", "west"}, named: "dev-2", cells: []string{"c"}},
	}
	f.simulated = map[string]*simulator.Cluster{}
	for _, m := range f.machines {
		for _, name := range m.names {
			f.simulated[name], f.access[name] = m.Cluster, config.ClusterAccess{}
		}
	}
	f.begin()
	f.start()
	f.push()
	return f
}

// push commits the fleet and the units as they are by now.
func (f *fleets) push() {
	var fleet strings.Builder
	var names []string
	for _, m := range f.machines {
		if m.named == "" {
			continue
		}
		names = append(names, m.named)
		fmt.Fprintf(&fleet, "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: %s}\nspec:\n  cells:\n", m.named)
		for _, cell := range m.cells {
			fmt.Fprintf(&fleet, "  - {name: %s, labels: {ring: %s}}\n", cell, map[bool]string{true: "canary", false: "main"}[cell == "a"])
		}
		fleet.WriteString("---\n")
	}
	f.write("fleet/fleet.yaml", fleet.String()+fleetYAML[strings.Index(fleetYAML, "apiVersion: swell.sh/v1\nkind: Rollout"):])
	f.must(os.RemoveAll(filepath.Join(f.repo(), "services/app")))
	f.must(os.RemoveAll(filepath.Join(f.repo(), "services/more")))
	for name, tag := range f.apps {
		f.app(name, tag, name+"-one")
	}
	hash, err := gittest.Commit(f.repo(), "change")
	f.must(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commits = append(f.commits, intended{config.Commit(hash), maps.Clone(f.apps), names})
}

// machineAt is what stands at the address of a name.
func (f *fleets) machineAt(name string) *machine {
	for i, m := range f.machines {
		if slices.Contains(m.names, name) {
			if f.swapped {
				return f.machines[1-i]
			}
			return m
		}
	}
	return nil
}

// transport leads to whatever stands at the address of a name by now.
func (f *fleets) transport(name string) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		f.mu.Lock()
		m := f.machineAt(name)
		cluster, away := m.Cluster, m.away
		f.judge(name, m, r)
		f.mu.Unlock()
		if away {
			return nil, io.ErrUnexpectedEOF
		}
		return cluster.RoundTrip(r)
	})
}

// judge looks at a request.
func (f *fleets) judge(name string, m *machine, r *http.Request) {
	verb, parts := verbOf(r), pathParts(r)
	asks := strings.Contains(r.URL.Path, "/apis/authorization.k8s.io/") || r.URL.Query().Has("dryRun")
	if r.Method == http.MethodGet || asks || strings.Contains(r.URL.Path, "/leases") {
		return
	}
	object := func(format string, args ...any) {
		when := time.Now().Format("04:05.000")
		f.wrong = append(f.wrong, fmt.Sprintf("%s %s %s by the name %s: ", when, verb, r.URL.Path, name)+fmt.Sprintf(format, args...))
	}
	if !slices.Contains(m.names, name) {
		object("another cluster stands there")
	}
	now := f.commits[f.taken:]
	if !slices.ContainsFunc(now, func(c intended) bool { return slices.Contains(c.names, name) }) {
		object("it is not of the fleet")
	}
	if known, err := f.store.Clusters(); err != nil || known[name].UID != f.uidOf(m) {
		object("it is not the cluster that the state knows: %v", err)
	}
	if r.Method != http.MethodDelete {
		return
	}
	if parts[0] == "namespaces" && len(parts) == 2 {
		object("Git wants the namespace")
	}
	for app := range f.commits[f.taken].apps {
		last := parts[len(parts)-1]
		isUnwanted := func(c intended) bool { return c.apps[app] == "" }
		if (last == app || last == app+"-one") && !slices.ContainsFunc(now, isUnwanted) {
			object("Git wants it")
		}
	}
}

// passes makes some, a second apart, and notes what commit the daemon is at.
func (f *fleets) passes(n int) {
	for range n {
		f.pass()
		f.look()
		time.Sleep(time.Second)
		f.now = f.now.Add(10 * time.Second)
	}
}

// look notes what the daemon has taken, and looks at whom it takes clusters for.
func (f *fleets) look() {
	newest, err := f.store.Brought()
	f.must(err)
	known, err := f.store.Clusters()
	f.must(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken = max(f.taken, slices.IndexFunc(f.commits, func(c intended) bool { return c.id == newest.Commit }))
	before := f.pins
	f.pins = map[string]string{}
	for name, c := range known {
		if f.pins[name] = c.UID; before[name] != "" && before[name] != c.UID && f.allowed[name] != c.UID {
			f.wrong = append(f.wrong, fmt.Sprintf("%s had the UID %s, and has %s, and nobody accepted that", name, before[name], c.UID))
		}
	}
}

// event is one thing that happens; empty when it cannot.
func (f *fleets) event() string {
	m := f.machines[f.rand.IntN(len(f.machines))]
	other := m.names[0]
	if m.named == other {
		other = m.names[1]
	}
	n := f.rand.IntN(12)
	if n < 6 && f.swapped { // nothing tells a new name, or a new cluster, from a wrong kubeconfig
		return ""
	}
	switch n {
	case 0, 1:
		if m.named == "" {
			return ""
		}
		text := m.named + " is called " + other
		m.named = other
		if f.rand.IntN(2) == 0 {
			f.apps["app"] = fmt.Sprint(len(f.commits))
			text += ", and app:" + f.apps["app"]
		}
		f.push()
		return text
	case 2:
		if m.named == "" || slices.ContainsFunc(f.machines, func(m *machine) bool { return m.named == "" }) {
			return ""
		}
		text := m.named + " leaves"
		m.named = ""
		f.push()
		return text
	case 3, 4:
		if m.named != "" {
			return ""
		}
		m.named = m.names[f.rand.IntN(2)]
		f.push()
		return m.named + " comes back"
	case 5:
		f.mu.Lock()
		defer f.mu.Unlock()
		m.Cluster = simulator.New()
		return m.named + " is made anew"
	case 6:
		if slices.ContainsFunc(f.machines, func(m *machine) bool { return m.named == "" || f.pins[m.named] != f.uidOf(m) }) {
			return ""
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.swapped = !f.swapped
		return fmt.Sprintf("kubeconfigs are swapped: %t", f.swapped)
	case 7:
		f.mu.Lock()
		defer f.mu.Unlock()
		m.away = !m.away
		return fmt.Sprintf("%s is away: %t", m.named, m.away)
	case 8:
		if f.apps["more"] != "" {
			delete(f.apps, "more")
		} else {
			f.apps["more"] = fmt.Sprint(len(f.commits))
		}
		f.push()
		return "more:" + f.apps["more"]
	case 9:
		f.stop()
		f.start()
		return "restart"
	case 10:
		return f.answer()
	}
	f.apps["app"] = fmt.Sprint(len(f.commits))
	f.push()
	return "app:" + f.apps["app"]
}

// answer does what an operator does who is asked.
func (f *fleets) answer() (text string) {
	for _, p := range f.plans() {
		f.approve(p)
		text += "approves " + p.Digest.Short() + " "
	}
	for _, m := range f.machines {
		if m.named == "" || f.swapped || m.away {
			continue
		}
		if !strings.Contains(f.condition("cluster "+m.named), "swell cluster accept "+m.named) {
			continue
		}
		f.allowed[m.named] = f.uidOf(m)
		scope := order.Scope{Target: config.TargetName(m.named)}
		f.give(order.Order{Verb: order.Accept, Scope: scope, To: f.uidOf(m), Reason: "it is ours"})
		text += "accepts " + m.named + " "
	}
	return text
}

func (f *fleets) uidOf(m *machine) string {
	_, after, _ := strings.Cut(f.read(m, "/api/v1/namespaces/kube-system"), `"uid":"`)
	uid, _, _ := strings.Cut(after, `"`)
	return uid
}

func (f *fleets) play() {
	f.passes(2)
	for range 25 {
		if text := f.event(); text != "" {
			f.events = append(f.events, text)
		}
		f.passes(f.rand.IntN(4))
	}
	f.calm()
	f.stop()
}

// calm ends all faults. An operator answers what the daemon asks.
func (f *fleets) calm() {
	f.mu.Lock()
	f.swapped = false
	for _, m := range f.machines {
		m.away = false
		if m.named == "" {
			m.named = m.names[0]
		}
	}
	f.mu.Unlock()
	f.push()
	f.events = append(f.events, "calm")
	arrived := ""
	for range 200 {
		f.passes(5)
		f.now = f.now.Add(2 * time.Minute)
		if text := f.answer(); text != "" {
			f.events = append(f.events, text)
		}
		if arrived = f.missing(); arrived == "" {
			break
		}
	}
	if arrived != "" {
		f.wrong = append(f.wrong, "not in the end: "+arrived)
	}
	known, err := f.store.Clusters()
	f.must(err)
	for _, m := range f.machines {
		if uid := known[m.named].UID; uid != f.uidOf(m) {
			f.wrong = append(f.wrong, fmt.Sprintf("%s has the UID %s, and the state knows %q", m.named, f.uidOf(m), uid))
		}
	}
	for name := range f.access {
		isNamed := slices.ContainsFunc(f.machines, func(m *machine) bool { return m.named == name })
		if n := f.remembered(name); n > 0 != isNamed {
			f.wrong = append(f.wrong, fmt.Sprintf("the inventory has %d objects in %s, of the fleet: %t", n, name, isNamed))
		}
	}
	if len(known) != len(f.machines) {
		f.wrong = append(f.wrong, fmt.Sprintf("the state knows %v", known))
	}
	if len(f.wrong) > 0 {
		f.Errorf("%s\n\nhistory:\n%s\n\n%s\n%s", strings.Join(f.wrong, "\n"), strings.Join(f.events, "\n"), f.troubles(), f.describe())
	}
}

// missing names something that Git wants otherwise, or that waits; empty when there is none.
func (f *fleets) missing() string {
	if plans := f.plans(); len(plans) > 0 {
		return fmt.Sprintf("%d plans wait", len(plans))
	}
	if !f.settledAll() {
		return "a unit is not done"
	}
	for _, m := range f.machines {
		for _, cell := range m.cells {
			for _, app := range []string{"app", "more"} {
				got := f.dataOf(m, cell, app+"-one")
				if want := f.apps[app]; want != "" && got != "registry.example.com/app:"+want || want == "" && got != "" {
					return fmt.Sprintf("%s-one in %s/%s is %q, want %q", app, m.named, cell, got, want)
				}
			}
		}
	}
	return ""
}

// read is the JSON at a path of a machine, whatever the daemon can reach.
func (f *fleets) read(m *machine, path string) string {
	r, err := http.NewRequest(http.MethodGet, "http://simulator.invalid"+path, http.NoBody)
	f.must(err)
	r.Header.Set("Accept", "application/json")
	answer, err := m.RoundTrip(r)
	f.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	f.must(err)
	return string(text)
}

// dataOf is the image that a ConfigMap names; empty when it is not there.
func (f *fleets) dataOf(m *machine, cell, name string) string {
	_, after, _ := strings.Cut(f.read(m, "/api/v1/namespaces/fleets-"+cell+"/configmaps/"+name), `"data":{"image":"`)
	image, _, _ := strings.Cut(after, `"`)
	return image
}
