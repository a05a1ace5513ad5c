// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// takeOverSteps are what is done about a release of another tool: before swell takes its
// objects, so that the tool does not write them back, and at the end, so that nothing of
// them is deleted with it. NAMESPACE, NAME and CONTEXT are the release's. By what
// [apply.Preview.Owner] begins with.
var takeOverSteps = map[string]struct{ before, after string }{
	// A Kustomization or a HelmRelease that is suspended deletes nothing when it is deleted
	// (kustomize-controller and helm-controller, reconcile of a deletion). One that its parent
	// finds in Git is made anew, and not suspended.
	"Flux Kustomization": {"flux suspend kustomization NAME -n NAMESPACE --context CONTEXT", "kubectl delete kustomizations.kustomize.toolkit.fluxcd.io NAME -n NAMESPACE --context CONTEXT   # gone from Git, and still suspended"},
	"Flux HelmRelease":   {"flux suspend helmrelease NAME -n NAMESPACE --context CONTEXT", "kubectl delete helmreleases.helm.toolkit.fluxcd.io NAME -n NAMESPACE --context CONTEXT   # gone from Git, and still suspended"},
	"Argo CD application": {"argocd app set NAME --sync-policy none   # also where an ApplicationSet or an app of apps sets it",
		"argocd app delete NAME --cascade=false   # never without: it deletes the objects"},
	"Helm release": {"stop what runs helm upgrade NAME -n NAMESPACE", "kubectl delete secret -n NAMESPACE -l owner=helm,name=NAME --context CONTEXT   # never helm uninstall: it deletes the objects"},
	"kapp app":     {"stop what runs kapp deploy", ""},
	"Config Sync":  {"stop Config Sync for this folder, with the annotation configmanagement.gke.io/managed: disabled on what is taken over", ""},
}

// isTool says whether an owner is a release of another tool.
func isTool(owner string) bool { _, _, ok := releaseOf(owner); return ok }

// releaseOf parts an owner into the tool and its release.
func releaseOf(owner string) (tool, release string, ok bool) {
	for tool := range takeOverSteps {
		if release, ok := strings.CutPrefix(owner, tool); ok && (release == "" || release[0] == ' ') {
			return tool, strings.TrimSpace(release), true
		}
	}
	return "", "", false
}

func releaseNames(releases map[string]bool) []string { return slices.Sorted(maps.Keys(releases)) }

// writeSteps writes how the objects are taken over, in the order in which nothing of them
// is deleted or written back.
func (a *adoption) writeSteps(w io.Writer) error {
	var before, after []string
	for _, cluster := range slices.Sorted(maps.Keys(a.releases)) {
		for _, owner := range releaseNames(a.releases[cluster]) {
			tool, release, ok := releaseOf(owner)
			if !ok {
				continue
			}
			namespace, name, found := strings.Cut(release, "/")
			if !found {
				namespace, name = "", release
			}
			fill := strings.NewReplacer("NAMESPACE", namespace, "NAME", name, "CONTEXT", cmp.Or(a.contexts[cluster].Context, cluster)).Replace
			before = append(before, fill(takeOverSteps[tool].before))
			after = append(after, fill(takeOverSteps[tool].after))
		}
	}
	if len(before) == 0 {
		return nil
	}
	steps := append([]string{"stop the other tool:"}, indented(before)...)
	steps = append(steps, "have adopt: take in the Defaults (swell.yaml) of the units, commit it, and let the daemon apply it",
		"when swell status says done, delete what the other tool knows of them:")
	steps = append(steps, indented(after)...)
	_, err := fmt.Fprintf(w, "\nto take them over\n  %s\n", strings.Join(steps, "\n  "))
	return err
}

// indented are lines below another one, each once.
func indented(lines []string) (below []string) {
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		if line != "" {
			below = append(below, "  "+line)
		}
	}
	return below
}
