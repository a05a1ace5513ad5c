// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// judge knows what the commits want, what the clusters hold and which writes were
// served, and objects to what must not be. See design rules in each of its files.
type judge struct {
	world     *world
	objection *objection
	isOlder   bool            // a copy of the state was put back
	orphaned  map[string]bool // "CLUSTER OBJECT": an older state does not know it for its own
	elapsed   time.Duration   // all that the daemon's clock went forward
	step      time.Duration   // by which it was set forward, and which no pass has noticed yet
	stepAt    time.Time       // when, by the daemon's clock

	memory     // of the state that is talked to
	holders    map[int]map[string]string
	allowed    map[deletion]bool           // approved deletions
	places     map[place]*held             // what each place holds
	causes     map[string]string           // why a unit's release may fail, by its path
	inForce    map[int]*commit             // the commit that a process said it works with
	known      map[int]*commit             // the last one that a process fetched
	deleted    map[string]int              // unapproved deletions by commit, unit and target
	made       map[place]int               // objects that were new, ever
	failed     map[string]string           // what was rolled back, since somebody said to try again, and of which unit
	turnedBack map[string]*unit            // what was rolled back last
	first      map[int]*commit             // that a process fetched, as long as it has seen no other
	blind      map[int]time.Duration       // when a process fetched first that had gone on without
	lineage    map[int]int                 // of the state that a process works with
	generation int                         // of the state that is talked to, see lineage
	lineages   int                         // how many there were
	renewed    map[string]time.Time        // the Lease of each cluster, by its identity
	holder     string                      // of the Lease that a call is about, before it is served
	carried    string                      // by that Lease: orders
	handedOver map[string]time.Duration    // when the Lease of each cluster last had a new holder
	left       map[int]map[string][]*given // the orders that the Lease of each cluster carried when a second daemon read it

	inventory   []store.Entry
	inventoryOf [2]int // process and its commits

	observed  []observed // since the last step
	units     map[string]view
	writes    int // served, Leases not among them
	lastWrite string

	rows   map[string]*row // what the state has of each unit
	rowsOf [2]int          // process and its commits
	rowsIn int             // the generation of that state
	rowsAt time.Duration   // when that was read, since the world began

	fought       map[fought][]time.Duration   // when a fighter changed an object
	answers      []finding                    // of the endpoint of gates
	rolloutSince map[rolloutKey]time.Duration // when each release was first stored, since the world began

	wentBack map[string]time.Duration // when a unit's release was last taken back, or held

	orderCount int
	ordersOf   [3]int                  // process, its commits and the orders when it was looked which were taken
	maskEnded  map[place]time.Duration // when a Mask that is not there any more was last
	ran        map[place]string        // the bundle that each place had when a release was done
}

// memory is what the judge knows of a state: what orders it has, and what the fleet of its
// commit was. A copy of the state has what was so when it was made.
type memory struct {
	pins     map[string]string // the identity of each cluster that the state has written to
	given    []*given
	promoted map[string]bool // units that an operator let go on, since a release of theirs began
	masks    []where         // of the fleet
	windows  []where         // of the fleet
	gateMemory
}

func newMemory() memory {
	return memory{pins: map[string]string{}, promoted: map[string]bool{},
		gateMemory: gateMemory{promotes: map[string][]string{}, done: map[string]unit{}}}
}

// clone is a memory that goes on by itself.
func (m memory) clone() memory {
	m.pins, m.promoted = maps.Clone(m.pins), maps.Clone(m.promoted)
	m.given, m.gateMemory = slices.Clone(m.given), m.gateMemory.clone()
	for i, g := range m.given {
		is := *g
		m.given[i] = &is
	}
	return m
}

// objection is what a judge has against a history.
type objection struct {
	rule string
	text string
}

func (o *objection) Error() string { return o.rule + ": " + o.text }

// place is a unit on a target.
type place struct{ unit, target string }

// deletion is an object that a unit has on a target.
type deletion struct {
	place
	key
	uid string
}

// observed is what a pass told.
type observed struct {
	process     *process
	generation  int // of the state
	commit      config.Commit
	transitions []rollout.Transition
	units       map[string]view
	errs        []string
}

// view is what the daemon says of a unit.
type view struct {
	status, reason, blocked, waiting string
	release                          string
	targets                          map[string]string // the trouble and its reason
}

func newJudge(w *world) *judge {
	return &judge{world: w, memory: newMemory(), holders: map[int]map[string]string{}, handedOver: map[string]time.Duration{},
		left: map[int]map[string][]*given{}, allowed: map[deletion]bool{}, places: map[place]*held{}, causes: map[string]string{},
		inForce: map[int]*commit{}, orphaned: map[string]bool{},
		known: map[int]*commit{}, deleted: map[string]int{}, made: map[place]int{}, failed: map[string]string{},
		first: map[int]*commit{}, blind: map[int]time.Duration{}, lineage: map[int]int{}, renewed: map[string]time.Time{},
		units: map[string]view{}, turnedBack: map[string]*unit{}, maskEnded: map[place]time.Duration{}, ran: map[place]string{},
		wentBack: map[string]time.Duration{}, rolloutSince: map[rolloutKey]time.Duration{}, fought: map[fought][]time.Duration{}}
}

// objectf notes the first objection.
func (j *judge) objectf(rule, format string, args ...any) {
	if j.objection == nil {
		j.objection = &objection{rule, fmt.Sprintf(format, args...)}
		j.world.tell("OBJECTION: %s", j.objection)
	}
}

// before looks at a call that the cluster is about to serve.
func (j *judge) before(c *call) {
	if c.isLease() {
		lease := j.world.clusters[c.cluster].lease()
		j.holder, j.carried = lease.holder, lease.orders
	}
	if c.isLease() || !c.writes() {
		return
	}
	j.writes++
	j.lastWrite = c.key()
	j.world.stats.now.writes++
	at := j.world.clusters[c.cluster]
	j.see(at)
	if c.process == j.world.rival && !c.process.isDead() {
		j.writer(c, at)
		j.world.takeOver()
	}
	k := keyOf(c.path)
	j.entries(c.process)
	j.bound(c, at, k)
	j.identity(c, at)
	j.ownName(c, at)
	j.writer(c, at)
	switch {
	case c.method == http.MethodDelete:
		j.deletes(c, at, k)
	case c.method == http.MethodPatch && strings.Contains(c.request.Header.Get("Content-Type"), "apply-patch"):
		j.applies(c, at, k)
	}
}

// after takes in what the cluster did.
func (j *judge) after(c *call, code int) {
	if c.isLease() && code < 300 {
		j.leftTo(c)
	}
	if c.isLease() && code < 300 && c.method != http.MethodGet {
		j.takesOver(c, j.holder)
		var lease struct {
			Spec struct{ HolderIdentity string }
		}
		if json.Unmarshal(c.body, &lease) == nil {
			j.renewed[j.world.clusters[c.cluster].identity()] = time.Now()
			if j.holders[c.process.number] == nil {
				j.holders[c.process.number] = map[string]string{}
			}
			j.holders[c.process.number][c.cluster] = lease.Spec.HolderIdentity
			if lease.Spec.HolderIdentity != j.holder {
				j.handedOver[c.cluster] = j.elapsed
			}
		}
	}
}

// gitPatience is how long a pass waits for Git. Without an answer, it goes on with what
// the state says.
const gitPatience = 5 * time.Second

// sameMoment is how near to the end of a wait an answer comes that may be too late.
const sameMoment = 10 * time.Millisecond

// fetched notes that a process has a commit.
func (j *judge) fetched(p *process, c *commit) {
	if before, again := j.first[p.number]; !again {
		j.first[p.number] = c
		if p.refused || time.Since(p.asked) >= gitPatience-sameMoment {
			j.blind[p.number] = j.elapsed
		}
	} else if before != c {
		j.first[p.number] = nil
	}
	j.known[p.number] = c
	for _, u := range c.units {
		switch {
		case u.broken:
			j.cause(u.path, "an image that is broken")
		case u.denied:
			j.cause(u.path, "what admission denies")
		}
	}
}

// cause notes that a unit's release may fail by right.
func (j *judge) cause(unit, text string) { j.causes[unit] = text }

func (j *judge) faulty(c *call, f *fault) {
	if c.cluster == checks {
		unit, _ := c.asked()
		j.cause(unit, "a gate did not answer")
	}
	if f.name == "denied by admission" {
		j.cause(bodyOf(c).unit(), f.name)
	}
}

func (j *judge) byHand(c *cluster, k key) { j.cause(c.live[k].unit, "somebody changed "+k.String()) }

func (j *judge) flapped(c *cluster, k key) { j.cause(c.live[k].unit, k.String()+" became ill") }

func (j *judge) approved(p store.Plan) {
	for _, d := range p.Deletions {
		j.allowed[deletion{place{string(d.Unit), string(d.Target)}, key{d.Kind, d.Namespace, d.Name}, d.UID}] = true
	}
}

// forget is for a state that is lost.
func (j *judge) forget() {
	j.memory = newMemory()
	j.anew()
}

// anew is for a state that is not the one that there was.
func (j *judge) anew() {
	j.deleted = map[string]int{}
	clear(j.failed)
	clear(j.ran)
	j.lineages++
	j.generation = j.lineages
}

// takenOver is for a daemon with another state that writes from now on.
func (j *judge) takenOver(p *process) {
	j.anew()
	j.generation = j.lineage[p.number]
	j.rowsAt = 0 // nobody looked at its releases so far
	j.isOlder, j.memory, j.units = true, p.disk.memory, map[string]view{}
	for _, name := range sorted(j.left[p.number]) {
		j.areLeft(name, j.left[p.number][name])
	}
}

func (j *judge) older(s saved) {
	j.isOlder = true
	j.memory = s.memory.clone()
	j.anew()
}

// observe takes in what a pass told. It is called by the process.
func (j *judge) observe(p *process, r sync.Record, s *rollout.State) {
	j.notices(p, r)
	j.rests(p, r)
	if r.Err != nil {
		return // nothing of it is stored
	}
	o := observed{process: p, generation: j.lineage[p.number], commit: r.Commit, transitions: slices.Clone(r.Transitions), units: map[string]view{}}
	for _, err := range r.Errors {
		o.errs = append(o.errs, err.Error())
	}
	for path, u := range s.Units {
		v := view{status: string(u.Rollout.Status), reason: u.Rollout.Reason, blocked: u.Blocked, waiting: u.Waiting, release: string(u.Rollout.Release), targets: map[string]string{}}
		for name, t := range u.Targets {
			if t.Trouble != "" {
				v.targets[string(name)] = string(t.Trouble) + ": " + t.Reason
				if t.Reason == "" {
					v.targets[string(name)] = ""
				}
			}
		}
		o.units[string(path)] = v
	}
	j.observed = append(j.observed, o)
}

// mostAtOnce is how many passes a daemon may make while nothing happens and no time passes, and
// mostInARow how many with less than shortPause between them: some seconds.
const (
	mostAtOnce = 200
	mostInARow = 1000
	shortPause = 10 * time.Millisecond
)

// rests: a daemon does not make one pass after the other for nothing. One that does so at once
// would never come to an end here, as no time passes, and is killed.
func (j *judge) rests(p *process, r sync.Record) {
	switch pause := time.Since(p.passed); {
	case pause > shortPause:
		p.passes, p.inARow = 0, 0
	case pause > 0:
		p.passes = 0
	}
	p.passed = time.Now()
	p.passes++
	p.inARow++
	if p.passes == mostAtOnce || p.inARow == mostInARow {
		j.objectf("a daemon rests", "process %d makes one pass after the other: %+v", p.number, r.Actions)
		p.die()
	}
}

// clockIsSet: to a daemon that is at work when its clock is set, no time passes. For others a
// step forward is time that has passed.
func (j *judge) clockIsSet(d time.Duration) {
	j.step, j.stepAt = j.step+max(0, d), j.world.now()
	if j.world.process == nil || j.world.rival != nil {
		j.unnoticed()
	}
}

// unnoticed: the process ended, or another begins, before it noticed that the clock was set.
func (j *judge) unnoticed() {
	if j.step == 0 {
		return
	}
	j.elapsed += j.step
	j.step = 0
	for _, u := range j.world.git.head.units {
		j.cause(u.path, "the clock jumped, and timeouts are over")
	}
}

// notices: a pass that began after the clock was set.
func (j *judge) notices(p *process, r sync.Record) {
	if p == j.world.process && !r.At.Before(j.stepAt) {
		j.step = 0
	}
}

// gitTime is how long a daemon may go on without a look at Git; it looks every 30 s.
const gitTime = 3 * time.Minute

// looksAtGit: a daemon goes on looking at Git.
func (j *judge) looksAtGit(p *process) {
	if since := time.Since(p.asked); !p.asks && since > gitTime {
		j.objectf("a daemon looks at Git", "process %d did not for %s", p.number, since)
	}
}

// look looks at the world after a step.
func (j *judge) look() {
	if j.objection != nil {
		return
	}
	for _, name := range j.world.shape.clusters {
		j.see(j.world.clusters[name])
	}
	j.note()
	if p := j.world.process; p != nil && !p.isDead() {
		j.readRows(p)
		j.readOrders(p)
		j.looksAtGit(p)
	}
	for _, o := range j.observed {
		j.hear(o)
	}
	j.observed = nil
	if found := j.world.logged.found; found != "" {
		j.objectf("no secret is shown", "%s", found)
	}
}

// holderName is in what is told of a Lease. It is made by chance.
var holderName = regexp.MustCompile(`held by \S+`)

// hear judges what a pass told.
func (j *judge) hear(o observed) {
	if c := j.world.git.commits[o.commit]; c != nil {
		j.inForce[o.process.number] = c
		if o.generation == j.generation {
			j.fleetIs(c)
			j.takes(c, o.process)
		} else {
			o.process.disk.takes(c, o.process)
		}
	}
	if o.process.second {
		return // it is not in force anywhere
	}
	if o.generation == j.generation {
		j.ordersWaited(o.process)
	}
	for _, t := range o.transitions {
		j.world.logged.check("the history", t.Text)
		j.world.stats.situation("told " + t.Kind)
		j.world.tell("told by %d: %s %s %s: %s", o.process.number, t.Unit, t.Target, t.Kind, holderName.ReplaceAllString(t.Text, "held by another"))
		unit := string(t.Unit)
		switch t.Kind {
		case "started":
			if !slices.ContainsFunc(j.given, func(g *given) bool { return g.Verb == order.Promote && !g.heard && string(g.Scope.Unit) == unit }) {
				delete(j.promoted, unit)
				delete(j.promotes, unit)
			}
			j.startsAgain(t)
		case "mask", "freeze", "pause":
			j.inherits(t)
		case "unmask", "thaw", "resume":
			j.endsInherited(t)
		case "retry", "clear":
			clear(j.failed) // what failed since the order was given is meant too
		case "orphaned":
			if k, found := strings.CutSuffix(t.Text, ": not ours: somebody deleted and recreated it"); found && j.isOlder {
				j.orphaned[t.Target.Cluster()+" "+k] = true // it was itself, and said so
			}
		case "promote":
			j.promoted[unit] = true
			for _, g := range j.given {
				g.heard = g.heard || strings.Contains(t.Text, g.tag)
			}
		case "rolled back":
			j.isPutBack(o.process, t)
		case "rolling back", "held":
			if t.Kind == "rolling back" && o.generation == j.generation { // or nobody knows of it any more
				j.again(t)
			}
			if (j.isOlder || j.world.rivals > 0) && strings.Contains(t.Text, "the state is older than the cluster") {
				break // a second daemon wrote there too
			}
			if j.causes[unit] == "" && !j.isBrokenIn(t.Commit, unit) {
				j.objectf("distress turns nothing back", "%s on %s: %s: %s, and nothing is wrong with the unit", unit, t.Target, t.Kind, t.Text)
			}
		case "done":
			if o.generation != j.generation {
				continue // its state is lost by now, and with it what was masked
			}
			j.isThere(o, t)
			j.ranThere(o.process, t)
			if c := j.world.git.commits[t.Commit]; c != nil && c.unit(unit) != nil {
				j.done[unit] = *c.unit(unit)
			}
			if c := j.inForce[o.process.number]; c != nil {
				if u := c.unit(unit); u != nil && !u.broken && !u.denied && !j.isIll(unit) {
					delete(j.causes, unit)
				}
			}
		}
	}
	for _, path := range sorted(o.units) {
		v := o.units[path]
		if v.status != string(rollout.Done) && v.status != string(rollout.Progressing) && v.reason == "" && v.blocked == "" {
			j.objectf("what waits says for what", "%s is %s and says nothing", path, v.status)
		}
		for _, name := range sorted(v.targets) {
			if v.targets[name] == "" {
				j.objectf("what waits says for what", "%s on %s is in trouble and says nothing", path, name)
			}
		}
	}
	for content, unit := range j.failed {
		if _, known := o.units[unit]; !known {
			delete(j.failed, content) // what is forgotten of it is forgotten
		}
	}
	j.units = o.units
}

// isBrokenIn says that a commit has something wrong with a unit: of a state that was put back,
// the release under way may be of one whose cause was mended since.
func (j *judge) isBrokenIn(commit config.Commit, unit string) bool {
	c := j.world.git.commits[commit]
	if c == nil {
		return false
	}
	u := c.unit(unit)
	return u != nil && (u.broken || u.denied)
}

// isIll says that something a controller made ill is so still, where a second daemon did not
// look before it was done, or looked away.
func (j *judge) isIll(unit string) bool {
	for _, name := range j.world.shape.clusters {
		for _, l := range j.world.clusters[name].live {
			if l.unit == unit && l.flapped && !l.ready {
				return true
			}
		}
	}
	return false
}

// entries is the inventory as a process has stored it.
func (j *judge) entries(p *process) []store.Entry {
	p.mu.Lock()
	is := [2]int{p.number, p.commits}
	p.mu.Unlock()
	if j.inventoryOf == is && j.inventory != nil {
		return j.inventory
	}
	all, err := p.store.Inventories("")
	if err != nil {
		j.objectf("state", "inventory: %v", err)
	}
	j.inventory, j.inventoryOf = all, is
	j.readRows(p)
	j.readOrders(p)
	return all
}

// pauseTime is how long a daemon pauses between two requests without asking again who is
// there.
const pauseTime = time.Second

// identity: nothing is written to a cluster whose identity changed, if the daemon may know:
// a broken connection tells it, and so does a pause.
func (j *judge) identity(c *call, at *cluster) {
	if at.unnoticed > 0 && j.elapsed-at.unnoticed < pauseTime {
		return
	}
	identity, pins := at.identity(), j.pins
	if c.process.second { // it is dead, and has a state of its own
		pins = c.process.disk.pins
	}
	if pinned := pins[c.cluster]; pinned == "" {
		pins[c.cluster] = identity
	} else if pinned != identity {
		j.objectf("identity", "%s is written to the cluster %s, and the state knows %s", c.key(), identity, pinned)
	}
}

// ownName: nothing is written to a cluster whose Lease says that it has another name.
func (j *judge) ownName(c *call, cluster *cluster) {
	isNoticed := cluster.unnoticed == 0 || j.elapsed-cluster.unnoticed >= pauseTime
	if name := cluster.lease().name; name != "" && name != c.cluster && isNoticed {
		j.objectf("identity", "%s is written as cluster %s, and its Lease says that it is %s", c.key(), c.cluster, name)
	}
}

// writer: who writes holds the Lease.
func (j *judge) writer(c *call, at *cluster) {
	if is := at.lease().holder; is == "" || is != j.holders[c.process.number][c.cluster] {
		j.objectf("one writer", "%s is written while the Lease is held by %q and not by %q", c.key(), is, j.holders[c.process.number][c.cluster])
	}
	if since := time.Since(j.renewed[j.world.clusters[c.cluster].identity()]); since > leaseTime {
		j.objectf("one writer", "%s is written %s after the last renewal of the Lease", c.key(), since)
	}
}

// wants says which units of a commit want an object in a cluster.
func (j *judge) wants(c *commit, cluster string, k key) (all []place) {
	for _, u := range c.units {
		for _, t := range j.world.targets(u) {
			if t.cluster == cluster && u.objects(t)[k] != "" {
				all = append(all, place{u.path, t.name})
			}
		}
	}
	return all
}

// contested are the units of a commit that want an object that another one wants. Nobody knows
// what a frozen unit wants.
func (w *world) contested(c *commit) map[string]bool {
	if c.twice != nil {
		return c.twice
	}
	by, all := map[string]string{}, map[string]bool{}
	for _, u := range c.units {
		if u.frozen {
			continue
		}
		for _, t := range w.targets(u) {
			for k := range u.objects(t) {
				at := t.cluster + " " + k.String()
				if other := by[at]; other != "" && other != u.path {
					all[other], all[u.path] = true, true
				}
				by[at] = u.path
			}
		}
	}
	c.twice = all
	return all
}

// goodIn says whether a commit says something of a unit that may be released.
func (j *judge) goodIn(c *commit, u *unit) bool {
	return !c.held && !u.frozen && !j.world.contested(c)[u.path] && !(u.sort == "app" && c.unit("services/crd") == nil) // whose kind then does not load
}

// body is what of an applied object the judge reads.
type body struct {
	Metadata struct {
		Annotations map[string]string
	}
}

func bodyOf(c *call) (b body) {
	_ = json.Unmarshal(c.body, &b) // what is no object has no annotations
	return b
}

func (b body) unit() string { return b.Metadata.Annotations[config.AnnotationUnit] }
func (b body) mark() string { return b.Metadata.Annotations[markKey] }

func sortedKeys[V any](m map[key]V) []key {
	return slices.SortedFunc(maps.Keys(m), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}
