// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// files is the example monorepo, for edits.
type files map[string]string

func exampleFiles(t *testing.T) files {
	t.Helper()
	all, root := files{}, os.DirFS("../testdata/monorepo")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, name)
		all[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (f files) tree() config.Tree {
	all := fstest.MapFS{}
	for name, content := range f {
		all[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return config.Files(all)
}

func (f files) replace(name, old, new string) {
	if content, ok := f[name]; ok {
		f[name] = strings.ReplaceAll(content, old, new)
	}
}

func (f files) drop(below string) {
	maps.DeleteFunc(f, func(name, _ string) bool { return name == below || strings.HasPrefix(name, below+"/") })
}

func (f files) rename(from, to string) {
	for name, content := range maps.Clone(f) {
		if strings.HasPrefix(name, from+"/") {
			delete(f, name)
			f[to+strings.TrimPrefix(name, from)] = content
		}
	}
}

// unitFolders are the folders of units of the example.
func (f files) unitFolders() []string {
	found := map[string]bool{}
	for name := range f {
		if dir := path.Dir(name); strings.Count(dir, "/") == 2 && strings.HasPrefix(dir, "services/") && !strings.Contains(dir, "smoke") {
			found[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

var runtimeObjects = []string{"deployment", "service", "config", "disruption", "autoscaler"}

// edits are what people do to a monorepo.
var edits = []func(t *rapid.T, f files){
	func(t *rapid.T, f files) { // another image
		for _, name := range slices.Sorted(maps.Keys(f)) {
			if strings.HasSuffix(name, "/runtime.yaml") && rapid.Bool().Draw(t, "image") {
				f.replace(name, ".0", ".1")
			}
		}
	},
	func(t *rapid.T, f files) { f.drop(rapid.SampledFrom(f.unitFolders()).Draw(t, "removed")) },
	func(t *rapid.T, f files) {
		from := rapid.SampledFrom(f.unitFolders()).Draw(t, "renamed")
		f.rename(from, from+"-new")
	},
	func(t *rapid.T, f files) { // into another tenant's folder
		from := rapid.SampledFrom(f.unitFolders()).Draw(t, "moved")
		f.rename(from, "services/"+rapid.SampledFrom([]string{"pay", "shop", "search"}).Draw(t, "to")+"/"+path.Base(from))
	},
	func(t *rapid.T, f files) { // one word
		id := rapid.SampledFrom(runtimeObjects).Draw(t, "object")
		f.replace("kinds/runtime/kind.yaml", "  - id: "+id+"\n    when: here", "  - id: "+id+"\n    when: false && here")
	},
	func(t *rapid.T, f files) {
		f.replace("kinds/runtime/kind.yaml", `metadata: {name: "${name}"`, `metadata: {name: "${name}-x"`)
	},
	func(t *rapid.T, f files) {
		f.replace("services/"+rapid.SampledFrom([]string{"shop", "pay", "search", "travel"}).Draw(t, "team")+"/swell.yaml", "region: [sas, vla", "region: [sas")
	},
	func(t *rapid.T, f files) { f.replace("services/shop/swell.yaml", "tenant: shop", "tenant: store") },
	func(t *rapid.T, f files) { // a cluster leaves
		f.drop("fleet/myt-1.yaml")
		f.replace("services/pay/swell.yaml", ", myt]", "]")
		f.replace("services/pay/swell.yaml", "region: myt", "region: vla")
	},
	func(t *rapid.T, f files) {
		f.replace("fleet/vla-1.yaml", "  - {name: rz11a, variables: {network: _VLA_NETS_B_}}\n", "")
	},
	func(t *rapid.T, f files) { f.replace("fleet/vla-1.yaml", "name: rz11a", "name: rz12a") },
	func(t *rapid.T, f files) { // a mistake
		f.replace(rapid.SampledFrom([]string{"services/shop/cart/runtime.yaml", "services/pay/fraud/runtime.yaml"}).Draw(t, "broken"), "spec:", "sepc:")
	},
	func(t *rapid.T, f files) {
		f.replace("services/shop/cart/runtime.yaml", "replicas: {", "replicas: {myt: 1, ")
	},
	func(t *rapid.T, f files) { f.drop("services/shop/web/logs.yaml") },
	func(t *rapid.T, f files) {
		f.replace("services/platform/smoke/base/kustomization.yaml", "- deployment.yaml\n", "")
	},
	func(t *rapid.T, f files) { f.replace("services/platform/smoke/base/smoke.txt", "o", "0") },
	func(t *rapid.T, f files) { f.drop("services/platform/priorities") },
	func(t *rapid.T, f files) {
		f["services/shop/extra/objects.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: shop-rz00a}\n"
		f["services/shop/extra/swell.yaml"] = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: extra}\nspec: {placement: {match: {labels: {ring: canary}}}}\n"
	},
	func(t *rapid.T, f files) {
		f.replace("swell.yaml", "units: [services]", "units: [services/shop, services/platform]")
	},
	func(t *rapid.T, f files) { f.replace("swell.yaml", "name: shop", "name: other") },
	func(t *rapid.T, f files) {
		for name := range f {
			if strings.HasPrefix(name, "services/platform/oncall") {
				f.replace(name, "metadata: {name", "metadata: {annotations: {swell.sh/prune: disabled}, name")
			}
		}
	},
	func(t *rapid.T, f files) { f.drop("services/platform/oncall") },
	func(t *rapid.T, f files) { // what goes stays in the cluster
		f.replace("services/"+rapid.SampledFrom([]string{"shop", "pay", "search", "travel"}).Draw(t, "keeping")+"/swell.yaml", "spec:\n", "spec:\n  prune: keep\n")
	},
	func(t *rapid.T, f files) { // a unit is given up
		settings := rapid.SampledFrom(f.unitFolders()).Draw(t, "given up") + "/swell.yaml"
		if _, ok := f[settings]; !ok {
			f[settings] = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: none}\nspec: {unit: false, prune: keep}\n"
		}
	},
	func(t *rapid.T, f files) { // a file that holds no documents any more
		name := rapid.SampledFrom(f.unitFolders()).Draw(t, "spoiled") + "/runtime.yaml"
		if _, ok := f[name]; ok {
			f[name] = noManifests[rapid.SampledFrom(slices.Sorted(maps.Keys(noManifests))).Draw(t, "with")]
		}
	},
	func(t *rapid.T, f files) { // a kustomization that names nothing of the folder
		folder := rapid.SampledFrom(f.unitFolders()).Draw(t, "built")
		f[folder+"/kustomization.yaml"] = "configMapGenerator:\n- {name: made, namespace: shop-rz00a, literals: [a=b]}\n"
	},
	func(t *rapid.T, f files) {
		f.replace("fleet/rollout.yaml", "  - {name: rest, maxFailures: 1}      # no match: every target that is in no wave yet\n", "")
	},
}

// tester is a test, or a check of one.
type tester interface {
	rapid.TB
	Cleanup(func())
	Context() context.Context
}

// fleetOf is a daemon whose fleet has all of a commit, with clusters that take all
// they are told and are well at once.
type fleetOf struct {
	tester
	d    *Daemon
	dir  string // of its state
	now  time.Time
	live map[clusterObject]object.Digest
	uids int
	did  map[string]diff.Action
	last []rollout.Action
	// unjudged begins releases that nobody judged before.
	unjudged bool
	// refuses is why servers take nothing that a release brings of a unit; empty: they take it.
	refuses map[config.UnitPath]string
}

func placed(at object.UnitTarget, id object.ID) string {
	return fmt.Sprintf("%s %s %s", at.Target, at.Unit, id)
}

// placement is an object of a unit on a target.
type placement struct {
	object.UnitTarget
	id object.ID
}

func (f *fleetOf) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func newFleetOf(t tester, dir string, shared *cache.Cache, base *render.Snapshot, baseTree config.Tree) *fleetOf {
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	f := &fleetOf{tester: t, dir: dir, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), live: map[clusterObject]object.Digest{}, did: map[string]diff.Action{}}
	d, err := Open(Options{Store: s, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return f.now }, Source: baseTrees{tree: baseTree},
		Compiler: render.Compiler{Cache: shared}})
	f.must(err)
	f.d = d
	d.monorepo.name = base.Repository.Name
	d.state = rollout.Settled(wantOf(base, &rollout.State{}, nil, func(unit *render.Unit) *rollout.WantedUnit {
		return wantUnit(unit, base.Repository.Rollouts[unit.Rollout], base.Repository.Release)
	}))
	earlier, err := render.NewCommit(baseTree, shared, "", nil, nil)
	f.must(err)
	d.monorepo.commits[base.Commit] = earlier
	var entries []store.Entry
	for path, unit := range d.state.Units {
		for target := range unit.Targets {
			bundle, err := base.Bundle(path, target)
			f.must(err)
			unit.Targets[target].Runs = string(approval.WorkOf(approval.Remaining(bundle)))
			for _, o := range bundle.Objects {
				e := entryOf(object.UnitTarget{Unit: path, Target: target}, o)
				e.UID = f.uid()
				entries = append(entries, e)
				f.live[clusterObject{target.Cluster(), o.ID}] = o.Digest
			}
		}
	}
	f.must(s.Update(t.Context(), func(tx *store.Tx) error { return tx.Confirm(entries) }))
	for _, c := range base.Repository.Clusters {
		d.surveys.known[c.Name] = store.ClusterState{Name: c.Name, Survey: store.Known}
	}
	return f
}

func (f *fleetOf) uid() string {
	f.uids++
	return fmt.Sprintf("uid-%d", f.uids)
}

// run makes passes until nothing happens any more.
func (f *fleetOf) run() {
	passes := 0
	for calm := 0; calm < 4; calm++ {
		f.now = f.now.Add(20 * time.Minute)
		for written, acted := 0, true; acted; { // until nothing is due at this time
			if passes++; passes > 600 {
				f.Fatalf("no rest; at last it did %v", f.last)
			}
			if written, acted = f.pass(); written > 0 {
				calm = -1
			}
		}
	}
}

// pass is one of the daemon, with how much it wrote and whether it did anything.
func (f *fleetOf) pass() (written int, acted bool) {
	p := &pass{Daemon: f.d, r: &Record{At: f.now}}
	judge := p.withhold
	if f.unjudged {
		judge = func() error { return nil }
	}
	f.must(p.store(f.Context(), []func() error{p.loadApprovals, judge, p.decide, p.prepare, p.writeAhead, p.guard, p.save}))
	plan, jobs := p.plan, p.jobs
	for _, tr := range plan.Transitions {
		if tr.Kind == "departed" {
			f.forgotten(tr.Unit, tr.Target)
		}
	}
	f.last = plan.Actions
	for _, j := range jobs {
		written += f.do(j)
	}
	for _, j := range jobs {
		f.d.executor.Drop([]*executor.Job{j})
	}
	p = &pass{Daemon: f.d, r: &Record{At: f.now}, in: observation{jobs: jobs}}
	f.must(p.store(f.Context(), p.last()))
	return written, len(jobs) > 0
}

// approve has somebody approve deletions.
func (f *fleetOf) approve(digest object.Digest) {
	f.must(approveIn(f.Context(), f.d.Store.(*store.Store), digest, f.now))
}

// approveIn approves a plan as another process does.
func approveIn(ctx context.Context, s *store.Store, digest object.Digest, now time.Time) error {
	other := s.Beside()
	return errors.Join(other.Update(ctx, func(tx *store.Tx) error { return tx.Approve(digest, "ada", now) }), other.Close())
}

func (f *fleetOf) forgotten(path config.UnitPath, target config.TargetName) {
	entries, err := f.d.Store.Inventory(path, target)
	f.must(err)
	for id := range entries {
		f.did[placed(object.UnitTarget{Unit: path, Target: target}, id)] = diff.Forgotten
	}
}

// do is what a cluster makes of a job.
func (f *fleetOf) do(j *executor.Job) (written int) {
	if j.Outcome.Result != "" {
		return 0
	}
	switch j.Kind {
	case rollout.Apply:
		if f.finds(j) {
			j.Ended(rollout.Waiting, "objects are there")
			j.Outcome.Event = object.Upgrade
			return 1
		}
		if why := f.refuses[j.Unit]; why != "" && j.Why == rollout.WhyRollout {
			j.Ended(rollout.Refused, why)
			return 0
		}
		for _, o := range j.Sends() {
			e := entryOf(j.Place(), o)
			if e.UID = j.Inventory[o.ID].UID; e.UID == "" {
				e.UID = f.uid()
			}
			j.Confirmed = append(j.Confirmed, e)
			key := clusterObject{j.Cluster, o.ID}
			if was, there := f.live[key]; !there {
				f.did[placed(j.Place(), o.ID)] = diff.Created
			} else if was != o.Digest {
				f.did[placed(j.Place(), o.ID)] = diff.Configured
			}
			if f.live[key] != o.Digest {
				f.live[key] = o.Digest
				written++
			}
		}
		j.Ended(rollout.Applied, "")
		return written + 1
	case rollout.Check:
		if j.Ends != "" {
			j.Ended(rollout.Unhealthy, j.Ends)
			return 0
		}
		j.Ended(rollout.Healthy, "")
		if j.Prune {
			j.Outcome.Pruned = f.prune(j)
			written = len(j.Deleted)
		}
	case rollout.Remove:
		if f.prune(j) {
			j.Ended(rollout.Removed, "")
		} else {
			j.Ended(rollout.Deferred, "something is left")
		}
		written = len(j.Deleted)
	}
	return written
}

// finds says that objects are there although the state knows the job for an install.
func (f *fleetOf) finds(j *executor.Job) bool {
	return j.Look && j.Event == object.Install && slices.ContainsFunc(executor.Landmarks(j.Bundle), func(o *object.Object) bool {
		return f.live[clusterObject{j.Cluster, o.ID}] != ""
	})
}

func (f *fleetOf) prune(j *executor.Job) bool {
	for _, e := range j.Prunable {
		j.Forgotten = append(j.Forgotten, e)
		if e.ID.IsSystem() {
			f.did[placed(j.Place(), e.ID)] = diff.Released
			continue
		}
		j.Deleted = append(j.Deleted, e)
		f.did[placed(j.Place(), e.ID)] = diff.Deleted
		delete(f.live, clusterObject{j.Cluster, e.ID})
	}
	for _, e := range j.Kept {
		j.Forgotten = append(j.Forgotten, e)
		f.did[placed(j.Place(), e.ID)] = diff.Released
	}
	for _, h := range j.Moved {
		j.Forgotten = append(j.Forgotten, h.Entry)
	}
	j.Released = j.Moved
	return len(j.Held)+len(j.Left) == 0
}

// predicted is a report by target and object. Of units that are withheld, nothing
// happens before the approval but what is forgotten; of those that stay as they are,
// nothing after it either.
func predicted(head *render.Snapshot, r *diff.Report, plan *Forecast, now time.Time, approved bool) map[string]diff.Action {
	all := map[string]diff.Action{}
	for p, action := range predictedAt(head, r, plan, now, approved) {
		all[placed(p.UnitTarget, p.id)] = action
	}
	return all
}

func predictedAt(head *render.Snapshot, r *diff.Report, plan *Forecast, now time.Time, approved bool) map[placement]diff.Action {
	among := func(list []diff.Kept, at object.UnitTarget) bool {
		return slices.ContainsFunc(list, func(k diff.Kept) bool {
			return k.Unit == at.Unit && (len(k.Targets) == 0 || slices.Contains(k.Targets, at.Target))
		})
	}
	all := map[placement]diff.Action{}
	for _, c := range r.Changes {
		for i, target := range c.Targets {
			at, id, action := object.UnitTarget{Unit: c.Unit, Target: target}, c.IDs[i], c.Action
			if action == diff.Moved { // its marks are written
				action = diff.Configured
			}
			switch {
			case action != diff.Forgotten && waits(plan, at, now):
				continue
			case action == diff.Held && approved && !among(r.Kept, at) && ownership.Blocking(head, ownership.Broken(head), c.Unit) == "":
				action = diff.Deleted
			case action == diff.Held, action == diff.Skipped, action == diff.Left,
				!approved && among(r.Withheld, at) && action != diff.Forgotten:
				continue
			}
			all[placement{at, id}] = action
		}
	}
	return all
}

// comesTo is a forecast, a line for each unit.
func comesTo(plan *Forecast) string {
	var text strings.Builder
	for _, u := range plan.Units {
		fmt.Fprintf(&text, "\n%s %s", u.Unit, u.Goes)
		for _, w := range u.Waves {
			fmt.Fprintf(&text, "; %s from %s: %v %v", w.Wave, w.From.Format(time.TimeOnly), w.Targets, w.Holds)
		}
		fmt.Fprintf(&text, "; left: %s", u.Left)
	}
	for _, s := range plan.Stays {
		fmt.Fprintf(&text, "\n%s stays: %s", s.Unit, s.Why)
	}
	return text.String()
}

// leftOf is what a daemon says of units that are not done, a line for each.
func leftOf(d *Daemon) string {
	var text strings.Builder
	for _, path := range d.state.Paths(d.monorepo.wanted) {
		if why := d.state.Left(path, d.monorepo.wanted); why != "" {
			fmt.Fprintf(&text, "\n%s in the end: %s", path, why)
		}
	}
	return text.String()
}

// waits says that the forecast has the unit not written on the target by now.
func waits(plan *Forecast, unitTarget object.UnitTarget, now time.Time) bool {
	if slices.ContainsFunc(plan.Stays, func(s Staying) bool { return s.Unit == unitTarget.Unit }) {
		return true
	}
	i := slices.IndexFunc(plan.Units, func(u UnitForecast) bool { return u.Unit == unitTarget.Unit })
	if i < 0 {
		return false
	}
	for _, w := range plan.Units[i].Waves {
		held := slices.ContainsFunc(w.Holds, func(h rollout.Hold) bool {
			return slices.Contains(h.Targets, unitTarget.Target) && !h.Until.Before(now)
		})
		if slices.Contains(w.Targets, unitTarget.Target) && !w.From.IsZero() && w.From.Before(now) && !held {
			return false
		}
	}
	return true
}

// TestPreviewIsWhatTheDaemonDoes: for random edits of the example monorepo, the
// daemon's own decisions make what the preview said, object by object; first
// without approval, then with all that waits approved. SWELL_EDITS=all takes all of
// rapid's edits (-rapid.checks), else it is the first thirty.
func TestPreviewIsWhatTheDaemonDoes(t *testing.T) {
	t.Parallel()
	example := exampleFiles(t)
	edited, most := 0, 30
	if os.Getenv("SWELL_EDITS") == "all" {
		most = math.MaxInt
	}
	var compiler render.Compiler
	shared := cache.Memory()
	rapid.Check(t, func(rt *rapid.T) {
		if edited++; edited > most {
			return
		}
		f := maps.Clone(example)
		base, baseTree := compiler.Snapshot("base", f.tree()), f.tree()
		for range rapid.IntRange(1, 3).Draw(rt, "edits") {
			edits[rapid.IntRange(0, len(edits)-1).Draw(rt, "edit")](rt, f)
		}
		comparePreview(rt, newFleetOf(rt, t.TempDir(), shared, base, baseTree), &compiler, base, baseTree, f)
	})
}

// TestPreviewOfWhatWaits: units that wait for one with a problem, and that delete so
// much with others that it takes approval: the preview names what is held of them.
func TestPreviewOfWhatWaits(t *testing.T) {
	t.Parallel()
	f := exampleFiles(t)
	var compiler render.Compiler
	base, baseTree := compiler.Snapshot("base", f.tree()), f.tree()
	f.replace("kinds/runtime/kind.yaml", "  - id: disruption\n    when: here", "  - id: disruption\n    when: false && here")
	f.rename("services/travel/booking", "services/search/booking") // two want the namespace
	fleet := newFleetOf(t, t.TempDir(), cache.Memory(), base, baseTree)
	report := comparePreview(t, fleet, &compiler, base, baseTree, f)
	for _, path := range []config.UnitPath{"services/search/api", "services/search/suggest"} {
		held := slices.ContainsFunc(report.Changes, func(c diff.Change) bool { return c.Unit == path && c.Action == diff.Held })
		kept := slices.ContainsFunc(report.Kept, func(k diff.Kept) bool { return k.Unit == path })
		if !held || !kept {
			t.Errorf("%s: held %v, kept %v", path, held, kept)
		}
	}
}

// comparePreview compares the preview of a commit with what the daemon makes of it.
func comparePreview(t tester, fleet *fleetOf, compiler *render.Compiler, base *render.Snapshot, baseTree config.Tree, f files) *diff.Report {
	t.Helper()
	if len(base.Problems) > 0 {
		t.Fatal(base.Problems)
	}
	compiler.Base = base.Repository
	head := compiler.Snapshot("head", f.tree())
	compiler.Base = nil // the next one is a base again
	report, plan := &diff.Report{Refused: "held"}, &Forecast{}
	if !head.Held {
		var err error
		if report, plan, err = PreviewPlan(base, head, compiler, config.DefaultGuard, rollout.Now{}, fleet.now); err != nil {
			t.Fatal(err)
		}
	}
	fleet.d.setCommit("base", baseTree)
	fleet.d.setCommit("head", f.tree())
	fleet.run()
	first := predicted(head, report, plan, fleet.now, false)
	if slices.ContainsFunc(report.Changes, func(c diff.Change) bool { return c.Action == diff.Held }) {
		// what comes after something that is held comes later
		maps.DeleteFunc(first, func(object string, _ diff.Action) bool { return fleet.did[object] == "" })
	}
	if d := cmp.Diff(first, fleet.did); d != "" {
		t.Fatalf("before approval (-said +did):\n%s%s%s", d, comesTo(plan), leftOf(fleet.d))
	}
	plans, err := fleet.d.Store.Plans()
	fleet.must(err)
	held := map[string]bool{}
	for _, p := range plans {
		for _, deletion := range p.Deletions {
			held[placed(object.UnitTarget{Unit: deletion.Unit, Target: deletion.Target}, deletion.ID)+": "+deletion.Why] = true
		}
		fleet.approve(p.Digest)
	}
	said := map[string]bool{}
	for _, c := range report.Changes {
		for i, target := range c.Targets {
			unitTarget := object.UnitTarget{Unit: c.Unit, Target: target}
			text := placed(unitTarget, c.IDs[i]) + ": " + c.Reason
			// Where a Window keeps the unit from being removed, it asks for approval afterwards.
			if c.Action == diff.Held && (held[text] || !waits(plan, unitTarget, fleet.now)) {
				said[text] = true
			}
		}
	}
	if d := cmp.Diff(said, held); d != "" {
		t.Fatalf("held (-said +did):\n%s%s", d, comesTo(plan))
	}
	fleet.run()
	if d := cmp.Diff(predicted(head, report, plan, fleet.now, true), fleet.did); d != "" {
		t.Fatalf("after approval (-said +did):\n%s%s%s", d, comesTo(plan), leftOf(fleet.d))
	}
	return report
}

// TestACanaryWithoutItsWorkload: should a release begin that nobody judged, the
// canary which has no workload any more is not healthy, however well all that is
// left of it may be. The next wave does not come, and the release is turned back.
func TestACanaryWithoutItsWorkload(t *testing.T) {
	t.Parallel()
	f := exampleFiles(t)
	var compiler render.Compiler
	shared := cache.Memory()
	base, baseTree := compiler.Snapshot("base", f.tree()), f.tree()
	f.replace("kinds/runtime/kind.yaml", "  - id: deployment\n    when: here", "  - id: deployment\n    when: false && here")
	fleet := newFleetOf(t, t.TempDir(), shared, base, baseTree)
	fleet.d.Compiler.Snapshot("base", baseTree)
	fleet.d.setCommit("head", f.tree())
	fleet.unjudged = true
	fleet.run()
	back := map[config.UnitPath]bool{}
	for path, u := range fleet.d.state.Units {
		if u.Begun(fleet.d.monorepo.wanted) && len(base.Units.Get(path).Placements) > 1 && strings.Contains(u.Rollout.Failure, "workload") {
			back[path] = true
			if u.Rollout.Status != rollout.RolledBack {
				t.Errorf("%s is %s: %s", path, u.Rollout.Status, u.Rollout.Reason)
			}
		}
	}
	if len(back) < 5 {
		t.Errorf("%d units were turned back for the workloads that they lost", len(back))
	}
	for object, action := range fleet.did {
		if unit := config.UnitPath(strings.Fields(object)[1]); back[unit] && action == diff.Deleted {
			t.Errorf("%s was deleted", object)
		}
	}
}

// TestPreviewBesideABrokenUnit: what a unit deletes may belong to one of its tenant that
// has a problem. It stays, and no plan has it, although it would take approval.
func TestPreviewBesideABrokenUnit(t *testing.T) {
	t.Parallel()
	f := exampleFiles(t)
	var compiler render.Compiler
	base, baseTree := compiler.Snapshot("base", f.tree()), f.tree()
	f.drop("services/search/indexer")
	f.replace("services/search/swell.yaml", "region: [sas, vla", "region: [sas") // suggest renders to nothing
	report := comparePreview(t, newFleetOf(t, t.TempDir(), cache.Memory(), base, baseTree), &compiler, base, baseTree, f)
	if !slices.ContainsFunc(report.Changes, func(c diff.Change) bool {
		return c.Unit == "services/search/space" && c.Action == diff.Left && strings.Contains(c.Reason, "services/search/suggest")
	}) {
		t.Errorf("what space deletes is not left: %+v", report.Changes)
	}
}

// TestPreviewOfHooks: it says which hooks the daemon runs, at an install and at an upgrade.
func TestPreviewOfHooks(t *testing.T) {
	t.Parallel()
	f := exampleFiles(t)
	write := func(unit, tag string) {
		ns := "hooks-" + unit
		text := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + ns + "}\n---\n" +
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: " + ns + "}\ndata: {tag: \"" + tag + "\"}\n"
		for _, hook := range []string{"before", "before-install", "after-upgrade"} {
			text += "---\napiVersion: batch/v1\nkind: Job\n" +
				"metadata: {name: " + hook + ", namespace: " + ns + ", annotations: {swell.sh/hook: " + hook + "}}\n" +
				"spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: \"example.com/x:" + tag + "\"}]}}}\n"
		}
		f["services/platform/"+unit+"/objects.yaml"] = text
	}
	write("old", "1")
	write("renamed", "1")
	var compiler render.Compiler
	base, baseTree := compiler.Snapshot("base", f.tree()), f.tree()
	fleet := newFleetOf(t, t.TempDir(), cache.Memory(), base, baseTree)
	write("old", "2")
	write("new", "1")
	f.rename("services/platform/renamed", "services/platform/other")
	report := comparePreview(t, fleet, &compiler, base, baseTree, f)
	var skipped []string
	for _, c := range report.Changes {
		if c.Action == diff.Skipped {
			skipped = append(skipped, string(c.Unit)+" "+c.Object+": "+c.Reason)
		}
	}
	want := []string{
		"services/platform/new Job/hooks-new/after-upgrade: it is a hook of upgrades, and this is an install",
		"services/platform/old Job/hooks-old/before-install: it is a hook of installs, and this is an upgrade",
		"services/platform/other Job/hooks-renamed/before-install: it is a hook of installs, and this is an upgrade",
	}
	if d := cmp.Diff(want, skipped); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// onCanaries are Defaults of a unit that is on the canaries alone.
const onCanaries = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: extra}\n" +
	"spec: {placement: {match: {labels: {ring: canary}}}}\n"

// TestPreviewOfHowUnitsAre: a preview that is told how the fleet is says of the units that it changes
// how they are and what a merge does there, and the daemon does that.
func TestPreviewOfHowUnitsAre(t *testing.T) {
	t.Parallel()
	const cart, spec = config.UnitPath("services/shop/cart"), "services/shop/cart/runtime.yaml"
	f := exampleFiles(t)
	shared := cache.Memory()
	compiler := render.Compiler{Cache: shared}
	good, goodTree := compiler.Snapshot("good", f.tree()), f.tree()
	fleet := newFleetOf(t, t.TempDir(), shared, good, goodTree)
	fleet.refuses = map[config.UnitPath]string{cart: "no such image"}
	take := func(commit config.Commit, tree config.Tree) map[string]diff.Action {
		clear(fleet.did)
		fleet.d.setCommit(commit, tree)
		fleet.run()
		maps.DeleteFunc(fleet.did, func(object string, _ diff.Action) bool { return !strings.Contains(object, string(cart)+" ") })
		return fleet.did
	}
	preview := func(base, head *render.Snapshot) (*diff.Report, *Forecast) {
		t.Helper()
		live, err := fleet.d.Live()
		fleet.must(err)
		report, plan, err := PreviewPlan(base, head, &compiler, config.DefaultGuard, live, fleet.now)
		fleet.must(err)
		return report, plan
	}
	now := func(report *diff.Report) string { return strings.Join(report.NowLines(), "\n") }

	f.replace(spec, "cart:1.4.2", "cart:1.5.0")
	failing, failingTree := compiler.Snapshot("failing", f.tree()), f.tree()
	fleet.d.Compiler.Snapshot("good", goodTree)
	take("failing", failingTree)
	fleet.refuses = nil

	f.replace(spec, "cart:1.5.0", "cart:1.5.1")
	mended, mendedTree := compiler.Snapshot("mended", f.tree()), f.tree()
	compiler.Snapshot("failing", failingTree)
	report, _ := preview(failing, compiler.Snapshot("mended", mendedTree))
	want := "services/shop/cart: now rolled back: wave canary: target sas-1/rz00a: no such image; " +
		"swell retry services/shop/cart tries it again. " +
		"4 of 4 targets do not have what the base brought: a release brings that, too. A merge begins a release of it, from the first wave"
	if d := cmp.Diff(want, now(report)); d != "" || len(report.Kept) > 0 ||
		!strings.HasSuffix(report.Summary(), "; 1 unit rolled back now") {
		t.Errorf("of what mends it (-want +got): %s; kept %v, %s", d, report.Kept, report.Summary())
	}
	if did := take("mended", mendedTree); len(did) == 0 {
		t.Error("what mends it was not released")
	}

	// The same once more: it is in quarantine.
	compiler.Snapshot("mended", mendedTree)
	report, plan := preview(mended, compiler.Snapshot("failing", failingTree))
	if len(plan.Units) > 0 {
		t.Errorf("what failed before is released: %+v", plan.Units)
	}
	const nothing = "services/shop/cart: now quarantined: A merge releases nothing of it: bundle "
	if !strings.Contains(now(report), nothing) || len(report.Changes) > 0 || len(report.Kept) != 1 || !report.Kept[0].Wholly() {
		t.Errorf("of what failed before: %q, %d changes, kept %v", now(report), len(report.Changes), report.Kept)
	}
	if did := take("failing", failingTree); len(did) > 0 {
		t.Errorf("what failed before was released: %v", did)
	}

	// A freeze is one of the orders, and no state of a unit.
	take("mended", mendedTree)
	freeze := order.Order{Seq: 1, Verb: order.Freeze, By: "ada", Scope: order.Scope{Unit: cart}, At: fleet.now}
	freeze.Until = fleet.now.Add(48 * time.Hour)
	fleet.d.orders.standing = order.Standing{freeze}
	fleet.d.monorepo.wanted.Order(fleet.d.orders.standing)
	f.replace(spec, "cart:1.5.1", "cart:1.6.0")
	compiler.Snapshot("mended", mendedTree)
	report, plan = preview(mended, compiler.Snapshot("newer", f.tree()))
	frozen := "services/shop/cart: now frozen: frozen by ada (4 targets: sas-1/rz00a, sas-1/rz01a, " +
		"vla-1/rz10a, vla-1/rz11a). A merge begins a release of it, which writes nothing before " + freeze.Until.Format("Jan 2 15:04 MST")
	if d := cmp.Diff(frozen, now(report)); d != "" {
		t.Error(d)
	}
	if len(plan.Units) != 1 || len(plan.Units[0].Waves[0].Holds) != 1 ||
		plan.Units[0].Waves[0].Holds[0].Kind != rollout.HeldByFreeze {
		t.Errorf("of a unit that is frozen: %q, %+v", now(report), plan.Units)
	}
	if len(report.Changes) == 0 {
		t.Error("a freeze hides changes")
	}

	// Why a target does not answer is nobody's business on a pull request.
	fleet.d.orders.standing = nil
	cluster := fleet.d.state.Units[cart].Targets["vla-1/rz10a"]
	cluster.Trouble, cluster.Reason = rollout.TroubleUnreachable, "dial tcp 10.0.0.1:6443: connection refused"
	compiler.Snapshot("mended", mendedTree)
	report, _ = preview(mended, compiler.Snapshot("newer", f.tree()))
	const silent = "services/shop/cart: now unreachable: target vla-1/rz10a: swell status says why. A merge begins a release of it, " +
		"from the first wave"
	if d := cmp.Diff(silent, now(report)); d != "" {
		t.Error(d)
	}

	// The daemon has the kubeconfig of no cluster, so what comes to one would wait.
	f["services/shop/extra/objects.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: shop-rz00a}\n"
	f["services/shop/extra/swell.yaml"] = onCanaries
	compiler.Snapshot("mended", mendedTree)
	report, _ = preview(mended, compiler.Snapshot("extra", f.tree()))
	if clusters := report.Unreached(); len(clusters) != 1 || clusters[0].Cluster != "sas-1" || clusters[0].Units != 1 {
		t.Errorf("without kubeconfigs: %+v", report.Joining)
	}
}

// TestPreviewOfRulesOfTheBase: what a commit lets in is held for it by the rules that there were, and
// released with the next commit, whatever that is about. The preview of the first shows it, that of the second
// says that it comes, and the daemon does so.
func TestPreviewOfRulesOfTheBase(t *testing.T) {
	t.Parallel()
	const extra = "services/shop/extra"
	f := exampleFiles(t)
	f[extra+"/swell.yaml"] = onCanaries
	f[extra+"/objects.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: shop-rz00a}\n"
	shared := cache.Memory()
	compiler := render.Compiler{Cache: shared}
	good, goodTree := compiler.Snapshot("good", f.tree()), f.tree()
	fleet := newFleetOf(t, t.TempDir(), shared, good, goodTree)
	take := func(commit config.Commit, tree config.Tree) map[string]diff.Action {
		clear(fleet.did)
		fleet.d.setCommit(commit, tree)
		fleet.run()
		return maps.Clone(fleet.did)
	}
	take("good", goodTree)

	f.replace("swell.yaml", "spec:\n", "spec:\n  checks: {plainSecrets: pass}\n")
	f[extra+"/token.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: shop-rz00a}\n" +
		"stringData: {token: abcdefgh}\n"
	loose := f.tree()
	compiler.Base = good.Repository
	head := compiler.Snapshot("loose", loose)
	report, err := Preview(good, head, &compiler, config.DefaultGuard)
	fleet.must(err)
	if len(report.Unknown) != 1 || report.Unknown[0] != extra {
		t.Fatalf("not compared: %v, %v", report.Unknown, head.Problems)
	}
	compiler.Base = nil
	later, err := PreviewLater(good, head, compiler.Accepted("loose", loose), &compiler, config.DefaultGuard)
	fleet.must(err)
	if did := take("loose", loose); len(did) > 0 {
		t.Errorf("it was released: %v", did)
	}

	f["README.md"] = "a commit of somebody else\n"
	compiler.Base = good.Repository
	base := compiler.Accepted("loose", loose)
	compiler.Base = base.Repository
	live, err := fleet.d.Live()
	fleet.must(err)
	report, _, err = PreviewPlan(base, compiler.Snapshot("next", f.tree()), &compiler, config.DefaultGuard, live, fleet.now)
	fleet.must(err)
	lines := report.NowLines()
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "services/shop/extra: now blocked: ") ||
		!strings.HasSuffix(lines[0], "A merge begins a release of it, from the first wave") {
		t.Errorf("of the next commit: %q", lines)
	}
	foretold := predicted(head, later, &Forecast{}, fleet.now, true)
	if d := cmp.Diff(foretold, take("next", f.tree())); d != "" || len(foretold) == 0 {
		t.Errorf("(-said +did):\n%s", d)
	}
}
