// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
)

// source is what a source of an Application brings; false when that is nothing.
func (a *argo) source(o *object, field string, source any, refs map[string]bool, one *release) bool {
	if textAt(source, "chart") != "" {
		return a.helmSource(o, field, source, refs, one)
	}
	repo := textAt(source, "repoURL")
	if !a.isOwn(repo) {
		a.leave(o, field+".repoURL", fmt.Sprintf("its folder is in another repository, %s", quoted(repo)), "bring the folder into this repository, or make that one a monorepo too")
		return false
	}
	folder, ok := cleanPath(textAt(source, "path"))
	switch {
	case !ok:
		a.leave(o, field+".path", fmt.Sprintf("%s leads out of the repository", quoted(textAt(source, "path"))), "mend the path")
		return false
	case !a.isFolder(folder):
		a.leave(o, field+".path", fmt.Sprintf("%s: no such folder", quoted(folder)), "mend the path, or remove the Application")
		return false
	case valueAt(source, "plugin") != nil:
		a.leave(o, field+".plugin", "swell runs no plugins of Argo CD", "write out what it makes, and commit that")
		return false
	}
	one.folder = folder
	switch {
	case valueAt(source, "helm") != nil || valueAt(source, "kustomize") == nil && valueAt(source, "directory") == nil && a.charts[folder]:
		return a.helmSource(o, field, source, refs, one)
	case valueAt(source, "directory") == nil && a.kustomizations[folder] != "" || valueAt(source, "kustomize") != nil:
		return a.kustomizeSource(o, field, source, one)
	}
	return a.directorySource(o, field, source, one)
}

// finish takes what is for Argo CD out of a release; false when nothing else is in it.
func (a *argo) finish(one *release, objects []*object) bool {
	var drops []*object
	for _, built := range objects {
		switch {
		case isArgo(built):
			drops = append(drops, built)
			a.objects = append(a.objects, &object{doc: built.doc, value: built.value, made: true})
		default:
			one.objects = append(one.objects, built)
			a.annotations(built)
		}
	}
	if len(one.objects) == 0 {
		return false // an app of apps
	}
	if leaves, ok := a.wholeFiles(one.folder, drops); ok && a.kustomizations[one.folder] == "" && len(one.changes) == 0 {
		one.leaves = append(one.leaves, leaves...)
		return true
	}
	var c change
	c.remove(drops)
	if !c.isEmpty() {
		one.changes = append(one.changes, c)
	}
	return true
}

// annotations notes what the annotations of an object say to Argo CD.
func (a *argo) annotations(built *object) {
	for key := range mapAt(built.value, "metadata", "annotations") {
		switch key {
		case "argocd.argoproj.io/sync-wave":
			a.note(built, "metadata.annotations", "its sync wave is not read", "swell.sh/phase: a number from 0, where the order within the unit matters")
		case "argocd.argoproj.io/hook":
			a.leave(built, "metadata.annotations", "it is a hook of Argo CD, and swell applies it as an object of the unit", "swell.sh/hook: before or after, for a Job; leave the rest away")
		case "argocd.argoproj.io/sync-options", "argocd.argoproj.io/compare-options":
			a.note(built, "metadata.annotations", "its options for Argo CD are not read", "swell.sh/prune and swell.sh/replace are much like Prune and Replace")
		}
	}
}

// kustomizeSource is a folder that kustomize builds, with the options of the Application.
func (a *argo) kustomizeSource(o *object, field string, source any, one *release) bool {
	options := mapAt(source, "kustomize")
	var c change
	for _, name := range []string{"namePrefix", "nameSuffix", "namespace"} {
		if text := textAt(options, name); text != "" {
			c.set(name, text)
		}
	}
	var images []any
	for _, text := range textsAt(options, "images") {
		images = append(images, imageOf(text))
	}
	if len(images) > 0 {
		c.set("images", images)
	}
	if replicas := listAt(options, "replicas"); len(replicas) > 0 {
		c.set("replicas", replicas)
	}
	if labels := mapAt(options, "commonLabels"); len(labels) > 0 {
		without, _ := options["labelWithoutSelector"].(bool)
		templates, _ := options["labelIncludeTemplates"].(bool)
		pair := map[string]any{"pairs": labels, "includeSelectors": !without}
		if without && templates {
			pair["includeTemplates"] = true
		}
		c.set("labels", []any{pair})
	}
	if annotations := mapAt(options, "commonAnnotations"); len(annotations) > 0 {
		c.set("commonAnnotations", annotations)
	}
	for _, component := range textsAt(options, "components") {
		c.Components = append(c.Components, path.Join(one.folder, component))
	}
	patches, err := a.inline(one.folder, listAt(options, "patches"))
	if err != nil {
		a.leave(o, field+".kustomize.patches", err.Error(), "mend it")
		return false
	}
	if len(patches) > 0 {
		c.set("patches", patches)
	}
	if !c.isEmpty() {
		one.changes = append(one.changes, c)
	}
	objects, problems := a.built(one.folder, false, one.changes...)
	if len(problems) > 0 {
		a.leave(o, field+".path", fmt.Sprintf("%s cannot be built: %s", quoted(one.folder), problems[0]), "mend it; swell builds from the files of the commit alone")
		return false
	}
	return a.finish(one, objects)
}

// imageOf is an image as `kustomize edit set image` takes it: NAME=NEW:TAG, NEW:TAG or
// NEW@DIGEST.
func imageOf(text string) map[string]any {
	name, to, renamed := strings.Cut(text, "=")
	if !renamed {
		name, to = "", text
	}
	image := map[string]any{}
	at, digest, pinned := strings.Cut(to, "@")
	tag := ""
	if i := strings.LastIndex(at, ":"); i > strings.LastIndex(at, "/") {
		at, tag = at[:i], at[i+1:]
	}
	if name == "" {
		name = at
	}
	image["name"] = name
	if renamed && at != "" && at != name {
		image["newName"] = at
	}
	if tag != "" {
		image["newTag"] = tag
	}
	if pinned {
		image["digest"] = digest
	}
	return image
}

// directorySource is a folder of plain YAML.
func (a *argo) directorySource(o *object, field string, source any, one *release) bool {
	options := mapAt(source, "directory")
	one.deep, _ = options["recurse"].(bool)
	include, exclude := textAt(options, "include"), textAt(options, "exclude")
	c := a.content(one.folder, one.deep)
	if len(c.problems) > 0 {
		a.leave(o, field+".path", fmt.Sprintf("%s cannot be read: %s", quoted(one.folder), c.problems[0]), "mend it, and run this again")
		return false
	}
	a.otherFiles(o, field, one.folder, one.deep)
	left := map[string]bool{}
	for _, resource := range c.resources {
		if a.kustomizations[path.Join(one.folder, resource)] != "" {
			a.leave(o, field+".path", fmt.Sprintf("%s is a kustomization, and Argo CD applies its files one by one", quoted(path.Join(one.folder, resource))), "name that folder in an Application of its own")
			left[resource] = true
			continue
		}
		if exclude != "" && globs(exclude, resource) || include != "" && !globs(include, resource) {
			left[resource] = true
		}
	}
	one.leaves = sortedKeys(left)
	objects := slices.DeleteFunc(slices.Clone(c.objects), func(built *object) bool {
		name := relative(one.folder, built.doc.File)
		return slices.ContainsFunc(one.leaves, func(leave string) bool { return config.Within(name, leave) })
	})
	return a.finish(one, objects)
}

// otherFiles says of files that Argo CD reads and swell does not.
func (a *argo) otherFiles(o *object, field, folder string, deep bool) {
	for _, name := range a.below[folder] {
		switch ext := path.Ext(name); {
		case strings.HasSuffix(name, "/"):
			if deep {
				a.otherFiles(o, field, path.Join(folder, name), deep)
			}
		case ext == ".jsonnet":
			a.leave(o, field+".directory", fmt.Sprintf("%s: swell runs no Jsonnet", path.Join(folder, name)), "write out what it makes, and commit that")
		case ext == ".json":
			a.leave(o, field+".directory", fmt.Sprintf("%s: swell reads documents from .yaml and .yml", path.Join(folder, name)), "rename it: JSON is YAML too")
		}
	}
}

// globs says whether a path matches one of the patterns {a,b} of Argo CD, by its name or in
// full.
func globs(pattern, name string) bool {
	return matchGlob(pattern, name) || matchGlob(pattern, path.Base(name))
}

// helmSource is a chart, of the tree or of a registry.
func (a *argo) helmSource(o *object, field string, source any, refs map[string]bool, one *release) bool {
	options := mapAt(source, "helm")
	chart, off := &helmChart{Chart: one.folder}, ""
	if name := textAt(source, "chart"); name != "" {
		repo, version := textAt(source, "repoURL"), textAt(source, "targetRevision")
		ref := name
		if !strings.HasPrefix(repo, "https://") && !strings.HasPrefix(repo, "http://") {
			ref, repo = "oci://"+strings.TrimPrefix(strings.TrimSuffix(repo, "/"), "oci://")+"/"+name, ""
		}
		chart, off = a.vendored(path.Base(name), version, ref, repo)
	} else {
		if !a.charts[one.folder] {
			a.leave(o, field+".path", fmt.Sprintf("%s is no chart: it has no Chart.yaml", quoted(one.folder)), "mend the path")
			return false
		}
		off = a.whyChartOff(o, field+".path", one.folder)
	}
	chart.Release = cmp.Or(textAt(options, "releaseName"), o.name())
	chart.Namespace = cmp.Or(textAt(options, "namespace"), one.settings.Namespace, "default")
	folder := one.folder
	one.folder, one.chart = "", chart
	if why := a.helmValues(o, field, options, refs, folder, chart); why != "" {
		off = why
	}
	one.settings.Off = cmp.Or(off, one.settings.Off)
	for _, name := range []string{"skipCrds", "skipTests", "skipSchemaValidation"} {
		if skip, _ := options[name].(bool); skip && name == "skipCrds" {
			a.leave(o, field+".helm.skipCrds", "swell applies the definitions of a chart with its other objects", "take them out of the chart's folder crds, if they are not wanted")
		}
	}
	return true
}
