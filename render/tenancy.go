// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
)

// judge is a repository whose Tenants judge units: that of the commit, and of the
// commit that a change goes to, so that a change cannot allow itself anything.
type judge struct {
	*config.Repository
	of string // the end of a message; empty for the commit's own
}

// judges are those of the units; none where there are no Tenants.
func (w *world) judges() (list []judge) {
	if len(w.repository.Tenants) > 0 {
		list = append(list, judge{w.repository, ""})
	}
	if w.baseFleet(w.repository) != "" && len(w.base.Tenants) > 0 {
		list = append(list, judge{w.base, ofBase})
	}
	return list
}

// tenantsOf are the rules for a unit's objects.
func (w *world) tenantsOf(unit *config.Unit) (list []ruling) {
	for _, j := range w.judges() {
		t := j.Tenants[unit.Defaults.Tenant]
		if t != nil && !slices.ContainsFunc(list, func(own ruling) bool { return own.rules() == (ruling{t, ""}).rules() }) {
			list = append(list, ruling{t, j.of})
		}
	}
	if t := w.left[unit.Path]; t != nil {
		list = append(list, ruling{t, ofLeft})
	}
	return list
}

// ruling is a tenant whose rules hold for an object.
type ruling struct {
	*config.Tenant
	of string
}

// rules is the address of all that the ruling says about objects, wherever it stands.
func (r ruling) rules() string {
	sum := sha256.New()
	for _, list := range [][]string{
		r.Namespaces, r.Kinds, r.ClusterKinds, r.Labels, r.Annotations, r.Images, r.ClusterRoles, r.Allow, {r.PodSecurity},
		r.Accounts, r.Hosts,
	} {
		fmt.Fprintf(sum, "%q\n", list)
	}
	fmt.Fprintf(sum, "%q %s\n", r.Name, r.of)
	return string(sum.Sum(nil))
}

// checkTenant finds what is wrong with the tenant of a unit: that there is none, that the
// folder is another one's, that others own its files.
func (w *world) checkTenant(unit *config.Unit, placed []place) (problems document.Problems) {
	for _, j := range w.judges() {
		for _, p := range w.checkTenantBy(j, unit, placed) {
			said := func(own document.Problem) bool { return own.Position == p.Position && own.Message+j.of == p.Message }
			if !slices.ContainsFunc(problems, said) {
				problems = append(problems, p)
			}
		}
	}
	return append(problems, w.checkLeftTenant(unit, placed)...)
}

// checkLeftTenant finds a cluster that a unit is placed on and that the tenant which it comes from
// may not have.
func (w *world) checkLeftTenant(unit *config.Unit, placed []place) document.Problems {
	t := w.left[unit.Path]
	if t == nil {
		return nil
	}
	for _, p := range placed {
		if name := p.cluster.Name; !(judge{w.base, ofLeft}).takes(name, t.Name) {
			return document.Problems{{Position: unit.Defaults.TenantAt, Code: document.CodeTenancy,
				Message: fmt.Sprintf("tenant %q: is not placed on cluster %s (%s)%s", t.Name, name, t.Position.File, ofLeft)}}
		}
	}
	return nil
}

func (w *world) checkTenantBy(j judge, unit *config.Unit, placed []place) document.Problems {
	d := unit.Defaults
	at := d.TenantAt
	if at.File == "" {
		at.File = string(unit.Path)
	}
	problem := func(code document.Code, format string, args ...any) document.Problems {
		return document.Problems{{Position: at, Code: code, Message: fmt.Sprintf(format, args...) + j.of}}
	}
	tenant, known := j.Tenants[d.Tenant], slices.Collect(maps.Keys(j.Tenants))
	switch {
	case d.Tenant == "":
		return problem(document.CodeReference, "no tenant: say in a swell.yaml here or further up which Tenant of the fleet the unit belongs to%s", document.DidYouMean("", known))
	case tenant == nil && j.of != "":
		return problem(document.CodeTenancy, "tenant %q: there is no such Tenant yet: let it come first, and its units after it", d.Tenant)
	case tenant == nil:
		return problem(document.CodeReference, "tenant %q: no such Tenant in the fleet%s", d.Tenant, document.DidYouMean(d.Tenant, known))
	}
	switch holder := j.TenantOf(unit.Path); {
	case holder == tenant:
	case holder != nil:
		return problem(document.CodeTenancy, "tenant %q: the folder is tenant %s's (%s)", d.Tenant, holder.Name, holder.Position.File)
	case len(tenant.Folders) > 0:
		return problem(document.CodeTenancy, "tenant %q: its units stand in %s (%s)", d.Tenant, strings.Join(tenant.Folders, ", "), tenant.Position.File)
	}
	problems := j.checkOwners(append(settingsOf(w.repository.Tree, unit, tenant), unit.Files...), tenant)
	for _, p := range placed { // the commit's own Tenant has kept it away already
		if name := p.cluster.Name; !j.takes(name, d.Tenant) {
			return append(problems, problem(document.CodeTenancy, "tenant %q: is not placed on cluster %s", d.Tenant, name)...)
		}
	}
	return problems
}

// takes says whether a cluster takes a tenant. One that is not there yet is for the
// tenant to say.
func (j judge) takes(name, tenant string) bool {
	i := slices.IndexFunc(j.Clusters, func(c *config.Cluster) bool { return c.Name == name })
	return (i < 0 || j.Clusters[i].Allows(tenant)) && j.Tenants[tenant].OnCluster(name)
}

// settingsOf are the files of Defaults that hold for a unit and stand in its tenant's
// folders: they may patch all that the unit brings.
func settingsOf(tree config.Tree, unit *config.Unit, tenant *config.Tenant) (files []string) {
	for folder := string(unit.Path); slices.ContainsFunc(tenant.Folders, func(own string) bool { return config.Within(folder, own) }); folder = path.Dir(folder) {
		name := path.Join(folder, config.SettingsFile)
		if _, err := tree.Hash(name); err == nil {
			files = append(files, name)
		}
	}
	return files
}

// checkOwners finds files of a tenant that nobody owns, or somebody who is not one of
// its owners.
func (j judge) checkOwners(files []string, tenant *config.Tenant) (problems document.Problems) {
	if len(tenant.Owners) == 0 {
		return nil
	}
	for _, file := range files {
		owners := j.Owners.Of(file)
		message := ""
		if i := slices.IndexFunc(owners, func(owner string) bool { return !slices.Contains(tenant.Owners, owner) }); i >= 0 {
			message = fmt.Sprintf("%s owns it by %s and is no owner of tenant %s (%s)", document.Printable(owners[i]), j.Owners.File, tenant.Name, tenant.Position.File)
		} else if len(owners) == 0 {
			message = fmt.Sprintf("nobody owns it by %s: want an owner of tenant %s, %s", j.Owners.File, tenant.Name, document.Some(tenant.Owners, 3))
		}
		if message != "" {
			problems = append(problems, document.Problem{Position: document.Position{File: file}, Code: document.CodeTenancy, Message: message + j.of})
		}
	}
	return problems
}

// inFull says that a list of kinds takes the kind only by its whole name; empty where it takes it by a
// pattern, too.
func inFull(kind string) string {
	if kind != config.ClusterRoleBindingKind {
		return ""
	}
	return ", and have to name this kind in full: whatever is bound by it holds in all namespaces"
}

// tenancy holds the object against what its unit's tenant may bring.
func (d *draft) tenancy(id object.ID, namespaced bool) {
	isWhole := len(d.problems) == 0 // else nobody knows what its pods are
	for _, r := range d.tenants {
		refuse := func(path []any, format string, args ...any) {
			d.problem(document.CodeTenancy, path, "%s (%s)%s", fmt.Sprintf(format, args...), r.Position.File, r.of)
		}
		kind := config.KindName(id.Group, id.Kind)
		switch {
		case !namespaced && !r.ClusterKind(kind, id.Name):
			const text = "tenant %s may not have a %s of this name, which lives in no namespace: its clusterKinds are %s%s"
			refuse([]any{"kind"}, text, r.Name, kind, orNone(r.ClusterKinds), inFull(kind))
		case namespaced && !r.Kinds.Admit(kind):
			refuse([]any{"kind"}, "tenant %s may not have a %s: its kinds are %s", r.Name, kind, r.Kinds)
		}
		switch {
		case namespaced && id.Namespace != "" && !r.Namespace(id.Namespace):
			refuse([]any{"metadata", "namespace"}, "%q is no namespace of tenant %s: want %s", id.Namespace, r.Name, orAny(r.Namespaces))
		case id.Group == "" && id.Kind == "Namespace" && !r.Namespace(id.Name):
			refuse([]any{"metadata", "name"}, "%q is no namespace of tenant %s: want %s", id.Name, r.Name, orAny(r.Namespaces))
		}
		if isWhole {
			r.walls(id, d.object, refuse)
		}
		if len(r.Labels)+len(r.Annotations)+len(r.Images) > 0 {
			inside(d.object, make([]any, 0, 16), func(path []any, m map[string]any) { r.check(path, m, refuse) })
		}
	}
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func orAny(names config.Names) string {
	if len(names) == 0 {
		return "one that is neither Kubernetes' own nor swell's"
	}
	return names.String()
}

// check holds a mapping of an object against the keys and images that the tenant may
// have: metadata, wherever it is, and whatever has the shape of a container, also in custom
// resources, which call it container, script or step.
func (r ruling) check(path []any, m map[string]any, refuse refusing) {
	for _, keys := range []struct {
		field string
		admit config.Names
	}{{"labels", r.Labels}, {"annotations", r.Annotations}} {
		metadata, _ := m["metadata"].(map[string]any)
		values, _ := metadata[keys.field].(map[string]any)
		for key := range values {
			if !keys.admit.Admit(key) {
				refuse(append(slices.Clip(path), "metadata", keys.field, key), "tenant %s may not set it: its %s are %s", r.Name, keys.field, keys.admit)
			}
		}
	}
	if len(r.Images) == 0 {
		return
	}
	r.checkImage(append(slices.Clip(path), "image"), m["image"], refuse)
	volumes, _ := m["volumes"].([]any)
	for i, item := range volumes {
		volume, _ := item.(map[string]any)
		image, _ := volume["image"].(map[string]any)
		r.checkImage(append(slices.Clip(path), "volumes", i, "image", "reference"), image["reference"], refuse)
	}
}

func (r ruling) checkImage(path []any, value any, refuse refusing) {
	text, _ := value.(string)
	if text == "" {
		return
	}
	named, err := reference.ParseNormalizedNamed(text)
	switch {
	case err != nil:
		refuse(path, "%q is no image: %s", document.Shorten(text), err)
	case !r.Images.Admit(named.Name()):
		refuse(path, "%s is no image of tenant %s: want %s", named.Name(), r.Name, r.Images)
	}
}

// inside calls a function for every mapping in a value, an outer one first. The path is
// good during the call only.
func inside(value any, path []any, do func(path []any, m map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		do(path, v)
		for key, value := range v {
			if below(value) {
				inside(value, append(path, key), do)
			}
		}
	case []any:
		for i, item := range v {
			if below(item) {
				inside(item, append(path, i), do)
			}
		}
	}
}

// below says whether there may be a mapping in a value.
func below(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}
