// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// TakeOver asks what taking over the objects of the work would change, and changes
// nothing. It is a [Cluster.Preview] of a work that may take what belongs to others, in
// which marks of ownership count for nothing: swell's own and those that other tools
// leave. [Preview.Owner] and [Preview.Stays] are set as well. Of a Secret only metadata
// is read: it changes where somebody else holds one of its fields with another value, or
// nobody holds it yet.
func (c *Cluster) TakeOver(ctx context.Context, work Work) []Preview {
	work.Adopt = config.AdoptTake
	return c.preview(ctx, &previewing{call: c.begin(), Work: work, taking: true})
}

// owned fills in whose a live object is, and what stays of what it has. meta is what the
// server would store. isDefault says whether a field is as the server sets it by itself.
func (p *previewing) owned(o *object.Object, b *body, live, applied *metav1.PartialObjectMetadata, r *Preview, isDefault func(fieldpath.Path) bool) {
	if ownEntry(live) != nil && p.othersRepository(live) == "" {
		return // also where somebody took our label away
	}
	info := p.liveInfoOf(o.ID, live)
	r.Owner = info.by()
	marks := b.ownMarks(live)
	paths := slices.DeleteFunc(b.orphans(info.tool, applied), func(path fieldpath.Path) bool {
		text := fieldText(path)
		return marks[text] || text == namespaceNameLabel || isStringData(o, path)
	})
	if len(paths) > 0 {
		r.Stays = fieldTexts(slices.DeleteFunc(paths, isDefault))
	}
}

// namespaceNameLabel is on each namespace, from the server.
const namespaceNameLabel = `.metadata.labels["kubernetes.io/metadata.name"]`

// defaulted says of the fields of a live object whether they are as the server would set
// them on a new one of the same content; of none where it takes no new one. It asks the
// server once, by a dry run under another name.
func (p *previewing) defaulted(ctx context.Context, o *object.Object, b *body, path string, live *unstructured.Unstructured) func(fieldpath.Path) bool {
	fresh := sync.OnceValue(func() map[string]any {
		root := maps.Clone(b.root)
		metadata := maps.Clone(metadataOf(root))
		name := "swell-dry-run-" + o.Digest.Short()
		metadata["name"], root["metadata"] = name, metadata
		text, err := json.Marshal(root)
		if err != nil {
			return nil
		}
		made, err := p.tryApply(ctx, "preview", o, text, strings.TrimSuffix(path, "/"+o.ID.Name)+"/"+name)
		if err != nil {
			return nil
		}
		return made.Object
	})
	return func(path fieldpath.Path) bool {
		was, there := valueAt(live.Object, path)
		is, set := valueAt(fresh(), path)
		return there && set && reflect.DeepEqual(was, is)
	}
}

// valueAt is what a path of managed fields leads to in a decoded object.
func valueAt(object map[string]any, path fieldpath.Path) (value any, there bool) {
	value = object
	for _, element := range path {
		if _, value = childOf(value, element); value == nil {
			return nil, false
		}
	}
	return value, true
}

// isSecretDefault knows the one field of a Secret that the server sets, whose value nobody
// reads.
func isSecretDefault(path fieldpath.Path) bool { return fieldText(path) == ".type" }

// isStringData says whether a path is that of a Secret's stringData: those who apply it hold
// that in place of the data that the server makes of it.
func isStringData(o *object.Object, path fieldpath.Path) bool {
	return o.ID.IsSecret() && len(path) > 0 && path[0].FieldName != nil && *path[0].FieldName == "stringData"
}

// takeSecret is about a Secret that is taken over.
func (p *previewing) takeSecret(ctx context.Context, o *object.Object, b *body, live, applied *metav1.PartialObjectMetadata, path string, r *Preview) error {
	r.Action = Unchanged
	marks := b.ownMarks(live)
	others := fieldpath.NewSet()
	for i := range live.ManagedFields {
		others = others.Union(fieldsOf(&live.ManagedFields[i]))
	}
	fieldsOf(ownEntry(applied)).Leaves().Difference(others).Iterate(func(path fieldpath.Path) {
		if marks[fieldText(path)] {
			return
		}
		r.Action = Configured
		others.Leaves().Iterate(func(path fieldpath.Path) {
			if isStringData(o, path) {
				r.Unproved = "its values were applied as stringData and cannot be compared"
			}
		})
	})
	req := dryRun("preview", o, b.text, path)
	req.query, req.once = applyQuery+"&dryRun=All", true
	_, _, err := p.meta(ctx, req)
	conflicts := conflictsOf(err)
	if err != nil && len(conflicts) == 0 {
		return err
	}
	for _, c := range conflicts {
		if !marks[c.Field] {
			r.Action = Configured
		}
	}
	return nil
}

// ownMarks are the fields by which swell marks the object, as texts of managed fields.
func (b *body) ownMarks(live *metav1.PartialObjectMetadata) map[string]bool {
	marks := map[string]bool{}
	for _, p := range b.markPointers(live, nil) {
		marks[fieldText(fieldpath.MakePathOrDie(p[0], p[1], p[2]))] = true
	}
	return marks
}

// markPointers lead to the marks of ownership, swell's and the tool's.
func (b *body) markPointers(live *metav1.PartialObjectMetadata, tool *tool) (pointers []pointer) {
	labels, annotations := b.marks(tool)
	if b.labels[config.LabelManagedBy] == config.ManagedBy {
		labels = append(labels, config.LabelManagedBy)
	}
	labels = append(labels, ownKeys(b.labels, live.Labels)...)
	annotations = append(annotations, ownKeys(b.annotations, live.Annotations)...)
	for _, key := range labels {
		pointers = append(pointers, pointer{"metadata", "labels", key})
	}
	for _, key := range annotations {
		pointers = append(pointers, pointer{"metadata", "annotations", key})
	}
	return pointers
}

// ownKeys are the keys of swell among labels or annotations.
func ownKeys(all ...map[string]string) (keys []string) {
	for _, texts := range all {
		for key := range texts {
			if strings.HasPrefix(key, config.KeyPrefix) && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// unmark leaves the marks out of an object. Labels or annotations of which nothing else is
// left go as a whole.
func unmark(o *unstructured.Unstructured, marks []pointer) {
	leave(o, marks)
	if len(o.GetLabels()) == 0 {
		o.SetLabels(nil)
	}
	if len(o.GetAnnotations()) == 0 {
		o.SetAnnotations(nil)
	}
}

// Claimed is an object that another tool says is its own.
type Claimed struct {
	ID      object.ID
	Release string // of the tool: Flux Kustomization flux-system/apps
}

// Claims lists what the releases of other tools have in the cluster, of all kinds that the
// cluster serves but those that controllers make by themselves, by metadata alone. unknown
// and err are as those of [Cluster.Survey].
func (c *Cluster) Claims(ctx context.Context, releases map[string]bool) (claims []Claimed, unknown []string, err error) {
	return eachKind(ctx, c, func(s *surveying, gvk schema.GroupVersionKind) ([]Claimed, error) {
		if madeByControllers[gvk.GroupKind()] {
			return nil, nil
		}
		var found []Claimed
		err := s.each(ctx, gvk, "", "", func(live *metav1.PartialObjectMetadata) {
			id := object.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: live.Namespace, Name: live.Name}
			if _, release := claim(id, live); releases[release] && metav1.GetControllerOf(live) == nil {
				found = append(found, Claimed{id, release})
			}
		})
		return found, err
	}, func(a, b Claimed) int { return a.ID.Compare(b.ID) })
}

// madeByControllers are kinds of which there are many and whose objects no release has.
var madeByControllers = map[schema.GroupKind]bool{
	{Kind: "Pod"}: true, {Kind: "Event"}: true, {Kind: "Endpoints"}: true, {Kind: "Node"}: true, {Kind: "ComponentStatus"}: true,
	{Group: "events.k8s.io", Kind: "Event"}: true, {Group: "apps", Kind: "ReplicaSet"}: true, {Group: "apps", Kind: "ControllerRevision"}: true,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: true, {Group: "coordination.k8s.io", Kind: "Lease"}: true,
	{Group: "metrics.k8s.io", Kind: "PodMetrics"}: true, {Group: "metrics.k8s.io", Kind: "NodeMetrics"}: true,
}
