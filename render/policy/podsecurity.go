// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"sync"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	security "k8s.io/pod-security-admission/api"
	checks "k8s.io/pod-security-admission/policy"

	"github.com/swell-sh/swell/render/schema/defaults"
)

var evaluators sync.Map // by Kubernetes minor version

// levels judge pods by Pod Security as a minor version of Kubernetes does; "" is the
// newest that is known.
func levels(kubernetes string) checks.Evaluator {
	if known, ok := evaluators.Load(kubernetes); ok {
		return known.(checks.Evaluator)
	}
	var emulated *security.Version
	if version, err := security.ParseVersion("v" + kubernetes); err == nil {
		emulated = &version
	}
	evaluator, err := checks.NewEvaluator(checks.DefaultChecks(), emulated)
	if err != nil {
		panic(err) // there is no input
	}
	evaluators.Store(kubernetes, evaluator)
	return evaluator
}

// privileged is what holds where a namespace has no labels of Pod Security.
var privileged = security.Policy{Enforce: everything, Audit: everything, Warn: everything}

var everything = security.LevelVersion{Level: security.LevelPrivileged, Version: security.LatestVersion()}

// podSecurity is what the levels of the namespace say of the pods that an object
// makes. An API server refuses the pods; a controller of them it takes with a
// warning, and its pods never come: that is refused here. Audit is not looked at.
func (r *request) podSecurity() (found []Finding) {
	path := PodPath(r.object.APIVersion, r.object.Kind)
	if !r.object.Namespaced || path == nil {
		return nil
	}
	levelsOf, wrong := security.PolicyToEvaluate(r.namespace().Labels, privileged)
	if levelsOf.Enforce.Level == security.LevelPrivileged && levelsOf.Warn.Level == security.LevelPrivileged && len(wrong) == 0 {
		return nil
	}
	metadata, spec := podOf(r.typed())
	if spec == nil {
		return nil
	}
	if spec.HostNetwork { // then a pod has more than its template
		spec = spec.DeepCopy()
		defaults.Pod(spec)
	}
	if why := forbidden(r.in.Kubernetes, levelsOf.Enforce, metadata, spec); why != "" {
		return []Finding{{Effect: Refused, Policy: PodSecurity, Message: fmt.Sprintf("%q of namespace %s: %s", levelsOf.Enforce.String(), r.object.Namespace, why), Field: path}}
	}
	if why := forbidden(r.in.Kubernetes, levelsOf.Warn, metadata, spec); why != "" {
		return []Finding{{Effect: Warned, Policy: PodSecurity, Message: fmt.Sprintf("%q of namespace %s: %s", levelsOf.Warn.String(), r.object.Namespace, why), Field: path}}
	}
	return nil
}

// PodSecurity is the name of Pod Security in findings.
const PodSecurity = "PodSecurity"

// forbidden says why a pod is not of a level, as a version of Kubernetes judges it, see [levels];
// empty when it is.
func forbidden(kubernetes string, level security.LevelVersion, metadata *metav1.ObjectMeta, spec *core.PodSpec) string {
	if level.Level == security.LevelPrivileged {
		return ""
	}
	result := checks.AggregateCheckResults(levels(kubernetes).EvaluatePod(level, metadata, spec))
	if result.Allowed {
		return ""
	}
	return result.ForbiddenDetail()
}

// PodPath is where an object of a kind has the spec of the pods that it makes; nil where it makes
// none.
func PodPath(apiVersion, kindName string) []any {
	if g := GroupOf(apiVersion); g != "" && g != "apps" && g != "batch" {
		return nil
	}
	return podPaths[kindName]
}

// OfLevel says why the pods that an object of a kind with a [PodPath] makes are not of a level of
// Pod Security, restricted or baseline, as the newest version has it; empty when they are.
func OfLevel(level, apiVersion, kindName string, content map[string]any) string {
	metadata, spec := podOf(typed(schema.FromAPIVersionAndKind(apiVersion, kindName), content))
	if spec == nil {
		return "it has a form that this version of swell does not know"
	}
	if spec.HostNetwork {
		defaults.Pod(spec)
	}
	return forbidden("", security.LevelVersion{Level: security.Level(level), Version: security.LatestVersion()}, metadata, spec)
}

// podPaths are where kinds that make pods have the spec of the pod.
var podPaths = map[string][]any{
	"Pod": {"spec"}, "PodTemplate": {"template", "spec"}, "ReplicationController": {"spec", "template", "spec"},
	"ReplicaSet": {"spec", "template", "spec"}, "Deployment": {"spec", "template", "spec"}, "DaemonSet": {"spec", "template", "spec"},
	"StatefulSet": {"spec", "template", "spec"}, "Job": {"spec", "template", "spec"}, "CronJob": {"spec", "jobTemplate", "spec", "template", "spec"},
}
