// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
)

// variables are those of spec.postBuild; nil when there are none.
func (c *fluxCluster) variables(o *object) (map[string]string, error) {
	var vars map[string]string
	set := func(name, value string) {
		if vars == nil {
			vars = map[string]string{}
		}
		vars[name] = value
	}
	for _, from := range listAt(o.value, "spec", "postBuild", "substituteFrom") {
		kind, name := textAt(from, "kind"), textAt(from, "name")
		optional, _ := valueAt(from, "optional").(bool)
		if kind != "ConfigMap" {
			return nil, fmt.Errorf("its values are in the %s %s, which swell does not read", kind, quoted(name))
		}
		found := c.object("", kind, o.namespace(), name)
		switch {
		case found != nil:
			for key, value := range mapAt(found.value, "data") {
				set(key, strings.ReplaceAll(fmt.Sprint(value), "\n", ""))
			}
		case !optional:
			return nil, fmt.Errorf("its values are in the ConfigMap %s, which is not in the repository", quoted(name))
		}
	}
	for name, value := range mapAt(o.value, "spec", "postBuild", "substitute") {
		set(name, fmt.Sprint(value))
	}
	for name := range vars {
		if !variableName.MatchString(name) {
			return nil, fmt.Errorf("%s is no name of a variable", quoted(name))
		}
	}
	return vars, nil
}

var variableName = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

// substitute replaces ${variables} in an object as Flux does: in its text as YAML, so that a
// value may become a number.
func substitute(o *object, vars map[string]string) (*object, error) {
	const disabled = "kustomize.toolkit.fluxcd.io/substitute"
	if o.text("metadata", "labels", disabled) == "disabled" || o.text("metadata", "annotations", disabled) == "disabled" {
		return o, nil
	}
	text := yamlText(o.value)
	if !strings.Contains(text, "$") {
		return o, nil
	}
	output, err := envsubst.Eval(text, func(name string) (string, bool) { return vars[name], true })
	if err != nil {
		return nil, fmt.Errorf("its text cannot be substituted: %w", err)
	}
	if output == text {
		return o, nil
	}
	var value map[string]any
	if err := yaml.Unmarshal([]byte(output), &value); err != nil || value == nil {
		return nil, fmt.Errorf("it is no YAML once its variables are replaced")
	}
	return &object{doc: o.doc, value: value}, nil
}

// substitutions are patches of kustomize that make the objects of one list those of the
// other. Each tests what it replaces: should the file change, it fails, and does not
// bring back what was there.
func substitutions(from, to []*object) (patches []any) {
	for i, was := range from {
		ops := difference("", normal(was.value), normal(to[i].value), nil)
		if len(ops) == 0 {
			continue
		}
		patch := map[string]any{"target": was.target(), "patch": yamlText(ops)}
		if was.id() != to[i].id() {
			patch["options"] = map[string]any{"allowNameChange": true}
		}
		patches = append(patches, patch)
	}
	return patches
}

// sameObjects says whether two lists hold the same objects, in any order.
func sameObjects(a, b []*object) bool {
	text := func(list []*object) (texts []string) {
		for _, o := range list {
			texts = append(texts, yamlText(o.value))
		}
		slices.Sort(texts)
		return texts
	}
	return slices.Equal(text(a), text(b))
}

// normal are values as JSON has them.
func normal(value any) any {
	var out any
	_ = yaml.Unmarshal([]byte(yamlText(value)), &out)
	return out
}

// difference adds the operations of RFC 6902 that make one value the other.
func difference(at string, was, is any, ops []any) []any {
	a, isMap := was.(map[string]any)
	b, bothMaps := is.(map[string]any)
	if isMap && bothMaps {
		for _, key := range sortedKeys(a) {
			below := at + "/" + config.PointerSegment(key)
			if _, stays := b[key]; !stays {
				ops = append(ops, map[string]any{"op": "remove", "path": below})
				continue
			}
			ops = difference(below, a[key], b[key], ops)
		}
		for _, key := range sortedKeys(b) {
			if _, there := a[key]; !there {
				below := at + "/" + config.PointerSegment(key)
				ops = append(ops, map[string]any{"op": "add", "path": below, "value": b[key]})
			}
		}
		return ops
	}
	x, isList := was.([]any)
	y, bothLists := is.([]any)
	if isList && bothLists && len(x) == len(y) {
		for i := range x {
			ops = difference(fmt.Sprintf("%s/%d", at, i), x[i], y[i], ops)
		}
		return ops
	}
	if reflect.DeepEqual(was, is) {
		return ops
	}
	return append(ops, map[string]any{"op": "test", "path": at, "value": was}, map[string]any{"op": "replace", "path": at, "value": is})
}

func yamlText(value any) string {
	text, _ := yaml.Marshal(value) // plain values: no error
	return string(text)
}
