// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
)

// maxApplications is how many Applications one ApplicationSet may make.
const maxApplications = 100_000

// notHere are generators that ask something else than the tree.
var notHere = map[string]string{
	"pullRequest": "asks a forge for pull requests", "scmProvider": "asks a forge for repositories",
	"clusterDecisionResource": "asks objects in a cluster", "plugin": "asks a program",
	"merge": "merges the parameters of others",
}

// applicationSet takes up the Applications that a set makes.
func (a *argo) applicationSet(o *object) {
	if o.text("spec", "templatePatch") != "" {
		a.leave(o, "spec.templatePatch", "cannot be carried over", "write the Applications out")
		return
	}
	if o.at("spec", "strategy") != nil {
		a.leave(o, "spec.strategy", "swell goes through clusters in the waves of a Rollout", "write its steps as waves into a Rollout of the fleet")
	}
	goTemplate, _ := o.at("spec", "goTemplate").(bool)
	t := &argoTemplate{goTemplate: goTemplate, options: textsAt(o.value, "spec", "goTemplateOptions")}
	for _, generator := range listAt(o.value, "spec", "generators") {
		all, err := a.generate(o, t, generator)
		if err != nil {
			a.leave(o, "spec.generators", err.Error(), "write the Applications out, each in a document")
			continue
		}
		for _, params := range all {
			made, err := t.value(o.at("spec", "template"), params)
			if err != nil {
				a.leave(o, "spec.template", err.Error(), "mend it")
				break
			}
			value, _ := made.(map[string]any)
			if value == nil {
				a.leave(o, "spec.template", "it has none", "mend it")
				break
			}
			value = maps.Clone(value)
			value["apiVersion"], value["kind"] = o.apiVersion(), "Application"
			app := &object{doc: o.doc, value: value, made: true}
			if app.namespace() == "" && mapAt(value, "metadata") != nil {
				mapAt(value, "metadata")["namespace"] = o.namespace()
			}
			a.objects = append(a.objects, app)
		}
	}
}

// generate are the parameters that a generator gives.
func (a *argo) generate(o *object, t *argoTemplate, generator any) (all []map[string]any, err error) {
	spec, _ := generator.(map[string]any)
	if mapAt(spec, "template", "spec") != nil {
		return nil, errors.New("a template of its own cannot be carried over")
	}
	for _, name := range sortedKeys(spec) {
		switch name {
		case "selector", "template":
			continue
		case "list":
			all, err = t.list(spec[name])
		case "git":
			all, err = a.git(t, spec[name])
		case "clusters":
			all, err = a.clusterParams(t, spec[name])
		case "matrix":
			all, err = a.matrix(o, t, spec[name])
		default:
			why := notHere[name]
			if why == "" {
				why = "is not known"
			}
			return nil, fmt.Errorf("the generator %s cannot be carried over: it %s", name, why)
		}
		if err != nil {
			return nil, fmt.Errorf("the generator %s: %w", name, err)
		}
	}
	if labels := mapAt(spec, "selector", "matchLabels"); labels != nil {
		all = slices.DeleteFunc(all, func(params map[string]any) bool { return !t.has(params, labels) })
	}
	if listAt(spec, "selector", "matchExpressions") != nil {
		return nil, errors.New("selector.matchExpressions cannot be carried over")
	}
	if len(all) > maxApplications {
		return nil, fmt.Errorf("it makes %d Applications, want at most %d", len(all), maxApplications)
	}
	return all, nil
}

// has says whether parameters have some values.
func (t *argoTemplate) has(params, values map[string]any) bool {
	flat := flatten(params)
	for key, value := range values {
		if fmt.Sprint(flat[key]) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}

// list are the elements of a list generator.
func (t *argoTemplate) list(spec any) (all []map[string]any, err error) {
	if textAt(spec, "elementsYaml") != "" {
		return nil, errors.New("elementsYaml cannot be carried over")
	}
	for _, element := range listAt(spec, "elements") {
		params, ok := element.(map[string]any)
		if !ok {
			return nil, errors.New("an element is no mapping")
		}
		all = append(all, t.params(params))
	}
	return all, nil
}

// params are parameters as templates find them: nested for Go's, flat for the others.
func (t *argoTemplate) params(nested map[string]any) map[string]any {
	if t.goTemplate {
		return nested
	}
	return flatten(nested)
}

// flatten makes {a: {b: c}} {a.b: c}, and lists {l[0]: ...}.
func flatten(nested map[string]any) map[string]any {
	flat := map[string]any{}
	var add func(at string, value any)
	add = func(at string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, below := range v {
				name := key
				if at != "" {
					name = at + "." + key
				}
				add(name, below)
			}
		case []any:
			for i, below := range v {
				add(fmt.Sprintf("%s[%d]", at, i), below)
			}
		default:
			flat[at] = value
		}
	}
	add("", nested)
	return flat
}

// git are the folders or files of this repository that a generator picks.
func (a *argo) git(t *argoTemplate, spec any) (all []map[string]any, err error) {
	if repo := textAt(spec, "repoURL"); !a.isOwn(repo) {
		return nil, fmt.Errorf("it reads another repository, %s", quoted(repo))
	}
	prefix := textAt(spec, "pathParamPrefix")
	var picked []map[string]any
	if directories := listAt(spec, "directories"); len(directories) > 0 {
		for _, folder := range a.folders() {
			if picks(directories, folder) {
				picked = append(picked, t.pathParams(folder, prefix, nil))
			}
		}
	}
	for _, item := range listAt(spec, "files") {
		found, err := a.paramFiles(t, textAt(item, "path"), prefix)
		if err != nil {
			return nil, err
		}
		picked = append(picked, found...)
	}
	return t.withValues(picked, mapAt(spec, "values"))
}

// folders are all of the tree, sorted.
func (r *reader) folders() (all []string) {
	for folder, names := range r.below {
		for _, name := range names {
			if strings.HasSuffix(name, "/") {
				all = append(all, path.Join(folder, name))
			}
		}
	}
	slices.Sort(all)
	return all
}

// picks says whether the last of the patterns that match a folder takes it.
func picks(patterns []any, folder string) bool {
	picked := false
	for _, item := range patterns {
		ok, err := path.Match(strings.TrimSuffix(textAt(item, "path"), "/"), folder)
		if err != nil || !ok {
			continue
		}
		if exclude, _ := valueAt(item, "exclude").(bool); exclude {
			return false
		}
		picked = true
	}
	return picked
}

// paramFiles are the parameters in files that a pattern matches.
func (a *argo) paramFiles(t *argoTemplate, pattern, prefix string) (all []map[string]any, err error) {
	for _, folder := range append(a.folders(), ".") {
		for _, name := range a.below[folder] {
			file := path.Join(folder, name)
			if strings.HasSuffix(name, "/") || !config.IsYAML(name) && path.Ext(name) != ".json" || !matchGlob(pattern, file) {
				continue
			}
			text, err := a.tree.ReadFile(file)
			var value any
			if err == nil {
				err = yaml.Unmarshal(text, &value)
			}
			list, isList := value.([]any)
			if !isList {
				list = []any{value}
			}
			for _, item := range list {
				params, ok := item.(map[string]any)
				if err != nil || !ok {
					return nil, fmt.Errorf("%s: want YAML or JSON with a mapping", file)
				}
				all = append(all, t.pathParams(file, prefix, params))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a["path"]), fmt.Sprint(b["path"])) })
	return all, nil
}

// pathParams adds what templates find of a path to parameters.
func (t *argoTemplate) pathParams(name, prefix string, params map[string]any) map[string]any {
	folder, file := name, ""
	if params != nil {
		folder, file = path.Dir(name), path.Base(name)
	}
	base := path.Base(folder)
	var segments []any
	for _, segment := range strings.Split(folder, "/") {
		segments = append(segments, segment)
	}
	about := map[string]any{"path": folder, "basename": base, "basenameNormalized": normalizeName(base), "segments": segments}
	if file != "" {
		about["filename"], about["filenameNormalized"] = file, normalizeName(file)
	}
	if t.goTemplate {
		params = maps.Clone(params)
		if params == nil {
			params = map[string]any{}
		}
		if prefix != "" {
			params[prefix] = map[string]any{"path": about}
		} else {
			params["path"] = about
		}
		return params
	}
	flat := flatten(params)
	if prefix != "" {
		prefix += "."
	}
	flat[prefix+"path"] = folder
	for key, value := range about {
		if text, ok := value.(string); ok && key != "path" {
			flat[prefix+"path."+key] = text
		}
	}
	for i, segment := range segments {
		flat[fmt.Sprintf("%spath[%d]", prefix, i)] = segment
	}
	return flat
}

// withValues adds the values of a generator, which may have parameters in them.
func (t *argoTemplate) withValues(all []map[string]any, values map[string]any) ([]map[string]any, error) {
	if len(values) == 0 {
		return all, nil
	}
	for i, params := range all {
		made, err := t.value(values, params)
		if err != nil {
			return nil, err
		}
		params = maps.Clone(params)
		nested, _ := made.(map[string]any)
		if t.goTemplate {
			params["values"] = nested
		} else {
			maps.Copy(params, flatten(map[string]any{"values": nested}))
		}
		all[i] = params
	}
	return all, nil
}

// clusterParams are the clusters that Secrets of the tree name, or else those that the user
// named.
func (a *argo) clusterParams(t *argoTemplate, spec any) (all []map[string]any, err error) {
	labels := mapAt(spec, "selector", "matchLabels")
	if listAt(spec, "selector", "matchExpressions") != nil {
		return nil, errors.New("selector.matchExpressions cannot be carried over")
	}
	add := func(name, server string, own map[string]any) {
		about := map[string]any{"name": name, "nameNormalized": normalizeName(name), "server": server, "metadata": map[string]any{"labels": own}}
		all = append(all, t.params(about))
	}
	if len(a.labels) == 0 {
		if len(labels) > 0 {
			return nil, errors.New("it picks clusters by labels of Secrets that are not in the repository")
		}
		if len(a.options.Clusters) == 0 {
			return nil, errors.New("the clusters are in Secrets that are not in the repository: name them by --cluster")
		}
		for _, name := range a.options.Clusters {
			server := "https://" + name
			a.clusters[server] = name
			add(name, server, map[string]any{})
		}
		return t.withValues(all, mapAt(spec, "values"))
	}
	for _, server := range sortedKeys(a.clusters) {
		name := a.clusters[server]
		own := a.labels[name]
		if own == nil && (len(labels) > 0 || name != "in-cluster") {
			continue
		}
		matches := true
		for key, value := range labels {
			matches = matches && own[key] == value
		}
		if matches {
			add(name, server, own)
		}
	}
	return t.withValues(all, mapAt(spec, "values"))
}

// matrix are the combinations of two generators; the second may use parameters of the first.
func (a *argo) matrix(o *object, t *argoTemplate, spec any) (all []map[string]any, err error) {
	generators := listAt(spec, "generators")
	if len(generators) != 2 {
		return nil, fmt.Errorf("want two generators, got %d", len(generators))
	}
	first, err := a.generate(o, t, generators[0])
	if err != nil {
		return nil, err
	}
	for _, params := range first {
		made, err := t.value(generators[1], params)
		if err != nil {
			return nil, err
		}
		second, err := a.generate(o, t, made)
		if err != nil {
			return nil, err
		}
		for _, more := range second {
			both := maps.Clone(params)
			maps.Copy(both, more)
			if all = append(all, both); len(all) > maxApplications {
				return nil, fmt.Errorf("it makes more than %d Applications", maxApplications)
			}
		}
	}
	return all, nil
}
