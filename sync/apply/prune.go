// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/apply/line"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/store"
)

// annotationDeletion on a live object with the value "detach" lets go of the
// object: it stays, and swell forgets it. The word is Config Sync's.
const annotationDeletion = config.AnnotationDeletion

// Prune deletes the objects of the entries; that they should go has been
// decided. It returns a result for each, by index, and goes through the phases
// in reverse, and in each from custom objects over workloads to what those need. It stops
// where something is still there: after a refusal, after somebody's change, before a
// finalizer is gone. All behind that is [Skipped], and After.
//
// Each object is looked at first, and deleted with its UID as precondition,
// only if it still is the one of the entry: same UID, our label, fields applied
// by us. An entry without a UID is an apply that may or may not have happened:
// it is deleted only if the live object also names the entry's unit. So is a Job that is
// another one than the entry's, which has no digest: a hook is made anew for each bundle, and
// whoever did it may have died before it was recorded. What is not ours is [Skipped] with a
// Reason.
//
// An object that is marked to be kept is orphaned: [Skipped] with a Reason, and
// Forget. Its label and fields stay, so that whoever wants it again finds it to be
// ours, and so does the mark, by which [Cluster.Survey] knows that nobody has to
// look after it. Where only Git had the mark, it is put back on the live object.
//
// A heavy object ([approval.WeightOf]) is deleted with its resource version as a second
// precondition: when somebody changed it since it was looked at, it is [Skipped]
// and Changed.
//
// Among the entries may be hooks that run before they are deleted
// ([object.HookBeforeDelete]). They run first; until all are complete, nothing
// is deleted, and every result is [Skipped] with the same Reason. One that failed
// has an Err.
//
// An object that waits for finalizers is [Deleted] with a Reason and must not
// be forgotten yet; pruning it again sends no second DELETE.
func (c *Cluster) Prune(ctx context.Context, entries []store.Entry) []Result {
	if held := c.hooksFirst(ctx, entries); held != nil {
		return held
	}
	results := make([]Result, len(entries))
	c.begin().pruneAll(ctx, entries, results, (*call).delete, true)
	return results
}

// CheckPrune does what [Cluster.Prune] does, except for deleting and for hooks: an
// object that it would delete is [Skipped] without a Reason.
func (c *Cluster) CheckPrune(ctx context.Context, entries []store.Entry) []Result {
	results := make([]Result, len(entries))
	c.begin().pruneAll(ctx, entries, results, func(_ *call, _ context.Context, r Result, _ string, _ *metav1.PartialObjectMetadata) Result {
		return r.kept("", false)
	}, false)
	return results
}

// remover does away with a live object that has been found to be ours.
type remover func(c *call, ctx context.Context, r Result, path string, live *metav1.PartialObjectMetadata) Result

// pruneAll goes backwards. Where it stops, what others need goes only when those are gone:
// all behind something that is still there stays, and says so. A webhook that does not
// answer is not waited for where it goes too: nobody may be left to answer.
func (c *call) pruneAll(ctx context.Context, entries []store.Entry, results []Result, remove remover, stops bool) {
	var first *Result
	for _, numbers := range backwards(entries) {
		isInterceptor := turnOf(&entries[numbers[0]]) == turnInterceptor
		if first != nil && !(isInterceptor && errors.Is(first.Err, ErrWebhook)) {
			for _, i := range numbers {
				results[i] = Result{ID: entries[i].ID, Entry: entries[i], After: true}.kept("goes after "+first.ID.String(), false)
			}
			continue
		}
		c.each(numbers, func(i int) {
			results[i] = c.ofThisCluster(ctx, entries[i], c.prune(ctx, entries[i], remove))
		})
		for _, i := range numbers {
			if r := &results[i]; stops && first == nil && r.isInTheWay() {
				first = r
			}
		}
	}
}

// isInTheWay says that the object is still there, as far as is known, so that what comes
// after it stays. A kind of others whose own server does not answer holds nobody up.
func (r *Result) isInTheWay() bool {
	if r.Err != nil {
		return isServedByKubernetes(r.ID) || !errors.Is(r.Err, ErrUnreachable)
	}
	return r.Changed || r.Action == Deleted && !r.Forget
}

// isServedByKubernetes says that the API server itself answers for the object's kind.
func isServedByKubernetes(id object.ID) bool {
	switch id.Group {
	case "", "apps", "autoscaling", "batch", "policy":
		return true
	}
	return strings.Contains(id.Group, ".") && !id.IsCustom()
}

// ofThisCluster is the result, if it comes from the cluster that the entry is of. Another
// one at its address has none of the objects, and nothing may be forgotten for that.
func (c *call) ofThisCluster(ctx context.Context, entry store.Entry, r Result) Result {
	if !r.Forget {
		return r
	}
	if err := c.sameCluster(ctx, "prune", entry.ID.String()); err != nil {
		return Result{ID: entry.ID, Entry: entry}.failed(err)
	}
	return r
}

// turn is when an object of a phase is deleted.
type turn int

const (
	turnCustom      turn = iota // while whoever looks after it is there, and may have to let it go
	turnInterceptor             // it may refuse what comes next
	turnWorkload
	turnFoundation // what workloads run with: config, accounts, claims
	turnDefinition
)

func turnOf(e *store.Entry) turn {
	switch stage := stageOf(kindOf(e.ID, e.Version)); {
	case e.ID.IsCustom():
		return turnCustom
	case stage == interceptors:
		return turnInterceptor
	case stage == foundations, e.ID.Group == "" && (e.ID.Kind == "PersistentVolumeClaim" || e.ID.Kind == "PersistentVolume"):
		return turnFoundation
	case stage == definitions:
		return turnDefinition
	}
	return turnWorkload
}

// backwards are the numbers of the entries in the order of deletion, those together that
// go at the same time: by phase, the last one first, and after all of them what goes before
// all phases when it is applied; in a phase by turn.
func backwards(entries []store.Entry) [][]int {
	const before = -1
	type step struct {
		phase int
		turn  turn
	}
	steps := map[step][]int{}
	for i := range entries {
		s := step{entries[i].Phase, turnOf(&entries[i])}
		if entries[i].ID.IsFoundation() {
			s.phase = before
		}
		steps[s] = append(steps[s], i)
	}
	ordered := slices.SortedFunc(maps.Keys(steps), func(a, b step) int {
		return cmp.Or(cmp.Compare(b.phase, a.phase), cmp.Compare(a.turn, b.turn))
	})
	all := make([][]int, 0, len(ordered))
	rank := func(i int) int { return kindRanks[entries[i].ID.Kind] }
	for _, s := range ordered {
		slices.SortStableFunc(steps[s], func(a, b int) int { return cmp.Compare(rank(b), rank(a)) })
		all = append(all, steps[s])
	}
	return all
}

// prune deletes one object, or says why not.
func (c *call) prune(ctx context.Context, entry store.Entry, remove remover) Result {
	id := entry.ID
	r := Result{ID: id, Entry: entry}
	c.replaced.Delete(id) // what it was is not put back any more
	if id.IsSystem() {
		return r.kept(SystemText, true)
	}
	var live *metav1.PartialObjectMetadata
	var path string
	err := c.addressed(ctx, c.anyResource, kindOf(id, entry.Version), func(found resource) (err error) {
		if path, err = found.path("prune", id); err == nil {
			live, err = c.getMeta(ctx, id.String(), path)
		}
		return err
	})
	switch {
	case errors.Is(err, ErrNoKind): // nothing is left of a kind's objects
		return r.deleted("its kind is not served any more", true)
	case isGone(err, id.Name):
		return r.deleted("", true)
	case err != nil:
		return r.failed(on("prune", id, err))
	}
	if r, stop := c.judge(r, live); stop {
		switch {
		case r.Reason == KeptText && !isKept(live.Annotations):
			return c.mark(ctx, r, live)
		case r.Action == Deleted && !r.Forget:
			r.Reason += c.obstacles(ctx, r.ID, path)
		}
		return r
	}
	r.Entry.UID = string(live.UID)
	return remove(c, ctx, r, path, live)
}

// judge looks at the live object for a reason not to delete it.
func (c *connection) judge(r Result, live *metav1.PartialObjectMetadata) (Result, bool) {
	ours := c.isApplied(live)
	named := ours && live.Annotations[config.AnnotationUnit] == string(r.Entry.Unit)
	switch {
	case r.Entry.UID != "" && string(live.UID) != r.Entry.UID && !(named && r.ID.IsJob() && r.Entry.Digest == ""):
		return r.kept("not ours: somebody deleted and recreated it", true), true
	case r.Entry.UID == "" && !named:
		return r.kept("not ours: it was never applied by this unit", true), true
	case c.othersRepository(live) != "":
		return r.kept("not ours: it belongs to "+c.othersRepository(live), true), true
	case claimedSince(r.ID, live) != "":
		return r.kept("not ours any more: it belongs to "+claimedSince(r.ID, live), true), true
	case isDetached(live.Annotations):
		return r.kept("orphaned by the annotation "+annotationDeletion+": detach", true), true
	case !ours:
		return r.kept(fmt.Sprintf("not deleted: it lacks the label %s or fields applied by %s, or somebody else set its label %s: delete it, or annotate it with %s: detach",
			c.ours(), FieldManager, config.LabelManagedBy, annotationDeletion), false), true
	case isKept(live.Annotations), r.Entry.Keep:
		return r.kept(KeptText, true), true
	case live.DeletionTimestamp != nil:
		return r.deleted(terminating(live), false), true
	}
	return r, false
}

// SystemText is why a namespace stays that comes with Kubernetes.
const SystemText = "a namespace of the system is never deleted"

// KeptText is why an object stays that Git or somebody said to keep.
const KeptText = "kept by the annotation " + config.AnnotationPrune + ": " + config.PruneDisabled

func isKept(annotations map[string]string) bool {
	return annotations[config.AnnotationPrune] == config.PruneDisabled
}

func isDetached(annotations map[string]string) bool {
	return annotations[annotationDeletion] == config.DeletionDetach
}

// mark puts the annotation back that Git had on an object which is orphaned.
func (c *call) mark(ctx context.Context, r Result, live *metav1.PartialObjectMetadata) Result {
	err := c.merge(ctx, "prune", r.ID, r.Entry.Version, map[string]any{
		"metadata": map[string]any{"uid": live.UID, "annotations": map[string]string{config.AnnotationPrune: config.PruneDisabled}},
	})
	if err != nil {
		r.Forget = false
		return r.failed(err)
	}
	return r
}

func (r Result) kept(reason string, forget bool) Result {
	r.Action, r.Reason, r.Forget = Skipped, reason, forget
	return r
}

// deleted: the object is gone, or on its way out. Then it is not what was applied
// any more: nobody holds it against the entry, and who wants it again sends it.
func (r Result) deleted(reason string, forget bool) Result {
	r.Action, r.Reason, r.Forget = Deleted, reason, forget
	r.Entry.Digest = ""
	return r
}

func (r Result) failed(err error) Result {
	r.Err = err
	return r
}

// terminating says what a deleted object that is still there waits for.
func terminating(live *metav1.PartialObjectMetadata) string {
	if len(live.Finalizers) == 0 {
		return "terminating"
	}
	return "terminating, waits for " + strings.Join(live.Finalizers, ", ")
}

// obstacles says in the words of a Namespace, or of a definition, that is being deleted what
// keeps it: objects that are left, a finalizer of theirs, or a server that does not answer.
// It is empty for other objects, and where nothing more is known.
func (c *call) obstacles(ctx context.Context, id object.ID, path string) string {
	if !id.IsContainer() {
		return ""
	}
	live, err := c.getObject(ctx, id, path)
	if err != nil { // only the reason is poorer
		return ""
	}
	var texts []string
	for _, name := range deletionConditions {
		if message, _ := health.Condition(live, name)["message"].(string); message != "" && health.HasCondition(live, name) {
			texts = append(texts, line.One(message))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return ": " + strings.Join(texts, "; ")
}

// deletionConditions tell how the deletion of a Namespace, or of a definition, goes on:
// https://pkg.go.dev/k8s.io/api/core/v1#NamespaceConditionType.
var deletionConditions = []string{
	"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure",
	"NamespaceContentRemaining", "NamespaceFinalizersRemaining", "Terminating",
}

func (c *call) delete(ctx context.Context, r Result, path string, live *metav1.PartialObjectMetadata) Result {
	background := metav1.DeletePropagationBackground
	preconditions := &metav1.Preconditions{UID: &live.UID}
	if approval.WeightOf(r.ID) != approval.Light {
		preconditions.ResourceVersion = &live.ResourceVersion
	}
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     preconditions,
		PropagationPolicy: &background,
	})
	if err != nil {
		return r.failed(err)
	}
	req := &request{
		op: "delete", object: r.ID.String(), method: http.MethodDelete, path: path,
		accept: acceptMeta, contentType: jsonType, body: body,
	}
	answer, err := c.do(ctx, req)
	var e *Error
	switch {
	case isGone(err, r.ID.Name):
		return r.deleted("", true)
	case errors.As(err, &e) && e.isOtherUID():
		return r.kept("not ours: somebody deleted and recreated it", true)
	case errors.As(err, &e) && e.isOtherVersion():
		r.Changed = true
		return r.kept("not deleted: somebody changed it at the same moment", false)
	case err != nil:
		return r.failed(err)
	}
	if status, err := answer.status(); err == nil && status.Status == metav1.StatusSuccess {
		return r.deleted("", true)
	}
	var left metav1.PartialObjectMetadata
	if err := answer.decode("PartialObjectMetadata", &left); err != nil {
		return r.failed(undecodable(req, answer, err))
	}
	if left.DeletionTimestamp == nil { // the last state of an object that is gone
		return r.deleted("", true)
	}
	return r.deleted(terminating(&left), false)
}
