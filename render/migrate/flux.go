// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
)

// Groups of Flux.
const (
	fluxKustomize = "kustomize.toolkit.fluxcd.io"
	fluxHelm      = "helm.toolkit.fluxcd.io"
	fluxSource    = "source.toolkit.fluxcd.io"
	fluxArtifacts = "source.extensions.fluxcd.io"
)

// isFlux says whether an object is for Flux, or of Flux itself: it is no use to swell.
func isFlux(o *object) bool {
	group := o.group()
	return strings.HasSuffix(group, ".toolkit.fluxcd.io") || strings.HasSuffix(group, ".fluxcd.io") || group == "fluxcd.controlplane.io" ||
		o.text("metadata", "labels", "app.kubernetes.io/part-of") == "flux"
}

// fluxCluster follows the Kustomizations of one cluster, from what Flux begins at.
type fluxCluster struct {
	*reader
	name    string
	queue   []*fluxFolder
	folders []*fluxFolder // those that were followed
	seen    map[string]bool
	objects map[string]*object     // for Flux and ConfigMaps, by [idOf]
	owners  map[string]*fluxFolder // of those
	raw     map[string][]*object   // the same objects, as they stand in files
	others  []string               // the folders that Flux begins at in other clusters
}

// fluxFolder is a Kustomization of Flux, or the folder that Flux begins at.
type fluxFolder struct {
	of     *object // of the entry folder without a Kustomization, a stand-in
	folder string
	entry  bool
	needs  []string

	brings []*object // for clusters
	drops  []*object // for Flux
	vars   []*object // in place of those of the build
	from   []*object // what vars were
	spec   change
}

// idOf tells objects of a cluster apart.
func idOf(group, kind, namespace, name string) string {
	return group + " " + kind + " " + namespace + "/" + name
}

func (o *object) id() string { return idOf(o.group(), o.kind(), o.namespace(), o.name()) }

func (r *reader) readFlux() error {
	all := r.documents("fluxcd.io", "ConfigMap")
	raw := map[string][]*object{}
	var kustomizations []*object
	for _, o := range all {
		raw[o.id()] = append(raw[o.id()], o)
		if o.group() == fluxKustomize && o.kind() == "Kustomization" {
			kustomizations = append(kustomizations, o)
		}
	}
	if len(kustomizations) == 0 {
		return r.noFlux()
	}
	entries, err := r.fluxEntries(kustomizations)
	if err != nil {
		return err
	}
	reached := map[string]bool{}
	for _, name := range sortedKeys(entries) {
		c := &fluxCluster{reader: r, name: name, seen: map[string]bool{}, objects: map[string]*object{}, owners: map[string]*fluxFolder{}, raw: raw}
		for _, other := range sortedKeys(entries) {
			for _, e := range entries[other] {
				if other != name && e.entry {
					c.others = append(c.others, e.folder)
				}
			}
		}
		r.addCluster(name)
		c.follow(entries[name])
		for id := range c.seen {
			reached[id] = true
		}
	}
	for _, o := range kustomizations {
		if !r.blocked && !reached[o.position("").String()] && !r.inBase(o) {
			r.leave(o, "", "no cluster's folder leads to it", "name it in the folder of a cluster, or remove it")
		}
	}
	return nil
}

// inBase says whether the file of an object is of a kustomization: then it counts as what
// that builds, if anything does.
func (r *reader) inBase(o *object) bool {
	for dir := path.Dir(o.doc.File); ; dir = path.Dir(dir) {
		if r.kustomizations[dir] != "" {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// follow reads all that entries lead to.
func (c *fluxCluster) follow(entries []*fluxFolder) {
	for _, e := range entries {
		if !e.entry { // a Kustomization as any other one
			c.enqueue(e.of, nil)
			continue
		}
		if e.isOwn() {
			c.seen[e.of.position("").String()], c.seen[e.of.id()] = true, true
		}
		c.queue = append(c.queue, e)
	}
	for len(c.queue) > 0 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		c.read(next)
	}
	for _, f := range c.folders {
		c.release(f)
	}
	for _, id := range sortedKeys(c.objects) {
		if o := c.objects[id]; o.group() == fluxHelm && o.kind() == "HelmRelease" {
			c.helmRelease(o)
		}
	}
}

// enqueue takes up a Kustomization that something leads to, unless it was.
func (c *fluxCluster) enqueue(o *object, needs []string) {
	at := o.position("").String()
	id := o.id()
	if c.seen[id] {
		return
	}
	c.seen[at], c.seen[id] = true, true
	f := &fluxFolder{of: o, needs: append(slices.Clone(needs), c.needs(o)...)}
	var ok bool
	if f.folder, ok = c.fluxPath(o); ok {
		c.queue = append(c.queue, f)
	}
}

// needs are what a Kustomization or a HelmRelease depends on.
func (c *fluxCluster) needs(o *object) (needs []string) {
	for _, item := range listAt(o.value, "spec", "dependsOn") {
		namespace := textAt(item, "namespace")
		if namespace == "" {
			namespace = o.namespace()
		}
		needs = append(needs, idOf(o.group(), o.kind(), namespace, textAt(item, "name")))
		if textAt(item, "readyExpr") != "" {
			c.leave(o, "spec.dependsOn", "readyExpr: swell waits until the other unit is healthy", "a HealthRule says in CEL when an object is healthy")
		}
	}
	return needs
}

// read finds out what a Kustomization brings, and goes on with what it leads to.
func (c *fluxCluster) read(f *fluxFolder) {
	c.folders = append(c.folders, f)
	spec, err := c.fluxChange(f)
	if err != nil {
		c.leave(f.of, "spec.patches", err.Error(), "mend it")
		return
	}
	f.spec = spec
	objects, problems := c.built(f.folder, true, spec)
	if len(problems) > 0 {
		c.leave(f.of, "spec.path", fmt.Sprintf("%s cannot be built: %s", quoted(f.folder), problems[0]), "mend it; swell builds from the files of the commit alone")
		c.blocked = c.blocked || f.entry
		return
	}
	vars, err := c.variables(f.of)
	if err != nil {
		c.leave(f.of, "spec.postBuild", err.Error(), "write the values into the files, and take postBuild away")
		return
	}
	var next []*object // once the sources that they name are known
	for _, o := range objects {
		changed := o
		if vars != nil {
			if changed, err = substitute(o, vars); err != nil {
				c.leave(f.of, "spec.postBuild", fmt.Sprintf("%s: %s", o.what(), err), "write the values into the files, and take postBuild away")
				return
			}
		}
		if !isFlux(o) && changed != o {
			f.from, f.vars = append(f.from, o), append(f.vars, changed)
		}
		c.take(f, o, changed)
		if changed.group() == fluxKustomize && changed.kind() == "Kustomization" {
			next = append(next, changed)
		}
	}
	if f.whyOff() != "" {
		return
	}
	for _, o := range next {
		c.enqueue(o, f.needs)
	}
}

// take takes up one object of a Kustomization.
func (c *fluxCluster) take(f *fluxFolder, built, o *object) {
	if o.kind() == "ConfigMap" || isFlux(o) && o.kind() != "Kustomization" {
		c.objects[o.id()], c.owners[o.id()] = o, f
	}
	if !isFlux(o) {
		f.brings = append(f.brings, o)
		return
	}
	f.drops = append(f.drops, built)
	switch {
	case strings.HasPrefix(o.group(), "notification."), strings.HasPrefix(o.group(), "image."):
		c.leave(o, "", "is for Flux's own controllers, and swell has nothing like it", "swell events and swell status say what happens")
	}
}

// isOwn says whether an entry is the folder of its Kustomization.
func (f *fluxFolder) isOwn() bool {
	folder, _ := cleanPath(f.of.text("spec", "path"))
	return folder == f.folder
}

// whyOff says why nothing of a Kustomization is released; empty when it is.
func (f *fluxFolder) whyOff() string {
	suspended, _ := f.of.at("spec", "suspend").(bool)
	switch {
	case f.entry:
		return ""
	case f.of.at("spec", "kubeConfig") != nil:
		return "it is for another cluster"
	case suspended:
		return "it is suspended"
	}
	return ""
}

// fluxChange is what a Kustomization changes in what its folder builds to.
func (c *fluxCluster) fluxChange(f *fluxFolder) (spec change, err error) {
	of := f.of.value
	if f.entry && !f.isOwn() {
		return spec, nil
	}
	for _, field := range []string{"namePrefix", "nameSuffix"} {
		if text := textAt(of, "spec", field); text != "" {
			spec.set(field, text)
		}
	}
	if text := textAt(of, "spec", "targetNamespace"); text != "" {
		spec.set("namespace", text)
	}
	if images := listAt(of, "spec", "images"); len(images) > 0 {
		spec.set("images", images)
	}
	patches, err := c.inline(f.folder, listAt(of, "spec", "patches"))
	if err != nil {
		return spec, err
	}
	for _, field := range []string{"patchesStrategicMerge", "patchesJson6902"} {
		if listAt(of, "spec", field) != nil {
			return spec, errors.New(field + " is of an old version of Flux, want patches")
		}
	}
	if len(patches) > 0 {
		spec.set("patches", patches)
	}
	for _, component := range textsAt(of, "spec", "components") {
		at := path.Join(f.folder, component)
		if r := c.reader; r.kustomizations[at] == "" {
			if ignore, _ := valueAt(of, "spec", "ignoreMissingComponents").(bool); ignore {
				continue
			}
			return spec, fmt.Errorf("component %s: no such folder with a kustomization", quoted(component))
		}
		spec.Components = append(spec.Components, at)
	}
	if labels := mapAt(of, "spec", "commonMetadata", "labels"); len(labels) > 0 {
		spec.set("labels", []any{map[string]any{"pairs": labels}})
	}
	if annotations := mapAt(of, "spec", "commonMetadata", "annotations"); len(annotations) > 0 {
		spec.add("patches", metadataPatch("annotations", annotations))
	}
	return spec, nil
}

// metadataPatch sets metadata of all objects, and nothing in their templates.
func metadataPatch(field string, values map[string]any) any {
	return map[string]any{"target": map[string]any{"kind": ".*"}, "patch": yamlText(map[string]any{"apiVersion": "v1", "kind": "Any", "metadata": map[string]any{"name": "any", field: values}})}
}

// release is what a Kustomization brings to its cluster besides what is for Flux.
func (c *fluxCluster) release(f *fluxFolder) {
	if len(f.brings) == 0 {
		return
	}
	one := &release{of: f.of, name: f.of.name(), cluster: c.name, keys: []string{f.of.id()}, folder: f.folder, deep: true, needs: f.needs, objects: f.brings}
	if f.entry && !f.isOwn() {
		one.name, one.keys = path.Base(f.folder), nil
	}
	patches := change{}
	ops := substitutions(f.from, f.vars)
	for _, patch := range ops {
		patches.add("patches", patch)
	}
	drops := f.drops
	if f.spec.isEmpty() && patches.isEmpty() && c.kustomizations[f.folder] == "" {
		if leaves, ok := c.wholeFiles(f.folder, drops); ok {
			one.leaves, drops = leaves, nil
		}
	}
	patches.remove(drops)
	one.changes = slices.DeleteFunc([]change{f.spec, patches}, func(c change) bool { return c.isEmpty() })
	if len(one.changes) == 2 && !renames(f.spec) { // one kustomization does for both
		both := f.spec
		both.set("patches", slices.Concat(listAt(f.spec.Fields, "patches"), listAt(patches.Fields, "patches")))
		one.changes = []change{both}
	}
	c.fluxSettings(f, one)
	switch got, problems := c.built(f.folder, true, one.changes...); {
	case len(ops) == 0:
	case len(problems) > 0 || !sameObjects(got, f.brings):
		c.leave(f.of, "spec.postBuild", "no patches of kustomize come to the same objects", "write the values into the files, and take postBuild away")
		one.settings.Off, one.changes = "the values of postBuild cannot be carried over", nil
	default:
		c.note(f.of, "spec.postBuild", "the values are written into patches of kustomize, which test what they replace", "change a value there, or in the file itself")
	}
	c.releases = append(c.releases, one)
}

// renames says whether patches that come after have other names to look for.
func renames(spec change) bool {
	for _, field := range []string{"namePrefix", "nameSuffix", "namespace"} {
		if spec.Fields[field] != nil {
			return true
		}
	}
	return len(spec.Components) > 0
}

// wholeFiles are the files of a plain folder that hold nothing but some objects; ok is
// false where one holds others, too.
func (r *reader) wholeFiles(folder string, objects []*object) (files []string, ok bool) {
	dropped := map[string]int{}
	for _, o := range objects {
		dropped[o.doc.File]++
	}
	for _, file := range sortedKeys(dropped) {
		if len(r.file(file).objects) != dropped[file] || !config.Within(file, folder) || r.inBaseBelow(file, folder) {
			return nil, false
		}
		files = append(files, relative(folder, file))
	}
	return files, true
}

// inBaseBelow says whether a file is of a kustomization below a folder.
func (r *reader) inBaseBelow(file, folder string) bool {
	for dir := path.Dir(file); dir != folder && dir != "."; dir = path.Dir(dir) {
		if r.kustomizations[dir] != "" {
			return true
		}
	}
	return false
}

// account says of the account that requests are made as.
func (c *fluxCluster) account(o *object) {
	if name := o.text("spec", "serviceAccountName"); name != "" && name != "kustomize-controller" && name != "helm-controller" {
		c.leave(o, "spec.serviceAccountName", fmt.Sprintf("requests are made by swell's own account, not by %s of %s", quoted(name), quoted(o.namespace())), "a Tenant in the fleet with that serviceAccount, and tenant in the unit's Defaults")
	}
}

// fluxSettings says what else a Kustomization says.
func (c *fluxCluster) fluxSettings(f *fluxFolder, one *release) {
	if f.entry {
		return
	}
	o := f.of
	if why := f.whyOff(); why != "" {
		one.settings.Off = why
	}
	if suspended, _ := o.at("spec", "suspend").(bool); suspended {
		c.note(o, "spec.suspend", "the unit is off", "take `unit: false` away to release it")
	}
	if prune, said := o.at("spec", "prune").(bool); said && !prune {
		one.settings.Keep = true
	}
	if o.at("spec", "decryption") != nil {
		c.note(o, "spec.decryption", "swell decrypts with sops when it applies", "name the keys in secrets.ageKeyFiles of daemon.yaml")
	}
	c.account(o)
	if o.at("spec", "kubeConfig") != nil {
		c.leave(o, "spec.kubeConfig", "it is for the cluster that a kubeconfig in the cluster names", "add that Cluster to the fleet, place the unit there, and take `unit: false` away")
	}
	if o.at("spec", "healthCheckExprs") != nil {
		c.leave(o, "spec.healthCheckExprs", "swell has rules of health for the fleet", "write HealthRules, with the same CEL")
	}
	if len(listAt(o.value, "spec", "healthChecks")) > 0 {
		c.note(o, "spec.healthChecks", "swell waits for all objects of a unit, as wait: true does", "")
	}
	if force, _ := o.at("spec", "force").(bool); force {
		c.leave(o, "spec.force", "swell recreates no object by itself", "annotate what may be, with swell.sh/replace: allowed")
	}
}
