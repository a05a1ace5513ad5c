// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package diff compares two snapshots and gives the changes of a commit, with equal
// changes on several targets shown once.
package diff

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/sops"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
)

// Action is what happens to an object.
type Action string

const (
	Created    Action = "created"
	Configured Action = "configured"
	// Moved: another unit had it, and nothing changes but the marks that say which unit has it.
	Moved Action = "moved"
	// Refused: a field changes that API servers let nobody change.
	Refused Action = "refused"
	// Replaced: it is deleted and made anew, because of such a field.
	Replaced Action = "replaced"
	Deleted  Action = "deleted"
	// Held: it is deleted after its approval.
	Held Action = "held"
	// Released: it stays in the cluster and leaves the inventory.
	Released Action = "released"
	// Forgotten: it stays in a cluster that left the fleet.
	Forgotten Action = "forgotten"
	// Left: it stays for now, because it is not known yet which unit wants it.
	Left Action = "left"
	// Skipped: it is a hook that does not run at this release.
	Skipped Action = "skipped"
)

// Outlook says what the daemon makes of a difference. A nil function adds nothing.
type Outlook struct {
	// Kept says why all that a unit has stays as it is.
	Kept func(config.UnitPath) string
	// Forgotten says that the cluster of a target left the fleet: what units have there
	// is forgotten, also of a unit of which nothing else is taken.
	Forgotten func(object.UnitTarget) bool
	// Stays says why what a unit has on a target stays as it is.
	Stays func(object.UnitTarget) string
	// Had says whether the bundle of base ever came to the target.
	Had func(object.UnitTarget) bool
	// Was is the object as another bundle of base has it in the same cluster, and
	// that bundle; nil where none does.
	Was func(object.UnitTarget, object.ID) (*object.Object, object.UnitTarget)
	// Gone says what becomes of an object that head's bundle does not have, and why;
	// no action where another bundle takes it over.
	Gone func(object.UnitTarget, *object.Object) (Action, string)
	// Along says what happens to the objects in a Namespace, or of a definition, that is deleted.
	Along func(object.UnitTarget, *object.Object) string
	// Skips says why a hook of head's bundle does not run.
	Skips func(object.UnitTarget, *object.Object) string
	// Withheld says why nothing of a unit is written to a target before deletions are
	// approved.
	Withheld func(object.UnitTarget) string

	// knows says whether base has images of a registry; nil where there is no base.
	knows func(registry string) bool
	// hosts are the host names of base and of head; nil where there is no base.
	hosts *hostNames
}

// Change is one object of a unit that changes in the same way on some targets.
type Change struct {
	Unit   config.UnitPath `json:"unit"`
	Action Action          `json:"action"`
	// Object is named without its namespace where that differs from target to
	// target: "Deployment/*/cart".
	Object string `json:"object"`
	// Targets are sorted; never empty.
	Targets []config.TargetName `json:"targets"`
	// IDs are the objects, by the index of their target.
	IDs []object.ID `json:"-"`
	// Reason for an action that is not what Git alone would make of it.
	Reason string `json:"reason,omitempty"`
	// Along says what happens to the objects in a Namespace, or of a definition, that is deleted: a
	// sentence without a dot. It is empty for all others.
	Along string `json:"along,omitempty"`
	// Fields that change, sorted by path; empty unless configured, refused or replaced.
	Fields []Field `json:"fields,omitempty"`
	// Content is what the first target's object is created with, without its name and the marks of
	// swell, and Variants what others have instead; empty unless created.
	Content  map[string]any `json:"content,omitempty"`
	Variants []Variant      `json:"variants,omitempty"`
	// Risks are for a person to look at first.
	Risks []Risk `json:"risks,omitempty"`
	// Restart is set where pods are made anew.
	Restart *Restart `json:"restart,omitempty"`
}

// Field is one field that changes. From or To is nil where the field is not
// there. The values of a Secret are replaced by what is left to say of them.
type Field struct {
	Path string `json:"path"`
	From any    `json:"from"`
	To   any    `json:"to"`
}

// Report is all that changes from one snapshot to another.
type Report struct {
	// Changes are sorted by unit, object, action and targets.
	Changes []Change `json:"changes"`
	// Unknown are units that could not be compared, because head has a problem with them,
	// and Mended those because base has one; sorted.
	Unknown []config.UnitPath `json:"unknown,omitempty"`
	Mended  []config.UnitPath `json:"mended,omitempty"`
	// Kept are units, or units on some targets, that stay as they are although head
	// has something else of them, sorted.
	Kept []Kept `json:"kept,omitempty"`
	// Withheld are units, or units on some targets, of which nothing is written before
	// somebody has approved what they, or units that they need, delete; sorted.
	Withheld []Kept `json:"withheld,omitempty"`
	// Now are units that head has something else of and that are not as base wants them at the
	// moment; sorted. Empty where nobody knows how the fleet is.
	Now []Now `json:"now,omitempty"`
	// Joining are clusters in which units that head places there would wait, sorted by name.
	Joining []Joining `json:"joining,omitempty"`
	// Later is what head changes in units that have problems by the rules of base alone: it is released
	// with the next commit. Nil: nothing.
	Later *Report `json:"later,omitempty"`
	// LeftOut are files and folders where units are that nothing comes of in head, as far as
	// head has changed that or them; sorted.
	LeftOut []config.LeftOut `json:"leftOut,omitempty"`
	// Idle are names and selectors in documents of the fleet that match nothing any more in
	// head, a line each; sorted.
	Idle []string `json:"idle,omitempty"`
	// Refused says why nothing at all is taken from head.
	Refused string `json:"refused,omitempty"`
}

// IsNothing says that there is nothing to tell of units that were compared.
func (r *Report) IsNothing() bool {
	return len(r.Changes)+len(r.Kept)+len(r.Withheld)+len(r.Mended)+len(r.Now)+len(r.Joining)+len(r.LeftOut)+len(r.Idle) == 0
}

// Joining is a cluster in which units would wait that head places there.
type Joining struct {
	Cluster string `json:"cluster"`
	Units   int    `json:"units"`
	// Unreached says that the daemon does not know how to reach it. Else nobody knows whether it does.
	Unreached bool `json:"unreached,omitempty"`
}

// Text says what waits there, and what to do.
func (j *Joining) Text() string {
	units := document.Count(j.Units, "unit")
	if j.Unreached {
		return fmt.Sprintf("cluster %s: the daemon's configuration does not say how to reach it, and the change places %s there, "+
			"which would wait: give the daemon its kubeconfig first", j.Cluster, units)
	}
	return fmt.Sprintf("cluster %s: it is new, and the change places %s there, which wait until the daemon has its kubeconfig",
		j.Cluster, units)
}

// Only returns the part of the report about the changes of some units; nil where there are none.
func (r *Report) Only(units map[config.UnitPath]bool) *Report {
	others := func(k Kept) bool { return !units[k.Unit] }
	part := &Report{Changes: slices.DeleteFunc(slices.Clone(r.Changes), func(c Change) bool { return !units[c.Unit] }),
		Kept: slices.DeleteFunc(slices.Clone(r.Kept), others), Withheld: slices.DeleteFunc(slices.Clone(r.Withheld), others)}
	if part.IsNothing() {
		return nil
	}
	return part
}

// Units are those that the report tells of, sorted.
func (r *Report) Units() (units []config.UnitPath) {
	for _, c := range r.Changes {
		units = append(units, c.Unit)
	}
	for _, k := range slices.Concat(r.Kept, r.Withheld) {
		units = append(units, k.Unit)
	}
	for _, now := range r.Now {
		units = append(units, now.Unit)
	}
	units = slices.Concat(units, r.Unknown, r.Mended)
	slices.Sort(units)
	return slices.Compact(units)
}

// Now is how a unit is at the moment, and what a release of head does there.
type Now struct {
	Unit   config.UnitPath `json:"unit"`
	Status string          `json:"status"` // a word or two: "held"
	Text   string          `json:"text"`   // sentences
}

// Kept is a unit that stays as it is, and why.
type Kept struct {
	Unit config.UnitPath `json:"unit"`
	// Targets that it is so on; empty: all.
	Targets []config.TargetName `json:"targets,omitempty"`
	Reason  string              `json:"reason"`
}

// Wholly says whether the unit is so on all targets.
func (k Kept) Wholly() bool { return len(k.Targets) == 0 }

// Compare tells what is different in head, and what the daemon makes of it. The
// error is that the objects of a unit could not be had.
func Compare(base, head *render.Snapshot, outlook Outlook) (*Report, error) {
	report := &Report{Changes: []Change{}, LeftOut: head.LeftOutAnew(base), Idle: head.IdleAnew(base)}
	sorted := worthComparing(base, head)
	parts := make([]Report, len(sorted))
	outlook.knows, outlook.hosts = registries(base), newHostNames(base, head)
	outlook = outlook.oneAtATime()
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, path := range sorted {
		was, is := base.Units.Get(path), head.Units.Get(path)
		switch part := &parts[i]; {
		case is != nil && len(is.Problems) > 0:
			part.Unknown = []config.UnitPath{path}
			group.Go(func() error { return part.forget(path, base, outlook) })
		case was != nil && len(was.Problems) > 0:
			part.Mended = []config.UnitPath{path}
			group.Go(func() error { return part.forget(path, base, outlook) })
		case !sameBundles(was, is):
			group.Go(func() error { return part.unit(path, base, head, outlook) })
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range parts {
		report.add(&parts[i])
	}
	return report, nil
}

// worthComparing are the units that are not the very same in both, and those with a problem;
// sorted.
func worthComparing(base, head *render.Snapshot) []config.UnitPath {
	paths := slices.Collect(base.Units.Differing(head.Units))
	for path, unit := range base.Units.All() {
		if len(unit.Problems) > 0 {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// add adds what is known of another unit.
func (r *Report) add(part *Report) {
	r.Changes = append(r.Changes, part.Changes...)
	r.Unknown = append(r.Unknown, part.Unknown...)
	r.Mended = append(r.Mended, part.Mended...)
	r.Kept = append(r.Kept, part.Kept...)
	r.Withheld = append(r.Withheld, part.Withheld...)
}

// oneAtATime is the same for several goroutines: what is asked of the daemon may be kept in
// mind there.
func (o Outlook) oneAtATime() Outlook {
	var mu sync.Mutex
	locked := func() func() {
		mu.Lock()
		return mu.Unlock
	}
	if ask := o.knows; ask != nil {
		o.knows = func(registry string) bool { defer locked()(); return ask(registry) }
	}
	if ask := o.Kept; ask != nil {
		o.Kept = func(path config.UnitPath) string { defer locked()(); return ask(path) }
	}
	if ask := o.Forgotten; ask != nil {
		o.Forgotten = func(at object.UnitTarget) bool { defer locked()(); return ask(at) }
	}
	if ask := o.Stays; ask != nil {
		o.Stays = func(at object.UnitTarget) string { defer locked()(); return ask(at) }
	}
	if ask := o.Had; ask != nil {
		o.Had = func(at object.UnitTarget) bool { defer locked()(); return ask(at) }
	}
	if ask := o.Was; ask != nil {
		o.Was = func(at object.UnitTarget, id object.ID) (*object.Object, object.UnitTarget) {
			defer locked()()
			return ask(at, id)
		}
	}
	if ask := o.Gone; ask != nil {
		o.Gone = func(at object.UnitTarget, is *object.Object) (Action, string) { defer locked()(); return ask(at, is) }
	}
	if ask := o.Along; ask != nil {
		o.Along = func(target object.UnitTarget, container *object.Object) string {
			defer locked()()
			return ask(target, container)
		}
	}
	if ask := o.Skips; ask != nil {
		o.Skips = func(target object.UnitTarget, hook *object.Object) string { defer locked()(); return ask(target, hook) }
	}
	if ask := o.Withheld; ask != nil {
		o.Withheld = func(at object.UnitTarget) string { defer locked()(); return ask(at) }
	}
	return o
}

// unit compares a unit that differs.
func (r *Report) unit(path config.UnitPath, base, head *render.Snapshot, outlook Outlook) error {
	if outlook.Kept != nil {
		if why := outlook.Kept(path); why != "" {
			r.Kept = append(r.Kept, Kept{Unit: path, Reason: why})
			return r.forget(path, base, outlook)
		}
	}
	before, err := base.BundlesByTarget(path)
	if err != nil {
		return err
	}
	after, err := head.BundlesByTarget(path)
	if err != nil {
		return err
	}
	kept, held := outlook.leave(path, before, after)
	r.Kept = append(r.Kept, kept...)
	changes := outlook.unit(path, before, after)
	r.Withheld = append(r.Withheld, outlook.wait(path, changes)...)
	changes = append(changes, held...)
	slices.SortFunc(changes, compareChanges)
	r.Changes = append(r.Changes, changes...)
	return nil
}

// wait says on which targets changes of a unit wait for approval.
func (o *Outlook) wait(path config.UnitPath, changes []Change) (waits []Kept) {
	if o.Withheld == nil {
		return nil
	}
	targets := map[config.TargetName]bool{}
	for _, c := range changes {
		for _, target := range c.Targets {
			targets[target] = true
		}
	}
	n := 0
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		why := o.Withheld(object.UnitTarget{Unit: path, Target: target})
		if why == "" {
			continue
		}
		n++
		if last := len(waits) - 1; last >= 0 && waits[last].Reason == why {
			waits[last].Targets = append(waits[last].Targets, target)
		} else {
			waits = append(waits, Kept{path, []config.TargetName{target}, why})
		}
	}
	if len(waits) == 1 && n == len(targets) {
		waits[0].Targets = nil
	}
	return waits
}

// forget tells what a unit has in clusters that left the fleet.
func (r *Report) forget(path config.UnitPath, base *render.Snapshot, outlook Outlook) error {
	unit := base.Units.Get(path)
	if outlook.Forgotten == nil || unit == nil || len(unit.Problems) > 0 {
		return nil
	}
	before, err := base.BundlesByTarget(path)
	if err != nil {
		return err
	}
	maps.DeleteFunc(before, func(target config.TargetName, _ *object.Bundle) bool {
		return !outlook.Forgotten(object.UnitTarget{Unit: path, Target: target})
	})
	r.Changes = append(r.Changes, outlook.unit(path, before, nil)...)
	return nil
}

// leave takes out of the bundles what stays as it is, and what never came. It returns
// what it took out although it differs, and the deletions in it that are held: they
// wait for approval too, whatever else the unit waits for.
func (o *Outlook) leave(path config.UnitPath, before, after map[config.TargetName]*object.Bundle) (kept []Kept, held []Change) {
	had, wanted := map[config.TargetName]*object.Bundle{}, map[config.TargetName]*object.Bundle{}
	targets := maps.Clone(before)
	maps.Copy(targets, after)
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		at := object.UnitTarget{Unit: path, Target: target}
		if o.Had != nil && !o.Had(at) {
			delete(before, target)
		}
		if o.Stays == nil {
			continue
		}
		why, was, is := o.Stays(at), before[target], after[target]
		if why == "" {
			continue
		}
		delete(before, target)
		delete(after, target)
		if was == nil && is == nil || was != nil && is != nil && was.Digest == is.Digest {
			continue
		}
		had[target], wanted[target] = was, is
		if last := len(kept) - 1; last >= 0 && kept[last].Reason == why {
			kept[last].Targets = append(kept[last].Targets, target)
		} else {
			kept = append(kept, Kept{path, []config.TargetName{target}, why})
		}
	}
	held = slices.DeleteFunc(o.unit(path, had, wanted), func(c Change) bool { return c.Action != Held })
	return kept, held
}

func sameBundles(was, is *render.Unit) bool {
	return was != nil && is != nil && slices.EqualFunc(was.Placements, is.Placements, func(a, b render.Placement) bool {
		return a.Target.Name == b.Target.Name && a.Digest == b.Digest
	})
}

// group gathers the targets of equal changes.
type group struct {
	change     Change
	namespaces map[string]bool
	id         object.ID
	created    created // zero unless created
}

// add takes in the change on one more target.
func (g *group) add(target config.TargetName, c *objectChange) {
	g.namespaces[c.id.Namespace] = true
	g.change.Targets = append(g.change.Targets, target)
	g.change.IDs = append(g.change.IDs, c.id)
	for _, text := range c.risks {
		i := slices.IndexFunc(g.change.Risks, func(r Risk) bool { return r.Text == text })
		if i < 0 {
			i = len(g.change.Risks)
			g.change.Risks = append(g.change.Risks, Risk{Text: text})
		}
		g.change.Risks[i].Targets = append(g.change.Risks[i].Targets, target)
	}
	if pods, isRestart := restarts(&c.change, c.object); isRestart {
		g.change.addRestart(target, pods)
	}
	if g.change.Action == Created {
		g.addContent(target, c.object)
	}
}

// Unit compares two states of one unit: its bundles by target. Bundles of the same
// digest are not looked into. The changes are sorted as in a [Report].
func Unit(path config.UnitPath, was, is map[config.TargetName]*object.Bundle) []Change {
	return (&Outlook{}).unit(path, was, is)
}

func (o *Outlook) unit(path config.UnitPath, was, is map[config.TargetName]*object.Bundle) []Change {
	groups := map[string]*group{}
	targets := map[config.TargetName]bool{}
	for _, bundles := range []map[config.TargetName]*object.Bundle{was, is} {
		for target := range bundles {
			targets[target] = true
		}
	}
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		for _, c := range o.compare(object.UnitTarget{Unit: path, Target: target}, was[target], is[target]) {
			text, err := json.Marshal(c.change.Fields)
			if err != nil {
				panic(err) // plain values encode
			}
			id := c.id
			id.Namespace = ""
			key := fmt.Sprintf("%s %s %v %s %s %s", c.change.Action, id, c.id.Namespace == "", text, c.change.Reason, c.change.Along)
			if g := groups[key]; g != nil && g.change.Targets[len(g.change.Targets)-1] == target {
				key += " " + c.id.Namespace // the same name in two namespaces of one target
			}
			g := groups[key]
			if g == nil {
				g = &group{change: c.change, namespaces: map[string]bool{}, id: c.id}
				groups[key] = g
			}
			g.add(target, &c)
		}
	}
	var changes []Change
	for _, g := range groups {
		if len(g.namespaces) > 1 {
			g.id.Namespace = "*"
		}
		g.change.Unit, g.change.Object = path, g.id.String()
		changes = append(changes, g.change)
	}
	slices.SortFunc(changes, compareChanges)
	return changes
}

func compareChanges(a, b Change) int {
	return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Action, b.Action), slices.Compare(a.Targets, b.Targets))
}

// objectChange is the change of one object on one target.
type objectChange struct {
	id     object.ID
	change Change
	object *object.Object // that is there after it; nil where none is
	risks  []string       // see [Risk]
}

func (o *Outlook) compare(at object.UnitTarget, was, is *object.Bundle) []objectChange {
	if was != nil && is != nil && was.Digest == is.Digest {
		return nil
	}
	before, after := byID(was), byID(is)
	var changes []objectChange
	for id, old := range before {
		switch object := after[id]; {
		case object == nil:
			if change := o.gone(at, old); change.Action != "" {
				changes = append(changes, objectChange{id: id, change: change})
			}
		case object.Digest != old.Digest:
			change := o.configured(at, old, object)
			change.noteScaler(id, is)
			changes = append(changes, objectChange{id, change, object, o.risks(at, old, object)})
		}
	}
	for id, object := range after {
		if before[id] == nil {
			change, old := o.created(at, object)
			changes = append(changes, objectChange{id, change, object, o.risks(at, old, object)})
		}
	}
	slices.SortFunc(changes, func(a, b objectChange) int { return a.id.Compare(b.id) })
	return changes
}

func (o *Outlook) gone(at object.UnitTarget, old *object.Object) Change {
	if o.Gone == nil {
		return Change{Action: Deleted}
	}
	action, why := o.Gone(at, old)
	c := Change{Action: action, Reason: why}
	if (action == Deleted || action == Held) && old.ID.IsContainer() && o.Along != nil {
		c.Along = o.Along(at, old)
	}
	return c
}

// skipped says that an object is a hook that does not run, and why.
func (o *Outlook) skipped(unitTarget object.UnitTarget, obj *object.Object) (c Change, skipped bool) {
	if o.Skips == nil || obj.Hook() == "" {
		return Change{}, false
	}
	why := o.Skips(unitTarget, obj)
	return Change{Action: Skipped, Reason: why}, why != ""
}

// configured is an object that is in both bundles and differs.
func (o *Outlook) configured(unitTarget object.UnitTarget, old, obj *object.Object) Change {
	if c, skipped := o.skipped(unitTarget, obj); skipped {
		return c
	}
	return changed(old, obj, "", "")
}

// created is an object that is new, or comes from another bundle: old is the one there.
func (o *Outlook) created(at object.UnitTarget, obj *object.Object) (c Change, old *object.Object) {
	if c, skipped := o.skipped(at, obj); skipped {
		return c, nil
	}
	if o.Was != nil {
		if old, from := o.Was(at, obj.ID); old != nil {
			why, stays := "comes from unit "+string(from.Unit), object.NotOfUnit
			if from.Unit == at.Unit {
				why, stays = "comes from target "+string(from.Target), ""
			}
			c := changed(old, obj, why, stays)
			if c.Fields = slices.DeleteFunc(c.Fields, isMark); c.Action == Configured && from.Unit != at.Unit && len(c.Fields) == 0 {
				c.Action = Moved
			}
			return c, old
		}
	}
	return Change{Action: Created}, nil
}

// isMark says that a field says only which unit has the object.
func isMark(f Field) bool {
	return f.Path == below("metadata.annotations", config.AnnotationUnit) || f.Path == below("metadata.labels", config.LabelUnit)
}

// changed is an object that is another one than before. stays says why the daemon would not
// delete it to make it anew, whatever the object says.
func changed(old, obj *object.Object, why, stays string) Change {
	c := Change{Action: Configured, Reason: why, Fields: Fields(old, obj)}
	var fixed []string
	for _, f := range c.Fields {
		if old.Immutable(f.Path, f.From != nil && f.To != nil) {
			fixed = append(fixed, f.Path)
		}
	}
	if len(fixed) == 0 {
		return c
	}
	what, never := document.Some(fixed, 3)+" cannot be changed", obj.ID.NeverReplaced()
	if never == "" && obj.Annotation(config.AnnotationReplace) == config.ReplaceAllowed {
		never = cmp.Or(stays, old.KeptLive())
	}
	switch {
	case never != "":
		c.Action, what = Refused, what+": revert it, or give the object a new name; it is not replaced: "+never
	case obj.Annotation(config.AnnotationReplace) == config.ReplaceAllowed:
		c.Action, what = Replaced, "deleted and made anew: "+what
	default:
		c.Action, what = Refused, what+fmt.Sprintf(": revert it, give the object a new name, or let it be deleted and made anew with the annotation %s: %s", config.AnnotationReplace, config.ReplaceAllowed)
	}
	if why != "" {
		what = why + "; " + what
	}
	c.Reason = what
	return c
}

// replicas is the field whose number is the autoscaler's where there is one.
const replicas = "spec.replicas"

// noteScaler says of a number of replicas that changes, and that an autoscaler of the bundle sets, that it is not in
// force: the daemon leaves the live one (see [object.ScaledBy]).
func (c *Change) noteScaler(id object.ID, bundle *object.Bundle) {
	if c.Action != Configured || !slices.ContainsFunc(c.Fields, func(f Field) bool { return f.Path == replicas }) {
		return
	}
	for _, o := range bundle.Objects {
		var content map[string]any
		if !o.ID.IsScaler() || json.Unmarshal(o.JSON, &content) != nil || object.ScaledBy(content, o.ID.Namespace) != id {
			continue
		}
		note := fmt.Sprintf("%s is not in force: %s %s sets the number, and the live one stays", replicas, o.ID.Kind, o.ID.Name)
		c.Reason = strings.TrimPrefix(c.Reason+"; "+note, "; ")
	}
}

func byID(b *object.Bundle) map[object.ID]*object.Object {
	if b == nil {
		return nil
	}
	objects := make(map[object.ID]*object.Object, len(b.Objects))
	for _, o := range b.Objects {
		objects[o.ID] = o
	}
	return objects
}

// Fields compares two versions of an object.
func Fields(old, obj *object.Object) []Field {
	secret := config.MaySecret(obj.ID.Kind)
	var fields []Field
	if old.Version != obj.Version {
		fields = append(fields, Field{Path: "apiVersion", From: old.APIVersion(), To: obj.APIVersion()})
	}
	c := comparer{func(path string, was, is []byte) {
		from, to := decode(was), decode(is)
		if secret && hidden(path, from, to) {
			from, to = mask(from, "(old value)"), mask(to, "(new value)")
		}
		fields = append(fields, Field{Path: path, From: from, To: to})
	}}
	c.compare("", old.JSON, obj.JSON)
	redactor, credentials := old.Redactor(obj), object.Credentials(old, obj)
	if redactor.Empty() && credentials.Empty() {
		return fields
	}
	for i, f := range fields {
		field := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
		from, to := redactor.RedactField(field, f.From), redactor.RedactField(field, f.To)
		// A live object's value may be an earlier secret, which the redactor does not know.
		if was, is := equal(from, f.From), equal(to, f.To); was && !is && from != nil {
			from = document.Redacted
		} else if is && !was && to != nil {
			to = document.Redacted
		}
		from, to = credentials.RedactField(field, from), credentials.RedactField(field, to)
		fields[i] = Field{Path: redactor.Redact(f.Path), From: from, To: to}
	}
	return fields
}

// decode is a value of canonical JSON; nil for none.
func decode(text []byte) any {
	if len(text) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(err) // it is canonical JSON of our own
	}
	return value
}

// hidden says whether the two values at a path of a Secret are not for showing.
func hidden(path string, from, to any) bool {
	if name, ok := strings.CutPrefix(path, "metadata.annotations"); ok {
		name = strings.Trim(name, `.["]`) // empty: all of them came or went
		return config.HidesAnnotation(name, from) || config.HidesAnnotation(name, to)
	}
	first := path
	if end := strings.IndexAny(path, ".["); end >= 0 {
		first = path[:end]
	}
	return first == "data" || first == "stringData"
}

// shownHash is how many bytes of a hash are shown.
const shownHash = 4

// mask hides a value, all the way down, but not that there is one. Of what sops
// encrypted it has the hash.
func mask(value any, as string) any {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		if sops.IsEncrypted(v) {
			sum := sha256.Sum256([]byte(v))
			return fmt.Sprintf("(encrypted, sha256 %x)", sum[:shownHash])
		}
	case map[string]any:
		masked := make(map[string]any, len(v))
		for key, item := range v {
			masked[key] = mask(item, as)
		}
		return masked
	}
	return as
}

func equal(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return false
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

// below is the path of a key in the mapping at a path.
func below(path, key string) string {
	switch {
	case strings.ContainsAny(key, `./[]"`):
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	}
	return path + "." + key
}
