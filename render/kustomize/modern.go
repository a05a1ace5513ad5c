// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// writeKustomizations gives kustomize the kustomizations: what was checked, not the text that
// it was read from.
func (c *closure) writeKustomizations() {
	configured := false
	for _, k := range c.folders {
		configured = configured || document.Lookup(k.doc.Node, "configurations") != nil
	}
	for _, folder := range slices.Sorted(maps.Keys(c.folders)) {
		k := c.folders[folder]
		plain, problems := k.doc.Plain(k.doc.Node)
		c.problems = append(c.problems, problems...)
		fields, ok := plain.(map[string]any)
		if !ok {
			continue
		}
		modernize(fields, configured)
		text, err := json.Marshal(fields)
		if err != nil {
			c.problem(k.doc.Position(), document.CodeType, "%s", err)
			continue
		}
		c.write(k.doc.File, text)
	}
}

// modernize writes deprecated fields as kustomize itself understands them, so
// that it does not fill standard error with advice. Those that it runs at
// another time than their successors (patchesJson6902, vars) stay. So does
// commonLabels where configurations may say that labels go to other places.
func modernize(fields map[string]any, configured bool) {
	move := func(old, new string, list []any) {
		delete(fields, old)
		if len(list) > 0 {
			before, _ := fields[new].([]any)
			fields[new] = append(slices.Clip(before), list...)
		}
	}
	list := func(name string) []any { l, _ := fields[name].([]any); return l }
	move("bases", "resources", list("bases"))
	move("imageTags", "images", list("imageTags"))
	if merges := list("patchesStrategicMerge"); len(merges) > 0 { // kustomize runs them just before patches
		delete(fields, "patchesStrategicMerge")
		fields["patches"] = slices.Concat(mergeEntries(merges), list("patches"))
	}
	if common, ok := fields["commonLabels"].(map[string]any); ok && !configured {
		var labels []any
		if len(common) > 0 {
			labels = []any{map[string]any{"pairs": common, "includeSelectors": true}}
		}
		move("commonLabels", "labels", labels)
	}
}

// mergeEntries are entries of patchesStrategicMerge as those of patches.
func mergeEntries(merges []any) (entries []any) {
	for _, merge := range merges {
		text, ok := merge.(string)
		if !ok || !isInline(text) {
			entries = append(entries, map[string]any{"path": merge})
			continue
		}
		// Kustomize takes spaces and line breaks away around it: here comments keep them.
		text = "#\n" + text
		if strings.HasSuffix(text, "\n") {
			text += "#"
		}
		entries = append(entries, map[string]any{"patch": text})
	}
	return entries
}
