// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import "strings"

// otherTools are documents that tell another tool what to apply, by kind and the end of
// their group, and what to do about one where swell takes its place.
var otherTools = []struct{ kind, group, advice string }{
	{"Kustomization", "kustomize.toolkit.fluxcd.io", "it tells Flux which folder to apply, and swell finds units by itself"},
	{"HelmRelease", "helm.toolkit.fluxcd.io", "it has Flux install a chart: put the chart into the tree and write a HelmChart in its place"},
	{"", "toolkit.fluxcd.io", "it is for Flux, and swell needs no such document"},
	{"Application", "argoproj.io", "it tells Argo CD which folder to apply, and swell finds units by itself"},
	{"ApplicationSet", "argoproj.io", "it tells Argo CD which folders to apply, and swell finds units by itself"},
	{"AppProject", "argoproj.io", "it tells Argo CD who may apply what where: a Tenant of the fleet says so"},
}

// toOtherTool is what to do about a document for another tool; empty for all others.
func toOtherTool(apiVersion, kindName string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	for _, t := range otherTools {
		if (t.kind == "" || t.kind == kindName) && (group == t.group || strings.HasSuffix(group, "."+t.group)) {
			return t.advice + "; leave it out by spec.units of the root's swell.yaml or a .swellignore. If the tool goes on reading it: "
		}
	}
	return ""
}
