// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// # The number of replicas
//
// Git says it, an autoscaler sets it, and people do with kubectl scale, the latter two
// through the scale subresource.
//
//   - Where something scales the object, the live number holds: the one of Git is not in
//     force, and when it leaves Git, because the scaler comes, the number stays.
//   - Where nothing does, a number that was set through the scale subresource stands until
//     Git says another one.
//
// The server does not always say who set a number: where it was set to zero once, the field
// belongs to nobody from then on. So one that was ours, and is nobody's, was scaled.

var (
	replicasPointer = pointer{"spec", "replicas"}
	replicasPath    = fieldpath.MakePathOrDie("spec", "replicas")
)

// isScalable says whether objects of the kind have their replicas set through the scale
// subresource. Of custom kinds it is not known.
func isScalable(id object.ID) bool {
	switch id.Kind {
	case "Deployment", "StatefulSet", "ReplicaSet":
		return id.Group == "apps"
	case "ReplicationController":
		return id.Group == ""
	}
	return false
}

// noReplicas is the number of an object that says none.
const noReplicas = "none"

// replicasOf is the number that a decoded object says, as an entry notes it; empty for a
// kind that is not scalable.
func replicasOf(id object.ID, root map[string]any) string {
	if !isScalable(id) {
		return ""
	}
	spec, _ := root["spec"].(map[string]any)
	if n, ok := spec["replicas"].(json.Number); ok {
		return n.String()
	}
	return noReplicas
}

// isReplicasOrphaned says whether the number of replicas is nobody's.
func isReplicasOrphaned(live *metav1.PartialObjectMetadata) bool {
	for i := range live.ManagedFields {
		e := &live.ManagedFields[i]
		if fields, err := parseFields(rawFields(e)); e.Subresource != "status" && (err != nil || fields.Has(replicasPath)) {
			return false
		}
	}
	return true
}

// scaling says how the number of replicas of an object that is there already is sent.
type scaling struct {
	left     []pointer // not to be sent
	released []pointer // not to be sent either, and to be let go of where it is ours
	gitWins  bool      // what was set through the scale subresource is overwritten
	by       string    // what scales the object
}

// note tells of a number of Git that is not in force.
func (s scaling) note() []store.Change {
	if len(s.left) == 0 {
		return nil
	}
	by := s.by
	if by == "" {
		by = store.UnknownManager
	}
	return []store.Change{{Field: ".spec.replicas", Manager: by, Subresource: scaleSubresource}}
}

// scaling finds that out. fields are ours of the object with the UID.
func (s *sending) scaling(ctx context.Context, uid types.UID, fields string) (scaling, error) {
	number, before := replicasOf(s.o.ID, s.root), s.r.Entry.Replicas
	if number == "" || s.r.Entry.UID == "" {
		return scaling{}, nil
	}
	own, err := parseFields(fields)
	if err != nil {
		own = fieldpath.NewSet()
	}
	replicas := []pointer{replicasPointer}
	switch ours := own.Has(replicasPath); {
	case number == noReplicas:
		if !ours || s.scaler(ctx) == "" {
			return scaling{}, nil
		}
		return scaling{released: replicas}, nil
	case before != "" && before != number:
		if by := s.scaler(ctx); by != "" {
			return scaling{left: replicas, released: replicas, by: by}, nil
		}
		return scaling{gitWins: true}, nil
	case before == number && !ours:
		return scaling{left: replicas}, nil
	}
	meta, err := s.liveMeta(ctx, s.o)
	switch {
	case isGone(err, s.o.ID.Name):
		return scaling{}, nil
	case err != nil:
		return scaling{}, err
	case meta.UID == uid && isReplicasOrphaned(meta):
		return scaling{left: replicas}, nil
	}
	return scaling{}, nil
}

// unknownScaler stands for what the server does not tell of.
const unknownScaler = "maybe an autoscaler"

// emptied says that somebody scaled a workload to nothing of which Git wants pods. It is as ready as it is wanted, and
// does no work: it is no proof of a release. Empty: it is not so, or an autoscaler may have done it.
func (c *call) emptied(ctx context.Context, work *Work, o *object.Object, live *unstructured.Unstructured) string {
	n, found, err := unstructured.NestedInt64(live.Object, "spec", "replicas")
	if err != nil || !found || n != 0 || !isScalable(o.ID) {
		return ""
	}
	root, err := decodeObject(o.JSON)
	if err != nil {
		return ""
	}
	wants := replicasOf(o.ID, root)
	if wants == noReplicas || wants == "0" || c.scalerOf(ctx, work, o.ID) != "" {
		return ""
	}
	return fmt.Sprintf("scaled to 0 by hand, Git says %s: scale it up, change Git, or mask the target", wants)
}

func (s *sending) scaler(ctx context.Context) string { return s.scalerOf(ctx, &s.Work, s.o.ID) }

// scalerOf is what scales the object, empty for nothing: an autoscaler of the bundle, or one
// that is there and that the bundle does not take away.
func (c *call) scalerOf(ctx context.Context, work *Work, scaled object.ID) string {
	bundle := map[string]bool{}
	for _, o := range work.Objects {
		if o.ID.Namespace != scaled.Namespace || !o.ID.IsScaler() {
			continue
		}
		if root, err := decodeObject(o.JSON); err == nil && scales(root, scaled) {
			return o.ID.String()
		}
		bundle[o.ID.Name] = true
	}
	var list struct {
		metav1.TypeMeta `json:",inline"`
		Items           []map[string]any `json:"items"`
	}
	path := "/apis/autoscaling/v2/namespaces/" + scaled.Namespace + "/horizontalpodautoscalers"
	err := c.getJSON(ctx, "HorizontalPodAutoscalerList", &request{op: "list", object: "HorizontalPodAutoscaler", path: path}, &list)
	if err != nil && !isPathMissing(err) {
		return unknownScaler
	}
	for _, item := range list.Items {
		name, _ := metadataOf(item)["name"].(string)
		id := object.ID{Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Namespace: scaled.Namespace, Name: name}
		if _, ours := work.Known[id]; scales(item, scaled) && (bundle[name] || !ours) {
			return id.String()
		}
	}
	return ""
}

// scales says whether a decoded autoscaler is for the object.
func scales(scaler map[string]any, id object.ID) bool {
	scaled := object.ScaledBy(scaler, id.Namespace)
	return scaled.Kind == id.Kind && scaled.Name == id.Name
}
