// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package render is the compiler: it turns the tree of one commit into a
// [Snapshot], the hard objects of every unit for every target, checked against
// the schemas of the target's Kubernetes version.
//
// It reads no clock, network, environment or cluster. The same tree gives the
// same bytes, whatever the commit, and whatever was rendered before.
package render

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"path"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/schema"
)

// Compiler renders the commits of one repository, one after another. A unit is
// rendered again only when something that its rendering read has changed. The
// zero value is ready. It is not safe for concurrent use; the snapshots it
// returns are.
type Compiler struct {
	// Cache keeps the results. Nil: they are kept in memory, packed.
	Cache *cache.Cache
	// Version of the program: results of another version are not used.
	Version string
	// Checks are in place of those of the repository; nil: those are meant.
	Checks *config.Checks
	// Base is what a change goes to, whose rules judge the change too: its Tenants,
	// policies, Checkers and checks; nil for none.
	// It is set before the first snapshot, or to the repository of the one before.
	Base *config.Repository
	// Before is the tree of the commit before the first snapshot that is not held, where an earlier
	// process took one: what a document names may have gone since, see [Snapshot.Idle]. Nil: there
	// was none.
	Before config.Tree
	// Between are the trees that the branch had between the commit before and that of the next
	// snapshot, the newest first, nil for one that cannot be read: commits may be fetched together.
	// Nil: there are none.
	Between iter.Seq[config.Tree]
	// Releases tell who had what several units want. Nil: there is no fleet, and only the base tells.
	Releases Releases
	// Checkers run the programs that judge texts. Nil: none can be run.
	Checkers Checkers
	// Charts render Helm charts. Nil: none can be rendered.
	Charts Charts

	released bool                                // what is rendered was released before, see [NewCommit]
	world    *world                              // of the last commit that was not held
	checked  map[*config.Facts]document.Problems // what is wrong with facts
	entries  map[config.UnitPath]*entry
	units    Units
	marks
	claims    *claims
	contested contests
	blames    map[config.UnitPath]document.Problems // of other units, by the one that collected of them
	together  together
	outside   map[config.UnitPath]document.Problems // of units, caused by others
	holders   holders
	uses      useCounts
	hosts     Hosts
	disputed  disputed
	quotas    map[string]quotaSpace // by the names of spaces
	demands   demands
	taken     bool // all demands could be taken
	// remembered is what units had in earlier commits.
	remembered map[pastKey]*holdings
	demanded   map[demandKey]demand
}

// marks say which units have to be looked at when something happens to others.
type marks struct {
	retry      map[config.UnitPath]bool // a file could not be read
	troubled   map[config.UnitPath]bool // the unit in [Compiler.units] has problems
	collectors map[config.UnitPath]bool // the unit collects documents of others
	elsewhere  map[config.UnitPath]bool // the unit reads files that are not below it
	settled    map[config.UnitPath]bool // the unit sets something for namespaces
	inSpaces   map[config.UnitPath]bool // the unit was judged by what is set for namespaces
	naming     map[config.UnitPath]bool // the unit names service accounts that it does not bring
}

func newMarks() marks {
	none := func() map[config.UnitPath]bool { return map[config.UnitPath]bool{} }
	return marks{none(), none(), none(), none(), none(), none(), none()}
}

// entry is what the compiler remembers of a unit. There are very many of them:
// results are kept packed, which takes less room and spares the garbage
// collector their parts.
type entry struct {
	source  *config.Unit
	placed  []place
	static  cache.Key
	holds   []string // the kinds of its documents, see [scan]
	packed  []byte   // the last result; nil: the unit must be rendered
	unit    *Unit    // as it is in a snapshot, but for contests
	slots   []uint32 // of its claims, by placement; [noSlot] where there are none
	claimed []byte   // the packed result that the claims are of
	valued  bool     // its unique values are claimed too
	// settings are what the unit sets for namespaces; mostly none. spaces are the names of those whose
	// settings it was judged by.
	settings []setting
	spaces   []string

	traces []*result // during a pass, that the cache has under static; nil when not asked, or done with
	failed *result   // during a pass, a result that is not to be remembered
}

// result is the last one; nil when there is none.
func (e *entry) result() *result {
	if e.packed == nil {
		return e.failed
	}
	return mustUnpack(e.packed)
}

// Snapshot renders a commit.
func (c *Compiler) Snapshot(commit config.Commit, tree config.Tree) *Snapshot {
	return c.snapshot(commit, tree, c.past())
}

// Accepted is [Compiler.Snapshot] of a commit that was taken already, as that of a branch that a
// change goes to: what its documents name in vain is no problem of it, see [Snapshot.Idle].
func (c *Compiler) Accepted(commit config.Commit, tree config.Tree) *Snapshot {
	return c.snapshot(commit, tree, config.Past{Taken: tree})
}

func (c *Compiler) snapshot(commit config.Commit, tree config.Tree, past config.Past) *Snapshot {
	previous := c.Base // most of it is as it was there
	if c.world != nil {
		previous = c.world.repository
	}
	repository := config.Load(tree, previous)
	s := &Snapshot{Commit: commit, Repository: repository}
	s.HealthRules, s.Problems = checkFleet(repository)
	mistyped, gone := repository.JudgeIdle(past)
	s.Problems = append(s.Problems, mistyped...)
	s.Problems = append(s.Problems, c.checkFacts(repository)...)
	s.Base = c.judgesToo(repository)
	rules := c.rulesOf(repository, s.Base)
	mistypedNames, goneNames := config.JudgeIdle(rules.policies.idle, past.Taken)
	gone = append(gone, goneNames...)
	s.Problems = slices.Concat(s.Problems, mistypedNames, rules.policies.problems)
	if !c.released {
		s.Problems = append(s.Problems, rules.checks.problems()...)
	}
	s.Held = len(s.Problems) > 0
	if s.Held {
		// Nothing may be written from it anyway, and rendering against a
		// fleet that is not understood would only add noise.
		s.redactShared()
		s.Problems = s.Problems.Sorted()
		s.Retry = s.Problems.Retry()
		return s
	}
	p := c.begin(repository, rules)
	p.lookUp()
	p.world.define(p)
	mistypedKinds, goneKinds := p.judgeTenants(past.Taken)
	p.render()
	p.account()
	p.world.builds.Clear()
	p.world.again.clear()
	c.world = p.world
	mistyped, goneUses := config.JudgeIdle(slices.Concat(p.idleCheckers(), p.world.idlePolicies()), past.Taken)
	s.Problems = slices.Concat(s.Problems, mistypedKinds, p.untakenDenials(), mistyped)
	s.Idle = slices.Concat(gone, goneKinds, goneUses).Sorted()
	s.Notes = slices.Concat(rules.policies.notes, otherVersions(repository), s.Idle, p.quotaNotes).Sorted()
	s.world, s.Units, s.Rendered = p.world, c.units, int(p.rendered.Load())
	s.Problems = append(s.Problems, rules.problemsOfBase()...)
	s.Problems = append(s.Problems, p.world.problems...)
	s.Problems = append(s.Problems, p.world.hard.shared...)
	s.Problems = append(s.Problems, p.world.claims...)
	s.Problems = append(s.Problems, p.world.kinds.Problems...)
	c.finish(s)
	return s
}

// checkFleet finds the problems that hold a commit.
func checkFleet(r *config.Repository) (HealthRules, document.Problems) {
	problems := slices.Clone(r.Problems)
	for _, cluster := range r.Clusters {
		if _, err := schema.Kubernetes(cluster.Kubernetes); err != nil {
			problems = append(problems, document.Problem{Position: cluster.KubernetesAt, Code: document.CodeFleet, Message: "spec.kubernetes: " + err.Error()})
		}
	}
	rules, wrong := compileHealthRules(r)
	return rules, append(problems, wrong...)
}

// otherVersions are notes on clusters that have another Kubernetes than the fleet says.
func otherVersions(r *config.Repository) (notes document.Problems) {
	for _, cluster := range r.Clusters {
		f := r.Facts[cluster.Name]
		if f == nil || f.Minor() == "" || cluster.Kubernetes == "" || f.Minor() == cluster.Kubernetes {
			continue
		}
		notes = append(notes, document.Problem{Position: cluster.KubernetesAt, Code: document.CodeFleet, Via: []document.Position{f.Position},
			Message: fmt.Sprintf("spec.kubernetes: objects are checked against %s, and the cluster has %s", cluster.Kubernetes, f.Kubernetes)})
	}
	return notes
}

// pass is the work on one commit.
type pass struct {
	*Compiler
	world    *world
	before   *world   // nil at first
	touched  []*entry // whose files, defaults or places may have changed
	gone     []*entry
	replaced map[string]bool // kinds of documents that entries had and may not have any more
	denials  []*denial
	base     *Commit                   // once somebody asked for a unit of it
	loaded   map[config.Commit]*Commit // earlier ones, nil where Git does not have one
	// quotaNotes are about quotas that units exceed together, of which none wants more than before.
	quotaNotes document.Problems
	respaced   bool // what the tree sets for namespaces changed
	rendered   atomic.Int64
}

// begin makes the new commit's world as far as it does not depend on units, and
// finds the units to look at.
func (c *Compiler) begin(r *config.Repository, judging rules) *pass {
	if c.entries == nil {
		c.entries, c.claims = map[config.UnitPath]*entry{}, newClaims()
		c.holders, c.uses = newHolders(), useCounts{}
		c.marks = newMarks()
		c.blames, c.together = map[config.UnitPath]document.Problems{}, newTogether()
		if c.Cache == nil {
			c.Cache = cache.Memory()
		}
	}
	p := &pass{Compiler: c, before: c.world, world: &world{repository: r, rules: judging, charts: c.Charts, cache: c.Cache, version: c.Version}, replaced: map[string]bool{}}
	var previous *config.Repository
	if p.before != nil {
		previous = p.before.repository
	}
	changed, gone := r.Changes(previous)
	if previous != nil && previous.FleetHash == r.FleetHash && previous.Name == r.Name && p.before.treatments == judging.treatments && p.before.baseFleet(previous) == judging.baseFleet(r) && previous.FactsHash == r.FactsHash && p.before.policies == judging.policies && p.before.basePolicies == judging.basePolicies {
		p.world.places = p.before.places
		changed = append(changed, judgedAnew(r, p.before.left, judging.left)...)
	} else {
		p.world.places = newPlaces(r)
		changed = slices.Collect(r.Units())
	}
	for _, path := range gone {
		p.gone = append(p.gone, c.entries[path])
		delete(c.entries, path)
	}
	for path := range c.retry { // all that came of its files, too
		if e := c.entries[path]; e != nil {
			changed = append(changed, e.source)
			e.static = cache.Key{}
		}
	}
	for path := range c.elsewhere {
		if e := c.entries[path]; e != nil && !(e.packed != nil && e.result().reads.filesUnchanged(p.world)) {
			changed = append(changed, e.source)
			e.static = cache.Key{} // and with it all that came of the files
		}
	}
	touched := map[config.UnitPath]bool{}
	for _, unit := range changed {
		if touched[unit.Path] {
			continue
		}
		touched[unit.Path] = true
		e := c.entries[unit.Path]
		if e == nil {
			e = &entry{}
			c.entries[unit.Path] = e
		}
		e.source = unit
		p.touched = append(p.touched, e)
	}
	return p
}

// judgedAnew are the units of r that come from a Tenant and did not for the commit before, or the other
// way round.
func judgedAnew(r *config.Repository, before, now map[config.UnitPath]*config.Tenant) (units []*config.Unit) {
	for _, each := range [][2]map[config.UnitPath]*config.Tenant{{before, now}, {now, before}} {
		for path, t := range each[0] {
			if unit := r.Unit(path); unit != nil && each[1][path] != t {
				units = append(units, unit)
			}
		}
	}
	return units
}

// lookUp finds the static keys of the touched units and, where one is new, what
// the cache has under it.
func (p *pass) lookUp() {
	for _, e := range slices.Concat(p.touched, p.gone) {
		for _, kind := range e.holds {
			p.replaced[kind] = true
		}
	}
	parallel(p.touched, func(e *entry) {
		e.placed = p.world.placed(e.source.Defaults).places
		static := p.world.key(e.source, e.placed)
		if p.released { // what is refused today was not when it was released
			static = cache.Key(sha256.Sum256(append(static[:], "released"...)))
		}
		if static == e.static && (e.source.Kustomization == "" || e.packed != nil && e.result().reads.filesUnchanged(p.world)) {
			return // of a kustomization, the key covers a part of the files
		}
		e.static, e.packed, e.traces = static, nil, p.world.traces(static, len(e.placed))
		if len(e.traces) > 0 {
			for _, trace := range e.traces {
				if trace.sameFiles = trace.reads.filesUnchanged(p.world); trace.sameFiles {
					e.holds = trace.holds
					return
				}
			}
		}
		e.holds = p.world.scan(e.source)
	})
	for _, e := range p.touched {
		for _, kind := range e.holds {
			p.replaced[kind] = true
		}
	}
}

// parallel does the same for many entries, on all cores.
func parallel(entries []*entry, do func(*entry)) {
	// Small ones where there are few, so that programs run on all cores.
	batch := min(16, 1+len(entries)/(16*runtime.GOMAXPROCS(0)))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for some := range slices.Chunk(entries, batch) {
		group.Go(func() error {
			for _, e := range some {
				do(e)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
}

// render brings the results up to date.
func (p *pass) render() {
	list := map[*entry]bool{}
	for _, e := range p.touched {
		list[e] = true
	}
	add := func(paths map[config.UnitPath]bool) {
		for path := range paths {
			if e := p.entries[path]; e != nil {
				list[e] = true
			}
		}
	}
	switch {
	case p.before == nil || p.before.kinds != p.world.kinds || p.before.data != p.world.data || p.before.hard != p.world.hard || !p.before.checks.same(p.world.checks):
		for _, e := range p.entries {
			list[e] = true
		}
	case p.before.offers != p.world.offers:
		add(p.collectors)
	}
	p.touched = slices.Collect(maps.Keys(list))
	p.refreshAll()
}

// refresh makes the entry's result one that holds for this commit: the same,
// one from the cache, or a new one.
func (p *pass) refresh(e *entry) {
	if e.packed != nil {
		if r := e.result(); r.reads.unchanged(p.world) && p.world.judgedSo(e, r) {
			return
		}
	}
	if e.traces == nil {
		e.traces = p.world.traces(e.static, len(e.placed))
	}
	traces := e.traces
	e.traces, e.packed = nil, nil
	for _, trace := range traces {
		if trace.reads.inputsUnchanged(p.world) && p.world.judgedSo(e, trace) && (trace.sameFiles || trace.reads.filesUnchanged(p.world)) {
			e.packed = trace.pack()
			return
		}
	}
	r := p.world.renderUnit(e.source, e.placed)
	p.rendered.Add(1)
	if !r.lasting() {
		e.failed = r
		return
	}
	p.world.keep(e.static, r, traces)
	e.packed = r.pack()
}

// finish gathers the problems of the units. Units that only wait for a broken
// kind are counted, at the kind: its own problems are what there is to mend. A
// problem of Defaults, or of a whole file or folder, stands there once, however
// many units it holds.
func (c *Compiler) finish(s *Snapshot) {
	waiting := map[string]int{}
	shared := map[string]document.Problems{} // one for each unit, by their text
	fleet := s.Repository.Folders()[0]
	for _, unitPath := range slices.Sorted(maps.Keys(c.troubled)) {
		unit := c.units.Get(unitPath)
		if c.units.StandIn(unit) {
			continue
		}
		for _, p := range unit.Problems {
			if p.Code == document.CodeKind {
				waiting[p.Via[0].File]++
				continue
			}
			if config.Within(p.File, fleet) || path.Base(p.File) == "swell.yaml" || p.Code == document.CodeFile && p.Line == 0 {
				shared[p.String()] = append(shared[p.String()], p)
				continue
			}
			s.Problems = append(s.Problems, p)
		}
	}
	for _, same := range shared {
		p := same[0]
		if len(same) > 1 {
			p.Message += fmt.Sprintf(" (holds %d units)", len(same))
			p.Unit = ""
		}
		s.Problems = append(s.Problems, p)
	}
	for folder, specs := range waiting {
		keep := "its 1 spec keeps its"
		if specs > 1 {
			keep = fmt.Sprintf("its %d specs keep their", specs)
		}
		s.Problems = append(s.Problems, document.Problem{Position: document.Position{File: folder}, Code: document.CodeKind,
			Message: fmt.Sprintf("the kind does not load: %s last good bundles", keep)})
	}
	s.redactShared()
	s.Problems = s.Problems.Sorted()
	s.Retry = s.Problems.Retry()
}
