// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// tool is another deployment tool, as it can be told from an object's metadata.
type tool struct {
	// release is by what the tool claims the object, "Helm release shop/cart";
	// empty when it does not.
	release func(object.ID, *metav1.PartialObjectMetadata) string
	// labels and annotations are the claim itself, and what goes with it.
	labels, annotations []string
	// managers under which it writes, by their beginnings.
	managers []string
}

// tools by what they document:
//
//   - Flux: fluxcd.io/flux/components/{kustomize,helm}: labels with name and
//     namespace of the Kustomization or the HelmRelease. A HelmRelease's objects
//     have Helm's annotations too, so Flux comes first.
//   - Argo CD: argo-cd.readthedocs.io/en/stable/user-guide/resource_tracking: an
//     annotation "app:group/Kind:namespace/name", which does not count on an
//     object of another name; by an older method a label, whose name may be
//     configured. The default name is used by everybody, so there it takes a
//     field manager of Argo CD besides.
//   - Helm: helm.sh/docs/topics/charts_tips_and_tricks: annotations with name and
//     namespace of the release.
//   - kapp: carvel.dev/kapp/docs/latest/apply: a label with the app's number.
//   - Config Sync: docs.cloud.google.com/kubernetes-engine/config-sync/docs/
//     reference/labels-and-annotations.
var tools = []tool{
	{
		release:  named("Flux Kustomization", "kustomize.toolkit.fluxcd.io/namespace", "kustomize.toolkit.fluxcd.io/name", labelsOf),
		labels:   []string{"kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace"},
		managers: []string{"kustomize-controller"},
	},
	{
		release:     named("Flux HelmRelease", "helm.toolkit.fluxcd.io/namespace", "helm.toolkit.fluxcd.io/name", labelsOf),
		labels:      []string{"helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace"},
		annotations: []string{"meta.helm.sh/release-name", "meta.helm.sh/release-namespace"},
		managers:    []string{"helm-controller", "helm"},
	},
	{
		release:     argoApplication,
		labels:      []string{argoLabel},
		annotations: []string{argoTracking, "argocd.argoproj.io/installation-id"},
		managers:    []string{argoManagers},
	},
	{
		release:     named("Helm release", "meta.helm.sh/release-namespace", "meta.helm.sh/release-name", annotationsOf),
		annotations: []string{"meta.helm.sh/release-name", "meta.helm.sh/release-namespace"},
		managers:    []string{"helm"},
	},
	{
		release:     named("kapp app", "", "kapp.k14s.io/app", labelsOf),
		labels:      []string{"kapp.k14s.io/app", "kapp.k14s.io/association"},
		annotations: []string{"kapp.k14s.io/identity", "kapp.k14s.io/original", "kapp.k14s.io/original-diff-md5"},
		managers:    []string{"kapp"},
	},
	{
		release: configSync,
		labels:  []string{"configsync.gke.io/declared-version"},
		annotations: []string{
			"configmanagement.gke.io/managed", "configmanagement.gke.io/source-path", "configmanagement.gke.io/cluster-name",
			"configmanagement.gke.io/token", "configsync.gke.io/resource-id", "configsync.gke.io/manager",
			"configsync.gke.io/declared-fields", "configsync.gke.io/git-context",
		},
		managers: []string{"configsync", "configmanagement"},
	},
}

// claim is the tool that says an object is its own, and the release; nil when
// none does.
func claim(id object.ID, meta *metav1.PartialObjectMetadata) (*tool, string) {
	for i := range tools {
		if release := tools[i].release(id, meta); release != "" {
			return &tools[i], release
		}
	}
	return nil, ""
}

// claimedSince names the tool that claimed an object after swell applied it; empty when
// none did. A claim that swell wrote itself, because it stands in Git, is none: a
// take-over removes all others.
func claimedSince(id object.ID, live *metav1.PartialObjectMetadata) string {
	tool, release := claim(id, live)
	if tool == nil {
		return ""
	}
	own := rawFields(ownEntry(live))
	keys := slices.Concat(present(tool.labels, live.Labels), present(tool.annotations, live.Annotations))
	if len(keys) == 0 {
		keys = []string{commonInstance} // by which it is known beside a manager of the tool
	}
	for _, key := range keys {
		if !strings.Contains(own, `"f:`+key+`"`) {
			return release
		}
	}
	return ""
}

// present are the keys that are there.
func present(keys []string, texts map[string]string) (there []string) {
	for _, key := range keys {
		if _, ok := texts[key]; ok {
			there = append(there, key)
		}
	}
	return there
}

// othersRepository names the monorepo that an object that swell applied is from, when
// it is not ours; empty when they say nothing.
func (c *connection) othersRepository(live *metav1.PartialObjectMetadata) string {
	if live.Labels[config.LabelRepository] == "" || c.isOurs(live.Labels) || ownEntry(live) == nil {
		return ""
	}
	return "swell, from the monorepo " + live.Labels[config.LabelRepository]
}

func labelsOf(meta *metav1.PartialObjectMetadata) map[string]string      { return meta.Labels }
func annotationsOf(meta *metav1.PartialObjectMetadata) map[string]string { return meta.Annotations }

// named is a release with the name, and the namespace where it has one, in the
// given keys.
func named(what, namespace, name string, in func(*metav1.PartialObjectMetadata) map[string]string) func(object.ID, *metav1.PartialObjectMetadata) string {
	return func(_ object.ID, meta *metav1.PartialObjectMetadata) string {
		values := in(meta)
		if values[name] == "" {
			return ""
		}
		return what + " " + join(values[namespace], values[name])
	}
}

func join(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

const (
	kubectlManagers = "kubectl" // what their names begin with
	// managerBefore is what the server calls whoever wrote before it kept managers.
	managerBefore = "before-first-apply"
)

const (
	argoTracking = "argocd.argoproj.io/tracking-id"
	argoLabel    = "argocd.argoproj.io/instance"
	argoManagers = "argocd-"
	// commonInstance is a label of Kubernetes' own, by which Argo CD tracked at first.
	commonInstance = "app.kubernetes.io/instance"
)

func argoApplication(id object.ID, meta *metav1.PartialObjectMetadata) string {
	app := ""
	if own := ":" + id.Group + "/" + id.Kind + ":" + id.Namespace + "/" + id.Name; strings.HasSuffix(meta.Annotations[argoTracking], own) {
		app = strings.TrimSuffix(meta.Annotations[argoTracking], own)
	}
	if app == "" {
		app = meta.Labels[argoLabel]
	}
	if app == "" && writes(meta, argoManagers) {
		app = meta.Labels[commonInstance]
	}
	if app == "" {
		return ""
	}
	return "Argo CD application " + app
}

// writes says whether a manager with that beginning holds fields.
func writes(meta *metav1.PartialObjectMetadata, manager string) bool {
	for _, e := range meta.ManagedFields {
		if strings.HasPrefix(e.Manager, manager) {
			return true
		}
	}
	return false
}

// configSync knows an object by an annotation that says so, and leaves it when
// another one, which newer versions do not write, names another object.
func configSync(id object.ID, meta *metav1.PartialObjectMetadata) string {
	if meta.Annotations["configmanagement.gke.io/managed"] != "enabled" {
		return ""
	}
	own := strings.Join([]string{id.Group, strings.ToLower(id.Kind), id.Namespace, id.Name}, "_")
	if id.Namespace == "" {
		own = strings.Join([]string{id.Group, strings.ToLower(id.Kind), id.Name}, "_")
	}
	if named := meta.Annotations["configsync.gke.io/resource-id"]; named != "" && named != own {
		return ""
	}
	if manager := meta.Annotations["configsync.gke.io/manager"]; manager != "" {
		return "Config Sync " + manager
	}
	return "Config Sync"
}

// fieldManagers are those that a take-over removes: the tool's, kubectl's, and
// the one that the server makes up for an object from before it kept managers.
func (t *tool) fieldManagers() []ssa.FieldManager {
	names := []string{kubectlManagers}
	if t != nil {
		names = append(names, t.managers...)
	}
	var all []ssa.FieldManager
	for _, op := range []metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate} {
		for _, name := range names {
			all = append(all, ssa.FieldManager{Name: name, OperationType: op})
		}
	}
	return append(all, ssa.FieldManager{Name: managerBefore, ExactMatch: true, OperationType: metav1.ManagedFieldsOperationUpdate})
}
