// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
)

// immutable are fields of kinds that API servers refuse to change once they are set.
type immutable struct {
	// below are the paths of fields, each with all that it has. A path begins all paths that go
	// on with a dot or a bracket.
	below []string
	// but are fields among these that may change.
	but []string
	// whole has a field that is only there before, or only after, count as well: nothing puts
	// a default in its place.
	whole bool
}

// immutables are those of Kubernetes' own kinds. Where an API server decides by what it put
// into the object itself, nothing is said of a field: it is better to be silent than wrong.
// TestImmutableTexts and TestMutable of package apply hold them against a real server.
var immutables = map[schema.GroupKind][]immutable{
	{Group: "apps", Kind: "Deployment"}:  {{below: []string{"spec.selector"}, whole: true}},
	{Group: "apps", Kind: "ReplicaSet"}:  {{below: []string{"spec.selector"}, whole: true}},
	{Group: "apps", Kind: "DaemonSet"}:   {{below: []string{"spec.selector"}, whole: true}},
	{Group: "apps", Kind: "StatefulSet"}: {{below: []string{"spec.selector"}, whole: true}, {below: []string{"spec.serviceName", "spec.podManagementPolicy", "spec.volumeClaimTemplates"}}},
	{Group: "batch", Kind: "Job"}: {{below: []string{"spec.template", "spec.selector", "spec.completionMode", "spec.podFailurePolicy", "spec.backoffLimitPerIndex"},
		// Those of a Job that is suspended may change.
		but: []string{"spec.template.metadata", "spec.template.spec.nodeSelector", "spec.template.spec.affinity", "spec.template.spec.tolerations", "spec.template.spec.schedulingGates", "spec.template.spec.containers"}},
		{below: []string{"spec.template.spec.containers"}, but: []string{"*.resources"}}},
	{Kind: "Service"}:                                                 {{below: []string{"spec.clusterIP"}}},
	{Kind: "Pod"}:                                                     {{below: []string{"spec.containers", "spec.initContainers", "spec.volumes", "spec.serviceAccountName"}, but: []string{"*.image"}}},
	{Kind: "PersistentVolumeClaim"}:                                   {{below: []string{"spec.storageClassName", "spec.accessModes", "spec.volumeMode", "spec.volumeName", "spec.selector", "spec.dataSource", "spec.dataSourceRef"}}},
	{Kind: "PersistentVolume"}:                                        {{below: []string{"spec.nfs", "spec.csi", "spec.local", "spec.hostPath", "spec.iscsi", "spec.fc", "spec.volumeMode"}}},
	rbac("RoleBinding"):                                               {{below: []string{"roleRef"}}},
	rbac("ClusterRoleBinding"):                                        {{below: []string{"roleRef"}}},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                   {{below: []string{"provisioner", "reclaimPolicy", "volumeBindingMode"}}, {below: []string{"parameters"}, whole: true}},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:               {{below: []string{"value", "preemptionPolicy"}}},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                      {{below: []string{"handler"}}},
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                {{below: []string{"spec.controller"}}},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:                {{below: []string{"addressType"}}},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {{below: []string{"spec.scope"}}},
	{Kind: "Secret"}:                                                  {{below: []string{"type"}}},
}

// marked are the fields of ConfigMaps and Secrets with immutable: true.
var marked = immutable{below: []string{"data", "binaryData", "stringData"}, whole: true}

func rbac(kind string) schema.GroupKind {
	return schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: kind}
}

// Immutable says whether API servers refuse to change a field of the  path is as
// package diff has it, such as spec.containers[name=main].image; both says that the field is
// there before and after the change.
func (o *Object) Immutable(path string, both bool) bool {
	if o.Hook() != "" { // it is made anew, or may be gone
		return false
	}
	of := immutables[schema.GroupKind{Group: o.ID.Group, Kind: o.ID.Kind}]
	if config.MaySecret(o.ID.Kind) || o.ID.Group == "" && o.ID.Kind == "ConfigMap" {
		if bytes.Contains(o.JSON, []byte(`"immutable":true`)) {
			of = append(slices.Clip(of), marked)
		}
	}
	return slices.ContainsFunc(of, func(i immutable) bool { return i.has(path, both) })
}

func (i *immutable) has(path string, both bool) bool {
	if !both && !i.whole && !strings.HasSuffix(path, "]") { // else it is an item of a list
		return false
	}
	return slices.ContainsFunc(i.below, func(at string) bool { return isBelow(path, at) }) &&
		!slices.ContainsFunc(i.but, func(at string) bool {
			if field, any := strings.CutPrefix(at, "*"); any {
				return strings.HasSuffix(path, field) || strings.Contains(path, field+".")
			}
			return isBelow(path, at)
		})
}

func isBelow(path, at string) bool {
	rest, ok := strings.CutPrefix(path, at)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// NotOfUnit is why an object is not deleted to make it anew that another unit, or somebody
// else, has in the cluster.
const NotOfUnit = "it is not one that this unit applied"

// KeptLive says why an object that has these annotations in the cluster must not be deleted to
// make it anew, although Git allows that; empty when it may be. whenDeleted is the field
// spec.persistentVolumeClaimRetentionPolicy.whenDeleted of a StatefulSet.
func KeptLive(annotations map[string]string, whenDeleted string) string {
	switch {
	case annotations[config.AnnotationPrune] == config.PruneDisabled:
		return "it is kept by the annotation " + config.AnnotationPrune + ": " + config.PruneDisabled
	case annotations[config.AnnotationDeletion] == config.DeletionDetach:
		return "it is kept by the annotation " + config.AnnotationDeletion + ": " + config.DeletionDetach
	case whenDeleted == "Delete":
		return "its claims would be deleted with it, by spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Delete"
	}
	return ""
}

// KeptLive is [KeptLive] of an object that is in the cluster as it is here.
func (o *Object) KeptLive() string {
	var live struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Retention struct {
				WhenDeleted string `json:"whenDeleted"`
			} `json:"persistentVolumeClaimRetentionPolicy"`
		} `json:"spec"`
	}
	_ = json.Unmarshal(o.JSON, &live) // a kind with another spec has no such field
	return KeptLive(live.Metadata.Annotations, live.Spec.Retention.WhenDeleted)
}

// NeverReplaced says why an object must not be deleted to make it anew, however much Git
// allows it; empty when it may be.
func (id ID) NeverReplaced() string {
	if id.IsContainer() {
		return "all that is in it would be lost"
	}
	switch (schema.GroupKind{Group: id.Group, Kind: id.Kind}) {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Kind: "PersistentVolume"}:
		return "its data would be lost"
	case schema.GroupKind{Kind: "Secret"}:
		// Its values are never read, so it could not be put back.
		return "a Secret could not be put back if that goes wrong"
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return "the server takes it under no other name, so it cannot be tried out first"
	}
	return ""
}
