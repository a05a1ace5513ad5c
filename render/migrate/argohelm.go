// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"sigs.k8s.io/yaml"
)

// matchGlob says whether a pattern of Argo CD matches.
func matchGlob(pattern, name string) bool {
	ok, err := doublestar.Match(pattern, name)
	return ok && err == nil
}

// helmValues gives a chart the values of an Application. off says why these are not all.
func (a *argo) helmValues(o *object, field string, options map[string]any, refs map[string]bool, folder string, chart *helmChart) (off string) {
	missing, _ := options["ignoreMissingValueFiles"].(bool)
	for _, file := range textsAt(options, "valueFiles") {
		name, why := a.valuesFile(file, refs, folder)
		switch {
		case why == "":
			chart.ValuesFrom = append(chart.ValuesFrom, name)
		case !missing || name == "":
			off = "a file of values is not in the repository"
			a.leave(o, field+".helm.valueFiles", fmt.Sprintf("%s: %s", quoted(file), why), "name the file in valuesFrom of the unit's chart.yaml, then take `unit: false` away")
		}
	}
	values := map[string]any{}
	if text := textAt(options, "values"); text != "" {
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			off = "its values are no YAML"
			a.leave(o, field+".helm.values", off, "mend them")
		}
	}
	if object := mapAt(options, "valuesObject"); object != nil {
		values = object
	}
	values = mergeValues(values, nil)
	for _, item := range listAt(options, "parameters") {
		name, value := textAt(item, "name"), fmt.Sprint(valueAt(item, "value"))
		force, _ := valueAt(item, "forceString").(bool)
		if !setValue(values, name, value, force) {
			off = "a parameter cannot be carried over"
			a.leave(o, field+".helm.parameters", fmt.Sprintf("%s: lists and escapes of --set are not read", quoted(name)), "write it into values.yaml beside the unit's chart.yaml, then take `unit: false` away")
		}
	}
	if len(listAt(options, "fileParameters")) > 0 {
		off = "a parameter cannot be carried over"
		a.leave(o, field+".helm.fileParameters", "values from single files are not read", "write them into values.yaml beside the unit's chart.yaml, then take `unit: false` away")
	}
	chart.Values = values
	return off
}

// valuesFile is the path in the tree of a file of values; why says why there is none.
func (a *argo) valuesFile(file string, refs map[string]bool, folder string) (name, why string) {
	if strings.Contains(file, "://") {
		return "", "swell fetches nothing"
	}
	if ref, rest, ok := strings.Cut(file, "/"); ok && strings.HasPrefix(ref, "$") {
		own, known := refs[ref[1:]]
		if !known || !own {
			return "", "it is in another repository"
		}
		file = "/" + rest
	}
	name = path.Join(folder, file)
	if strings.HasPrefix(file, "/") {
		name = strings.TrimPrefix(path.Clean(file), "/")
	}
	switch {
	case name == ".." || strings.HasPrefix(name, "../"):
		return "", "leads out of the repository"
	case !a.isThere(name):
		return name, "no such file"
	}
	return name, ""
}

// setValue sets a value as --set of Helm does; false for what it takes to be lists and
// escapes.
func setValue(values map[string]any, name, value string, force bool) bool {
	if strings.ContainsAny(name, `[]{}\,=`) || !force && strings.ContainsAny(value, `{}\,`) || name == "" {
		return false
	}
	steps := strings.Split(name, ".")
	for _, step := range steps[:len(steps)-1] {
		below, isMap := values[step].(map[string]any)
		if !isMap {
			below = map[string]any{}
		} else {
			below = mergeValues(below, nil)
		}
		values[step] = below
		values = below
	}
	last := steps[len(steps)-1]
	values[last] = value
	if force {
		return true
	}
	switch number, err := strconv.ParseInt(value, 10, 64); {
	case value == "true" || value == "false":
		values[last] = value == "true"
	case value == "null":
		values[last] = nil
	case err == nil && (value == "0" || !strings.HasPrefix(value, "0")):
		values[last] = number
	}
	return true
}
