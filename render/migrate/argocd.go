// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

const argoGroup = "argoproj.io"

// argo is what the documents of Argo CD say.
type argo struct {
	*reader
	own      string            // the URL of this repository, as sameURL compares it
	clusters map[string]string // names by the URL of the API server
	labels   map[string]map[string]any
	objects  []*object // what is read still
	seen     map[string]bool
}

// isArgo says whether an object is for Argo CD: it is no use to swell.
func isArgo(o *object) bool {
	return o.group() == argoGroup && slices.Contains([]string{"Application", "ApplicationSet", "AppProject"}, o.kind()) ||
		o.text("metadata", "labels", "app.kubernetes.io/part-of") == "argocd" ||
		o.kind() == "Secret" && o.text("metadata", "labels", argoSecretType) != ""
}

const argoSecretType = "argocd.argoproj.io/secret-type"

func (r *reader) readArgo() error {
	a := &argo{reader: r, clusters: map[string]string{}, labels: map[string]map[string]any{}, seen: map[string]bool{}}
	all := r.documents("argoproj.io")
	a.readClusters(all)
	all = append(all, a.builtApps()...)
	a.noteTemplates()
	sources := 0
	for _, o := range all {
		if o.group() == argoGroup && (o.kind() == "Application" || o.kind() == "ApplicationSet" || o.kind() == "AppProject") && !r.isMaterial(o) {
			a.objects = append(a.objects, o)
			sources++
		}
	}
	if sources == 0 {
		if len(r.left) > 0 {
			return r.nothing()
		}
		return fmt.Errorf("no Application or ApplicationSet of Argo CD (%s) is in the repository", argoGroup)
	}
	a.own = a.ownURL()
	for len(a.objects) > 0 {
		o := a.objects[0]
		a.objects = a.objects[1:]
		if id := o.id(); a.seen[id] {
			continue
		} else {
			a.seen[id] = true
		}
		switch o.kind() {
		case "Application":
			a.application(o)
		case "ApplicationSet":
			a.applicationSet(o)
		case "AppProject":
			a.project(o)
		}
	}
	return nil
}

// isMaterial says whether the file of an object is of a kustomization: then it counts as
// what that builds.
func (r *reader) isMaterial(o *object) bool { return !o.made && r.inBase(o) }

// builtApps are the Applications that kustomizations build which no other one names.
func (a *argo) builtApps() (all []*object) {
	seen := map[string]bool{}
	for _, folder := range sortedKeys(a.kustomizations) {
		if len(a.named[folder]) == 0 && !a.components[folder] && a.mentions(folder, map[string]bool{}) {
			all = append(all, a.appsOf(folder, seen)...)
		}
	}
	return all
}

// appsOf are the Applications that a kustomization builds. Where it cannot be built, they
// are those of what it names.
func (a *argo) appsOf(folder string, seen map[string]bool) (all []*object) {
	if seen[folder] {
		return nil
	}
	seen[folder] = true
	c := a.content(folder, false)
	objects := c.objects
	if len(c.problems) > 0 {
		a.left = append(a.left, Note{At: document.Position{File: a.kustomizations[folder]}, What: "kustomization " + folder, Why: "cannot be built: " + c.problems[0].String(), Do: "mend it; swell builds from the files of the commit alone"})
		for _, to := range a.namedBy(folder) {
			if a.kustomizations[to] != "" {
				all = append(all, a.appsOf(to, seen)...)
			} else if config.IsYAML(to) {
				objects = append(objects, a.file(to).objects...)
			}
		}
	}
	for _, o := range objects {
		if isArgo(o) {
			all = append(all, &object{doc: o.doc, value: o.value, made: true})
		}
	}
	return all
}

// mentions says whether a kustomization leads to a file with a document of Argo CD.
func (a *argo) mentions(folder string, seen map[string]bool) bool {
	if seen[folder] {
		return false
	}
	seen[folder] = true
	for _, to := range a.namedBy(folder) {
		if a.kustomizations[to] != "" && a.mentions(to, seen) {
			return true
		}
		if text, err := a.tree.ReadFile(to); err == nil && strings.Contains(string(text), argoGroup) {
			return true
		}
	}
	return false
}

// namedBy are the files and folders that a kustomization names.
func (r *reader) namedBy(folder string) (names []string) {
	for to, files := range r.named {
		if slices.Contains(files, r.kustomizations[folder]) {
			names = append(names, to)
		}
	}
	slices.Sort(names)
	return names
}

// noteTemplates says of charts that make Applications, or have them in their values, that
// these are not read.
func (a *argo) noteTemplates() {
	for _, file := range a.files {
		if !a.inChart(file) {
			continue
		}
		text, err := a.tree.ReadFile(file)
		at := madeApplication.FindIndex(text)
		if err != nil || at == nil {
			continue
		}
		note := Note{What: "chart", Why: "Applications that a chart makes are not read", Do: "write them out with `helm template` into a file outside of the chart, and run this again"}
		note.At.File, note.At.Line = file, 1+bytes.Count(text[:at[0]], []byte("\n"))
		a.left = append(a.left, note)
	}
}

var madeApplication = regexp.MustCompile(`(?m)^[- ]*kind: Application(Set)?\s*$`)

// ownURL is that of this repository: as given, or else the one that most sources have whose
// path is there.
func (a *argo) ownURL() string {
	if a.options.URL != "" {
		return a.options.URL
	}
	count := map[string]int{}
	for _, o := range a.objects {
		sources := a.sources(o)
		if o.kind() == "ApplicationSet" {
			sources = append(listAt(o.value, "spec", "template", "spec", "sources"), valueAt(o.value, "spec", "template", "spec", "source"))
			for _, g := range listAt(o.value, "spec", "generators") {
				sources = append(sources, valueAt(g, "git"))
			}
		}
		for _, source := range sources {
			if text := textAt(source, "repoURL"); text != "" && textAt(source, "chart") == "" && !strings.Contains(text, "{{") {
				count[plainURL(text)]++
				if name, ok := cleanPath(textAt(source, "path")); ok && name != "." && a.isFolder(name) {
					count[plainURL(text)] += 1000
				}
			}
		}
	}
	best := ""
	for _, known := range sortedKeys(count) {
		if best == "" || count[known] > count[best] {
			best = known
		}
	}
	return best
}

// readClusters reads the Secrets that name clusters.
func (a *argo) readClusters(all []*object) {
	a.clusters["https://kubernetes.default.svc"] = "in-cluster"
	if len(a.options.Clusters) == 1 {
		a.clusters["https://kubernetes.default.svc"] = a.options.Clusters[0]
	}
	for _, o := range all {
		if o.kind() != "Secret" || o.text("metadata", "labels", argoSecretType) != "cluster" {
			continue
		}
		name, server := o.text("stringData", "name"), o.text("stringData", "server")
		if label := asLabel(name); label != "" && server != "" {
			a.clusters[server] = label
			a.labels[label] = mapAt(o.value, "metadata", "labels")
		}
	}
}

// clusterOf is the cluster of a destination.
func (a *argo) clusterOf(o *object) (name string, ok bool) {
	server, named := o.text("spec", "destination", "server"), o.text("spec", "destination", "name")
	switch {
	case named == "in-cluster":
		return a.clusters["https://kubernetes.default.svc"], true
	case named != "":
		name = asLabel(named)
	case a.clusters[server] != "":
		return a.clusters[server], true
	default:
		parsed, err := url.Parse(server)
		if err != nil {
			return "", false
		}
		name = asLabel(parsed.Hostname())
	}
	return name, name != ""
}

// sources are those of an Application.
func (a *argo) sources(o *object) []any {
	if list := listAt(o.value, "spec", "sources"); len(list) > 0 {
		return list
	}
	if one := mapAt(o.value, "spec", "source"); one != nil {
		return []any{one}
	}
	return nil
}

// application makes an Application one release for each of its sources.
func (a *argo) application(o *object) {
	cluster, ok := a.clusterOf(o)
	if !ok {
		a.leave(o, "spec.destination", "it has neither a name nor a server", "say which cluster it is for")
		return
	}
	sources := a.sources(o)
	if len(sources) == 0 {
		a.leave(o, "spec.source", "it has none", "name a folder of this repository")
		return
	}
	refs := map[string]bool{} // names of sources that are this repository
	for _, source := range sources {
		if ref := textAt(source, "ref"); ref != "" {
			refs[ref] = a.isOwn(textAt(source, "repoURL"))
		}
	}
	number := 0
	for _, source := range sources {
		if textAt(source, "ref") != "" && textAt(source, "path") == "" && textAt(source, "chart") == "" {
			continue // for files of values only
		}
		one := &release{of: o, name: o.name(), cluster: cluster, keys: []string{o.id()}}
		if number++; number > 1 {
			one.name = fmt.Sprintf("%s-%d", o.name(), number)
		}
		one.settings.Namespace = o.text("spec", "destination", "namespace")
		field := "spec.source"
		if len(listAt(o.value, "spec", "sources")) > 0 {
			field = "spec.sources"
		}
		if a.source(o, field, source, refs, one) {
			a.settings(o, one)
			a.applicationNotes(o)
			a.addCluster(cluster)
			a.releases = append(a.releases, one)
		}
	}
}

func (a *argo) isOwn(repoURL string) bool { return plainURL(repoURL) == plainURL(a.own) }

// settings says how an Application is synced.
func (a *argo) settings(o *object, one *release) {
	automated := o.at("spec", "syncPolicy", "automated")
	if enabled, said := valueAt(automated, "enabled").(bool); said && !enabled {
		automated = nil
	}
	if automated == nil {
		a.note(o, "spec.syncPolicy", "it is synced by hand, and swell releases each commit", "an approval gate in the unit's Rollout waits for a person")
	}
	if prune, _ := valueAt(automated, "prune").(bool); !prune {
		one.settings.Keep = true
	}
	if heal, _ := valueAt(automated, "selfHeal").(bool); !heal {
		one.settings.Drift = "report"
	}
	for _, item := range listAt(o.value, "spec", "ignoreDifferences") {
		rule := ignored{Kind: textAt(item, "kind"), Object: textAt(item, "name"), Fields: textsAt(item, "jsonPointers")}
		for _, field := range []string{"jqPathExpressions", "managedFieldsManagers"} {
			if len(listAt(item, field)) > 0 {
				a.leave(o, "spec.ignoreDifferences", field+": swell ignores fields by JSON pointers only", "write them as ignore into the unit's Defaults")
			}
		}
		if textAt(item, "namespace") != "" && rule.Object == "" {
			a.note(o, "spec.ignoreDifferences", "namespace: the rule holds for the kind in all namespaces of the unit", "")
		}
		if len(rule.Fields) > 0 && rule.Kind != "" && rule.Kind != "*" {
			one.settings.Ignore = append(one.settings.Ignore, rule)
		}
	}
}

// argoOptions are options that swell does by itself, or has another word for.
var argoOptions = map[string]string{
	"ApplyOutOfSyncOnly=true": "", "ServerSideApply=true": "", "PruneLast=true": "", "Validate=true": "", "CreateNamespace=false": "",
	"PrunePropagationPolicy=foreground": "", "PrunePropagationPolicy=background": "", "RespectIgnoreDifferences=true": "", "ServerSideApply=false": "",
}

// applicationNotes says what else an Application says.
func (a *argo) applicationNotes(o *object) {
	for _, option := range textsAt(o.value, "spec", "syncPolicy", "syncOptions") {
		switch _, known := argoOptions[option]; {
		case known:
		case option == "CreateNamespace=true":
			if cluster, ok := a.clusterOf(o); ok {
				a.makesNamespace(o, cluster, o.text("spec", "destination", "namespace"))
			}
		case option == "Replace=true" || option == "Force=true":
			a.leave(o, "spec.syncPolicy.syncOptions", option+": swell recreates no object by itself", "annotate what may be, with swell.sh/replace: allowed")
		case option == "Prune=false" || option == "Delete=false":
			a.leave(o, "spec.syncPolicy.syncOptions", option+" is not carried over", "prune: keep in the unit's Defaults")
		default:
			a.note(o, "spec.syncPolicy.syncOptions", option+": swell has no such option", "")
		}
	}
	if wave := o.text("metadata", "annotations", "argocd.argoproj.io/sync-wave"); wave != "" {
		a.note(o, "metadata.annotations", "its sync wave among Applications: swell waits for namespaces and definitions by itself", "a Rollout with a gate {after: {unit: ...}} waits for more")
	}
	if project := o.text("spec", "project"); project != "" && project != "default" {
		a.note(o, "spec.project", "its project is no Tenant yet", "tenant in the unit's Defaults, and a Tenant in the fleet")
	}
}

// project proposes nothing: which folders are whose, the tree does not say.
func (a *argo) project(o *object) {
	if o.name() == "default" {
		return
	}
	a.leave(o, "", "an AppProject is much like a Tenant of swell, but names repositories in place of folders", "write a Tenant into the fleet: destinations are its clusters and namespaces, the resource lists its kinds and clusterKinds")
}
