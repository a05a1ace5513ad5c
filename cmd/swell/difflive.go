// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	gosync "sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/report"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// liveDiff compares what a snapshot wants with what the clusters hold.
type liveDiff struct {
	snapshot *render.Snapshot
	compiler *render.Compiler
	settings *config.Daemon
	units    []*render.Unit // those that are looked at
	below    string         // the folder that they are in; empty is all
	target   string         // or a cluster; empty is all
	// ask asks a cluster: [apply.Cluster.Preview], or [apply.Cluster.TakeOver].
	ask func(*apply.Cluster, context.Context, apply.Work) []apply.Preview
	// met is told each answer, one at a time, and done once a cluster answered all. Both
	// may be nil.
	met  func(unitTarget, apply.Preview)
	done func(context.Context, string, *apply.Cluster)

	state *rollout.State // of the daemon; empty where it cannot be read

	mu     gosync.Mutex // guards what follows
	was    map[config.UnitPath]map[config.TargetName]*object.Bundle
	is     map[config.UnitPath]map[config.TargetName]*object.Bundle
	report *diff.Report
	errs   []error
}

// unitTarget is one thing to ask a cluster about.
type unitTarget struct {
	unit    config.UnitPath
	bundle  *object.Bundle
	work    apply.Work
	account string // of its tenant; empty: swell's own
	look    bool   // see [executor.EventOf]
}

// unitsAtOnce is how many units are asked about at a time in one cluster.
const unitsAtOnce = 8

// compare asks all clusters. The report holds what could be found out; errs says
// what could not.
func (l *liveDiff) compare(ctx context.Context) (report *diff.Report, errs []error) {
	l.report = &diff.Report{}
	l.was = map[config.UnitPath]map[config.TargetName]*object.Bundle{}
	l.is = map[config.UnitPath]map[config.TargetName]*object.Bundle{}
	inventory := l.inventory()
	asked := l.questions(inventory)
	var all gosync.WaitGroup
	for name, units := range asked {
		all.Go(func() { l.cluster(ctx, name, units) })
	}
	all.Wait()
	l.deletions(inventory)
	for _, path := range slices.Sorted(maps.Keys(l.is)) {
		l.report.Changes = append(l.report.Changes, diff.Unit(path, l.was[path], l.is[path])...)
	}
	slices.SortFunc(l.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return l.report, l.errs
}

// questions finds what each cluster is to be asked about.
func (l *liveDiff) questions(inventory []store.Entry) map[string][]unitTarget {
	asked, applied := map[string][]unitTarget{}, byPlace(inventory)
	for _, unit := range l.units {
		path := unit.Path
		if len(unit.Problems) > 0 {
			l.report.Unknown = append(l.report.Unknown, path)
			continue
		}
		bundles, err := l.snapshot.Bundles(unit)
		if err != nil {
			l.errs = append(l.errs, err)
			continue
		}
		l.was[path], l.is[path] = map[config.TargetName]*object.Bundle{}, map[config.TargetName]*object.Bundle{}
		for _, b := range bundles {
			if name := b.Target.Cluster(); config.Within(string(b.Target), l.target) {
				location := object.UnitTarget{Unit: path, Target: b.Target}
				event, look := executor.EventOf(l.state, location, b, applied[location])
				work := apply.Work{
					Objects: b.Objects, Bundle: b.Digest, Event: event, Known: applied[location],
					Adopt: unit.Policy.Adopt, Ignore: unit.Policy.IgnoredOn(unit.On(b.Target).Target.Labels),
				}
				asked[name] = append(asked[name], unitTarget{path, b, work, l.account(unit), look})
			}
		}
	}
	return asked
}

// inventory is what the daemon applied last; nothing where its state cannot be read. It reads
// the state of releases too.
func (l *liveDiff) inventory() []store.Entry {
	l.state = &rollout.State{}
	s, err := store.OpenReadOnly(l.settings.State)
	if err != nil {
		return nil
	}
	defer s.Close()
	if state, err := sync.LoadState(s); err != nil {
		l.errs = append(l.errs, err)
	} else {
		l.state = state
	}
	entries, err := s.Inventories(config.UnitPath(l.below))
	if err != nil {
		l.errs = append(l.errs, err)
	}
	return entries
}

func byPlace(inventory []store.Entry) map[object.UnitTarget]map[object.ID]store.Entry {
	applied := map[object.UnitTarget]map[object.ID]store.Entry{}
	for _, e := range inventory {
		at := object.UnitTarget{Unit: e.Unit, Target: e.Target}
		if applied[at] == nil {
			applied[at] = map[object.ID]store.Entry{}
		}
		applied[at][e.ID] = e
	}
	return applied
}

// account is that of the unit's tenant.
func (l *liveDiff) account(unit *render.Unit) string {
	if tenant := l.snapshot.Repository.Tenants[unit.Tenant]; tenant != nil {
		return tenant.Account
	}
	return ""
}

func (l *liveDiff) cluster(ctx context.Context, name string, units []unitTarget) {
	conn, err := fleet.Connect(ctx, l.settings, l.snapshot.Repository.Name, name)
	if err != nil {
		l.failed(err)
		return
	}
	var group errgroup.Group
	group.SetLimit(unitsAtOnce)
	for _, u := range units {
		group.Go(func() error {
			if err := u.skipHooks(ctx, conn.As(u.account)); err != nil {
				l.failed(fmt.Errorf("%s on %s: %w", u.unit, u.bundle.Target, err))
				return nil
			}
			l.take(u, l.ask(conn.As(u.account), ctx, u.work))
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
	if l.done != nil {
		l.done(ctx, name, conn)
	}
}

// skipHooks takes the hooks out of the work that the daemon would not run now.
func (u *unitTarget) skipHooks(ctx context.Context, conn *apply.Cluster) (err error) {
	if u.look {
		if u.work.Event, _, err = executor.LookFirst(ctx, conn, u.bundle, u.work.Known, u.work.Event); err != nil {
			return err
		}
	}
	u.work.Objects = slices.DeleteFunc(slices.Clone(u.bundle.Objects), func(o *object.Object) bool { return o.Skips(u.work.Event) })
	return nil
}

func (l *liveDiff) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

// take makes bundles of what the server answered: of the objects as they are,
// and as they would be.
func (l *liveDiff) take(u unitTarget, previews []apply.Preview) {
	was, is := &object.Bundle{Unit: u.unit, Target: u.bundle.Target, Digest: "live"}, &object.Bundle{Unit: u.unit, Target: u.bundle.Target}
	for i, p := range previews {
		old, applied := p.Live, p.Applied
		switch {
		case p.Err != nil:
			l.failed(fmt.Errorf("%s on %s: %w", u.unit, u.bundle.Target, p.Err))
			continue
		case p.Action == apply.Unchanged:
			continue
		case p.Action == apply.Created:
			applied = u.work.Objects[i]
		case applied == nil: // a Secret, which nobody read
			old, applied = unread(p.ID, "as it is"), unread(p.ID, "as it would be")
		}
		is.Objects = append(is.Objects, applied)
		if old != nil {
			was.Objects = append(was.Objects, old)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.was[u.unit][u.bundle.Target], l.is[u.unit][u.bundle.Target] = was, is
	for _, p := range previews {
		if l.met != nil {
			l.met(u, p)
		}
	}
}

// unread stands for a Secret of which only that it changes is known.
func unread(id object.ID, what string) *object.Object {
	return &object.Object{ID: id, Version: "v1", JSON: fmt.Appendf(nil, `{"data":%q}`, what), Digest: object.Digest(what)}
}

// deletions adds what the daemon applied and nobody wants any more. Without the
// daemon's state nothing is known of that.
func (l *liveDiff) deletions(inventory []store.Entry) {
	for _, e := range inventory {
		unit := l.snapshot.Units.Get(e.Unit)
		if e.UID == "" || !config.Within(string(e.Target), l.target) || unit != nil && len(unit.Problems) > 0 || len(l.compiler.Wants(e.Target.Cluster(), e.ID)) > 0 {
			continue
		}
		l.deleted(e)
	}
}

func (l *liveDiff) deleted(e store.Entry) {
	if l.is[e.Unit] == nil {
		l.was[e.Unit], l.is[e.Unit] = map[config.TargetName]*object.Bundle{}, map[config.TargetName]*object.Bundle{}
	}
	was := l.was[e.Unit][e.Target]
	if was == nil {
		was = &object.Bundle{Unit: e.Unit, Target: e.Target, Digest: "live"}
		l.was[e.Unit][e.Target] = was
	}
	was.Objects = append(was.Objects, &object.Object{ID: e.ID, Version: e.Version})
}

// compareLive renders the commit or folder that a name means, and makes ready what asks
// the clusters for its units. done ends it.
func compareLive(cmd *cobra.Command, where *repoFlags, config configPath, name, unit, target string) (l *liveDiff, done func(), err error) {
	settings, err := readDaemonConfig(config)
	if err != nil {
		return nil, nil, err
	}
	compiler, done, err := where.compiler(cmd)
	if err != nil {
		return nil, nil, err
	}
	head, err := where.accepted(cmd.Context(), compiler, name)
	if err != nil {
		done()
		return nil, nil, err
	}
	printProblems(cmd.ErrOrStderr(), head.Problems)
	if head.Held {
		done()
		return nil, nil, exit(exitError)
	}
	l = &liveDiff{snapshot: head, compiler: compiler, settings: settings, below: where.units(unit, nil, 0), target: target, ask: (*apply.Cluster).Preview}
	if l.units, err = pick(head, l.below, target); err != nil {
		done()
		return nil, nil, err
	}
	return l, done, nil
}

// live prints what an apply of the commit or folder that name means would change
// now, as swell diff --live.
func (o *diffOptions) live(cmd *cobra.Command, name string) error {
	l, done, err := compareLive(cmd, &o.where, o.config, name, o.unit, o.target)
	if err != nil {
		return err
	}
	defer done()
	found, errs := l.compare(cmd.Context())
	if o.output == formatMarkdown {
		err = writeMarkdown(cmd.OutOrStdout(), &report.Change{Report: found})
	} else {
		err = writeReport(cmd.OutOrStdout(), o.output, found, nil)
	}
	if err != nil {
		return err
	}
	return l.end(cmd.ErrOrStderr(), found, errs, found.Summary())
}

// end says what could not be found out and sums up. Its error is the exit code.
func (l *liveDiff) end(w io.Writer, report *diff.Report, errs []error, summary string) error {
	for _, err := range errs {
		fmt.Fprintf(w, "swell: %v\n", err)
	}
	if len(errs) > 0 {
		summary += "; not all could be compared"
	}
	fmt.Fprintf(w, "swell: %s\n", summary)
	switch {
	case len(errs) > 0 || len(report.Unknown) > 0:
		return exit(exitError)
	case len(report.Changes) > 0:
		return exit(exitProblems)
	}
	return nil
}
