// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Annotations of Helm.
const (
	annotationHook   = "helm.sh/hook"
	annotationWeight = "helm.sh/hook-weight"
	annotationKeep   = "helm.sh/resource-policy"
)

// hook is when an object of a chart is applied by Helm.
type hook struct {
	when   object.Hook // empty for no hook
	weight int
	drop   string // why the object is left out; empty: it is not
}

// known are the hooks of Helm.
var known = []string{"pre-install", "post-install", "pre-delete", "post-delete", "pre-upgrade", "post-upgrade", "pre-rollback", "post-rollback", "test", "test-success"}

// hookOf reads the annotations. Helm ignores an object with a hook that it does not know.
func hookOf(manifest map[string]any) hook {
	metadata, _ := manifest["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, there := annotations[annotationHook].(string)
	if !there {
		return hook{}
	}
	weight, _ := annotations[annotationWeight].(string)
	h := hook{}
	h.weight, _ = strconv.Atoi(weight) // Helm takes another text for zero
	events, unknown := map[string]bool{}, false
	for event := range strings.SplitSeq(text, ",") {
		event = strings.ToLower(strings.TrimSpace(event))
		events[event] = true
		unknown = unknown || !slices.Contains(known, event)
	}
	h.when = whenOf(events)
	switch {
	case unknown:
		h.when, h.drop = "", strings.Join(slices.Sorted(maps.Keys(events)), ", ")
	case h.when != "":
	case events["test"] || events["test-success"]:
		h.drop = "test"
	default:
		h.drop = strings.Join(slices.Sorted(maps.Keys(events)), ", ")
	}
	return h
}

// whenOf returns the hook of swell for events of Helm; none where swell has no such moment.
func whenOf(events map[string]bool) object.Hook {
	moment := func(event string) string {
		switch {
		case events["pre-"+event]:
			return "before"
		case events["post-"+event]:
			return "after"
		}
		return ""
	}
	switch install, upgrade := moment("install"), moment("upgrade"); {
	case install == "" && upgrade == "" && events["pre-delete"]:
		return object.HookBeforeDelete
	case install == upgrade:
		return object.Hook(install)
	case upgrade == "":
		return object.Hook(install + "-install")
	case install == "":
		return object.Hook(upgrade + "-upgrade")
	case install == "before":
		return object.HookInstallUpgrade
	}
	return object.HookUpgradeInstall
}

// runsBefore says whether the hook runs before the other objects for some event, and
// runsAfter whether it runs after them for some.
func (h hook) runsBefore() bool { return h.runs(object.HookBefore) }
func (h hook) runsAfter() bool  { return h.runs(object.HookAfter) }

func (h hook) runs(moment object.Hook) bool {
	return h.when.During(object.Install) == moment || h.when.During(object.Upgrade) == moment
}

// IsDropped says whether the object is left out, see [Place].
func (o *Object) IsDropped() bool {
	var object map[string]any
	return !o.OfCRDs && json.Unmarshal(o.JSON, &object) == nil && hookOf(object).drop != ""
}

// Placed is an object with the annotations by which swell applies it as Helm would.
type Placed struct {
	Index  int // in the list that was placed
	Object map[string]any
}

// Marks are what tells the object from one that another list of objects has: the annotations
// that [Place] may give it.
func (p *Placed) Marks() string {
	metadata, _ := p.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return fmt.Sprint(annotations[config.AnnotationHook], annotations[config.AnnotationPhase], annotations[config.AnnotationPrune])
}

// Dropped is an object that Helm would not apply, or only where swell does nothing.
type Dropped struct {
	Index int
	Why   string // the hooks that it is for
}

// Place tells what the hooks of a chart's objects are to swell. Jobs that Helm runs before
// or after the others are hooks of swell. Objects of other kinds that hooks need are plain
// objects. Weights become phases: what Helm waits for is in an earlier phase, and hooks that
// run before go with the phase that follows. A Job that Helm runs before the others for one
// event and after them for another goes with the objects that are no hooks, whatever its
// weight. from tells of each object where it is from.
func Place(objects []map[string]any, from []Object) (placed []Placed, dropped []Dropped) {
	hooks := make([]hook, len(objects))
	var before, after []int
	for i, object := range objects {
		if !from[i].OfCRDs {
			hooks[i] = hookOf(object)
		}
		switch {
		case hooks[i].drop != "":
			dropped = append(dropped, Dropped{i, hooks[i].drop})
		case hooks[i].runsBefore():
			before = append(before, i)
		case hooks[i].runsAfter() && isJob(object):
			after = append(after, i)
		}
	}
	byWeight := func(a, b int) int {
		return cmp.Or(cmp.Compare(hooks[a].weight, hooks[b].weight), compareBool(isJob(objects[a]), isJob(objects[b])))
	}
	slices.SortStableFunc(before, byWeight)
	slices.SortStableFunc(after, byWeight)
	phases := make([]int, len(objects))
	// The weight of the jobs of this phase, and whether it has other objects: definitions of
	// the folder crds are first of all.
	phase, ran, stood := 0, 0, slices.ContainsFunc(from, func(o Object) bool { return o.OfCRDs })
	jobs := false
	for _, i := range before {
		if !isJob(objects[i]) {
			stood = true
		} else if stood || jobs && hooks[i].weight != ran {
			phase, stood, jobs = phase+1, false, true
		} else {
			jobs = true
		}
		ran, phases[i] = hooks[i].weight, phase
	}
	main := phase
	for n, i := range after {
		if n > 0 && hooks[i].weight != hooks[after[n-1]].weight {
			phase++
		}
		phases[i] = phase
	}
	for i, object := range objects {
		if hooks[i].drop != "" {
			continue
		}
		if hooks[i].isMain(object) && !from[i].OfCRDs {
			phases[i] = main
		}
		placed = append(placed, Placed{i, annotated(object, hooks[i], phases[i])})
	}
	return placed, dropped
}

// isMain says whether the object of the hook goes with those that are no hooks.
func (h hook) isMain(object map[string]any) bool {
	if !h.runsBefore() {
		return !h.runsAfter() || !isJob(object)
	}
	return h.runsAfter() && isJob(object)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func isJob(object map[string]any) bool {
	return object["kind"] == "Job" && object["apiVersion"] == "batch/v1"
}

// annotated is the object with what swell is to know of it. What the chart says to swell
// itself stays.
func annotated(object map[string]any, h hook, phase int) map[string]any {
	set := map[string]any{}
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if h.when != "" && isJob(object) {
		set[config.AnnotationHook] = string(h.when)
	}
	if phase > 0 {
		set[config.AnnotationPhase] = strconv.Itoa(phase)
	}
	if keep, _ := annotations[annotationKeep].(string); strings.EqualFold(strings.TrimSpace(keep), "keep") {
		set[config.AnnotationPrune] = config.PruneDisabled
	}
	if len(set) == 0 {
		return object
	}
	maps.Copy(set, annotations)
	object, metadata = maps.Clone(object), maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["annotations"], object["metadata"] = set, metadata
	return object
}
