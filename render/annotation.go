// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/policy"
)

func unknownAnnotation(key string) bool {
	return strings.HasPrefix(key, config.KeyPrefix) && !slices.Contains(config.AnnotationsInGit, key)
}

// ownMarks finds annotations and labels of swell on an easy spec, where they have no
// effect: only objects are applied. A kind that reads them may hand known ones on.
func ownMarks(doc *document.Document, easy *kind.Kind) (problems document.Problems) {
	metadata := document.Lookup(doc.Node, "metadata")
	for _, field := range []string{"annotations", "labels"} {
		n := document.Lookup(metadata, field)
		for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if !strings.HasPrefix(key.Value, config.KeyPrefix) || field == "annotations" && slices.Contains(config.AnnotationsInGit, key.Value) && easy.ReadsMetadata() {
				continue
			}
			more := ""
			if !slices.Contains(config.AnnotationsInGit, key.Value) {
				more = "; it is no annotation of swell either" + document.DidYouMean(key.Value, config.AnnotationsInGit)
			}
			problems = append(problems, doc.Problem(key, document.CodeObject,
				"metadata.%s[%q]: stands on an easy spec, where it has no effect: set it on the objects, by an override of metadata.annotations%s", field, document.Shorten(key.Value), more))
		}
	}
	return problems
}

// applying checks the annotations that say how the object is applied. An
// unknown word would have no effect.
func (d *draft) applying(id object.ID, metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	problem := func(key, format string, args ...any) {
		d.problem(document.CodeObject, []any{"metadata", "annotations", key}, format, args...)
	}
	if annotations[config.AnnotationHookRun] != nil {
		problem(config.AnnotationHookRun, "set by swell on the hooks that it runs: remove it")
	}
	if hook, there := annotations[config.AnnotationHook].(string); there {
		switch {
		case !slices.Contains(object.Hooks, hook):
			problem(config.AnnotationHook, "want one of %s, got %q", strings.Join(object.Hooks, "; "), document.Shorten(hook))
		case !id.IsJob():
			problem(config.AnnotationHook, "only a Job of batch/v1 can be a hook, this is a %s", document.Shorten(id.Kind))
		}
	}
	one := func(key string, values ...string) {
		if value, there := annotations[key].(string); there && !slices.Contains(values, value) {
			problem(key, "want %s or no annotation, got %q", strings.Join(values, ", "), document.Shorten(value))
		}
	}
	one(config.AnnotationReplace, config.ReplaceAllowed)
	one(config.AnnotationPrune, config.PruneDisabled)
	one(config.AnnotationOptional, config.OptionalTrue)
	if annotations[config.AnnotationOptional] != nil && !policy.IsAdmission(id.Group, id.Kind) {
		problem(config.AnnotationOptional, "only an admission policy and its binding have it, this is a %s", document.Shorten(id.Kind))
	}
	one(config.AnnotationAdopt, string(config.AdoptNever), string(config.AdoptIfSame), string(config.AdoptTake))
	if owned, there := annotations[config.AnnotationOwned].(string); there {
		if _, err := object.ParseGlobs(owned); err != nil {
			problem(config.AnnotationOwned, "%s", err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !slices.Contains(config.AnnotationsSet, key) && unknownAnnotation(key) {
			problem(key, "unknown annotation of swell%s", document.DidYouMean(key, config.AnnotationsInGit))
		}
	}
	labels, _ := metadata["labels"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if strings.HasPrefix(key, config.KeyPrefix) && !slices.Contains(config.LabelsSet, key) {
			d.problem(document.CodeObject, []any{"metadata", "labels", key}, "swell looks for it among the annotations only: move it there")
		}
		if id.IsNamespace() && isMisspeltLevel(key) {
			const text = "no label of Pod Security, so it keeps no pod away%s"
			d.problem(document.CodeObject, []any{"metadata", "labels", key}, text, document.DidYouMean(key, podSecurityLabels))
		}
	}
}

// podSecurityLabels are those by which a Namespace says what its pods may do.
var podSecurityLabels = []string{
	"pod-security.kubernetes.io/audit", "pod-security.kubernetes.io/audit-version",
	"pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/enforce-version",
	"pod-security.kubernetes.io/warn", "pod-security.kubernetes.io/warn-version",
}

// isMisspeltLevel says whether a label of a Namespace was surely meant to be one of Pod Security. An
// API server takes any.
func isMisspeltLevel(key string) bool {
	return !slices.Contains(podSecurityLabels, key) &&
		(strings.HasPrefix(key, "pod-security.kubernetes.io/") || document.Misspelt(key, podSecurityLabels) != "")
}
