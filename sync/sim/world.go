// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package sim plays the whole daemon against a small world that goes wrong: the real
// [sync.Daemon] with its planner, its ownership, approvals, drift and Leases, a real
// SQLite state, clusters of package simulator, and a Git of trees in memory. All of it
// runs in a bubble of testing/synctest, so time passes only when nobody does anything.
//
// A world is made from a seed. Every request of the daemon stops at a gate (gate.go). When
// all goroutines wait, the next event is chosen by the seed (schedule.go): a request is
// let through or answered with a fault (faults.go), time passes, somebody commits
// (git.go), with Masks and Windows (bounds.go) too, people and controllers change live
// objects (people.go), operators give orders (orders.go) and approve gates (gates.go),
// somebody fights for an object or swaps two clusters (hostile.go), a second daemon comes
// (rival.go), the process is killed, the state is lost or an older one is put back, or its
// disk is full (disk.go). After each step a judge (judge.go and those beside it) looks at
// what must always hold. It has its own knowledge: what the commits want, what operators
// said, what the clusters hold, each write that was served and which process sent it. It
// calls no function of the daemon and believes nothing that the daemon says but what it
// says to people, and what it has stored before it begins something.
//
// At the end all faults stop, and everything has to arrive (calm.go).
//
// The same seed gives the same history, byte by byte. What the product does by chance is
// made by the world instead: UIDs, and the jitter of pauses.
//
// Nothing here sleeps in real time, opens a socket, or writes outside of the folder that
// it is given; and nothing of it is part of the program.
package sim

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	gosync "sync"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/sync/simulator"
)

// world is all that there is in one run.
type world struct {
	seed  uint64
	dir   string
	begun time.Time
	rand  *rand.Rand // of the step at hand

	shape     shape
	git       *git
	clusters  map[string]*cluster
	disk      *disk
	process   *process // nil while none runs
	rival     *process // a second daemon, with a state of its own; nil while none runs
	rivals    int
	skew      time.Duration
	uids      int
	processes int

	judge   *judge
	history []string
	stats   *stats
	calm    bool   // no fault happens any more
	says    string // what the endpoint of gates says; empty is yes

	fighters []*fighter
	swapped  []string // the two clusters that stand at each other's address

	arrived chan struct{} // told when a request came to the gate, or a process ended
	lifted  [3]int        // process, its commits and the orders when nothing stood any more
	gate    gate
	logged  secretWatch
}

// shape is what a world's seed decides once.
type shape struct {
	clusters []string
	cells    map[string][]string
	soak     time.Duration
	timeout  time.Duration
	waves    []wave
	hold     bool
	ready    time.Duration // until a workload is ready
	watch    bool          // drift is watched for
	budget   budget
	settled  bool // everything has arrived before anything goes wrong
	keeps    bool // the last commit leaves alone what nothing is wrong with
	seldom   bool // drift is only watched for: nothing is due for hours
	// gated says that waves have gates, and approvalTime is how long an approval is good.
	gated        bool
	hostile      bool // see [hostileEvents]
	slow         bool // see [slowEvents]
	renames      bool // see [renameEvents]
	approvalTime time.Duration
}

// budget bounds what is in change at a time; zero is no bound.
type budget struct {
	units, unitsPerTarget int
	failedUnits           int // and one less is the bound
}

// wave is one of the Rollout of all units.
type wave struct {
	name          string
	label, value  string // of its targets; empty: all that are left
	soak          time.Duration
	maxFailures   int
	maxConcurrent int
	approval      bool          // its start waits for approval
	asks          string        // an endpoint is asked: at its start, at its end; empty: it is not
	askTime       time.Duration // in which it has to say yes; zero is for ever
	query         bool          // the endpoint's numbers are to hold through its soak
	tolerate      time.Duration // but for so long
	job           bool          // a Job is to succeed at its end, see [first]
	after         bool          // it starts on a target after another unit is through there
	window        bool          // it starts at certain times, see [opens]
}

// cluster is one of the clusters, with what is wrong with it at the moment.
type cluster struct {
	*simulator.Cluster
	name     string
	made     int                // how often it was made anew
	away     string             // how it does not answer; empty when it does
	sick     string             // what it answers to each write; empty when it is well
	rightsUp bool               // the daemon has lost its rights
	denies   bool               // it denies deletions
	broken   string             // the kind that it fails for, as in paths; empty: for none
	slow     bool               // it has a slow webhook, see [webhookTime]
	renames  string             // the kind that a webhook gives other names, as in paths; empty: none
	seen     *simulator.Cluster // when the judge looked last
	version  string             // of it then
	live     map[key]live
	first    *simulator.Cluster
	all      map[string]*simulator.Cluster // that ever stood under this name, by identity
	// unnoticed is when it took another one's place last while nobody asked it anything.
	unnoticed time.Duration
}

func newWorld(seed uint64, dir string, s *stats) *world {
	w := &world{seed: seed, dir: dir, begun: time.Now(), arrived: make(chan struct{}, 1), stats: s, clusters: map[string]*cluster{}}
	w.gate.asked = map[string]int{}
	w.rand = rand.New(rand.NewPCG(seed, 1))
	w.shape = drawShape(w.rand)
	drawGates(seed, &w.shape)
	drawHostile(seed, &w.shape)
	drawSorts(seed, &w.shape)
	drawSlow(seed, &w.shape)
	drawRenames(seed, &w.shape)
	for _, name := range w.shape.clusters {
		w.clusters[name] = &cluster{name: name}
		w.make(w.clusters[name])
	}
	w.git = newGit(w)
	w.judge = newJudge(w)
	w.judge.offer(w.git.head)
	w.disk = &disk{world: w, dir: filepath.Join(dir, "state")}
	return w
}

func drawShape(r *rand.Rand) shape {
	s := shape{
		clusters: []string{"one", "two"}, cells: map[string][]string{"one": {"a", "b"}, "two": {"c"}},
		soak: pick(r, 0, 30*time.Second, 2*time.Minute), timeout: pick(r, time.Minute, 3*time.Minute),
		hold: r.IntN(5) == 0, ready: pick(r, 0, 0, 3*time.Second, 20*time.Second), watch: r.IntN(3) > 0,
	}
	if r.IntN(3) == 0 {
		s.clusters, s.cells["three"] = append(s.clusters, "three"), []string{"e"}
	}
	if r.IntN(2) == 0 {
		s.cells["two"] = []string{"c", "d"}
	}
	s.waves = []wave{{name: "canary", label: "ring", value: "canary", soak: s.soak}}
	if r.IntN(2) == 0 {
		s.waves = append(s.waves, wave{name: "two", label: "site", value: "two", soak: pick(r, 0, s.soak), maxFailures: r.IntN(2)})
	}
	s.waves = append(s.waves, wave{name: "rest", maxFailures: r.IntN(2), maxConcurrent: r.IntN(3)})
	if r.IntN(2) == 0 {
		s.budget = budget{units: pick(r, 0, 1, 2), unitsPerTarget: pick(r, 0, 1), failedUnits: pick(r, 0, 1, 2)}
	}
	s.settled, s.keeps = r.IntN(2) == 0, r.IntN(2) == 0
	s.seldom = s.watch && r.IntN(2) == 0
	return s
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// make makes a cluster, or makes it anew.
func (w *world) make(c *cluster) {
	c.made++
	c.Cluster = simulator.NewWith(func() types.UID {
		w.uids++
		return types.UID(fmt.Sprintf("%08d-0000-4000-8000-%012d", c.made, w.uids))
	})
	c.Ready = simulator.Readiness{After: w.shape.ready}
	c.seen, c.live = nil, map[key]live{}
	if c.all == nil {
		c.first = c.Cluster
		c.all = map[string]*simulator.Cluster{}
	}
	c.all[c.identity()] = c.Cluster
}

// now is the daemon's clock.
func (w *world) now() time.Time { return time.Now().Add(w.skew) }

// tell adds a line to the history.
func (w *world) tell(format string, args ...any) {
	at := time.Since(w.begun).Truncate(time.Millisecond)
	w.history = append(w.history, fmt.Sprintf("%4d %10s  %s", len(w.history), at, fmt.Sprintf(format, args...)))
}

// settle waits until nobody does anything any more but to wait.
func (w *world) settle() {
	synctest.Wait()
	select {
	case <-w.arrived:
	default:
	}
}

// settleAll does the same, and lets the watches tell what they have to.
func (w *world) settleAll() {
	for w.settle(); w.next(); {
		w.settle()
	}
}

func (w *world) arrive() {
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

// elapse lets time pass until something comes to the gate, or it is over.
func (w *world) elapse(d time.Duration) {
	for before, end := time.Now(), time.Now().Add(d); ; {
		timer := time.NewTimer(time.Until(w.due(end)))
		select {
		case <-timer.C:
		case <-w.arrived:
		}
		timer.Stop()
		w.settleAll()
		if !time.Now().Before(end) || len(w.gate.groups()) > 0 || w.gate.isDue() {
			w.judge.elapsed += time.Since(before)
			return
		}
	}
}

// due is when something happens in a cluster, or the end.
func (w *world) due(end time.Time) time.Time {
	for _, name := range w.shape.clusters {
		if at, ok := w.clusters[name].Due(); ok && at.Before(end) && at.After(time.Now()) {
			end = at
		}
	}
	if slow := w.gate.slow(); len(slow) > 0 && slow[0].due.Before(end) {
		end = slow[0].due
	}
	return end
}

// sorted are the names of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ask is a request of somebody else than the daemon, which never fails to arrive.
func (w *world) ask(c *cluster, method, path, contentType, manager, body string) int {
	url := "http://simulator.invalid" + path
	if manager != "" {
		url += "?fieldManager=" + manager
	}
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		panic(err) // it is our own
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", manager)
	answer, err := c.RoundTrip(r)
	if err != nil {
		panic(err) // nobody stands in between
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// secretWatch takes the daemon's log and looks for what must not be in it.
type secretWatch struct {
	mu     gosync.Mutex
	found  string
	recent []string
}

// planted is in the value of each Secret, and so is its base64.
const planted = "planted-secret-value"

var plantedForms = []string{planted, "cGxhbnRlZC1zZWNyZXQtdmFsdW"}

func (s *secretWatch) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.check("the log", string(line))
	if s.recent = append(s.recent, string(line)); len(s.recent) > 400 {
		s.recent = slices.Clone(s.recent[200:])
	}
	return len(line), nil
}

func (s *secretWatch) check(where, text string) {
	for _, form := range plantedForms {
		if i := strings.Index(text, form); i >= 0 && s.found == "" {
			s.found = fmt.Sprintf("%s: %.200s", where, text[max(0, i-80):])
		}
	}
}

func (w *world) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&w.logged, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// folder is a fast place for the state: in memory where there is such a place.
func folder(fallback string) string {
	if dir, err := os.MkdirTemp("/dev/shm", "swell-sim-"); err == nil {
		return dir
	}
	return fallback
}
