// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"strings"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/schema"
)

// noteScaled notes each number of replicas that is not in force, because an autoscaler of the
// unit sets the number: sync/apply leaves the live one.
func (e *expansion) noteScaled() {
	scalers := map[object.ID]object.ID{}
	for _, each := range e.unjudged {
		if id := each.object.ID; id.Kind == "HorizontalPodAutoscaler" || id.Kind == "ScaledObject" {
			if scaled := scaledBy(each.content(), id.Namespace); scaled.Name != "" {
				scalers[scaled] = id
			}
		}
	}
	for _, each := range e.unjudged {
		scaler, ok := scalers[each.object.ID]
		if !ok {
			continue
		}
		if spec, _ := each.content()["spec"].(map[string]any); spec["replicas"] != nil {
			d := each.draft
			before := len(d.problems)
			d.problem(document.CodeObject, []any{"spec", "replicas"}, "not in force: %s sets the number", scaler)
			for _, note := range d.problems[before:] {
				e.note(note)
			}
			d.problems = d.problems[:before]
		}
	}
}

// content is the object, decoded.
func (u unjudged) content() map[string]any {
	if u.draft.object != nil {
		return u.draft.object
	}
	return schema.Decode(u.object.JSON)
}

// scaledBy is the object that a decoded autoscaler scales; without a name where it says none.
// That of KEDA is a Deployment unless it says something else.
func scaledBy(scaler map[string]any, namespace string) object.ID {
	spec, _ := scaler["spec"].(map[string]any)
	to, _ := spec["scaleTargetRef"].(map[string]any)
	text := func(key string) string {
		value, _ := to[key].(string)
		return value
	}
	group, _, found := strings.Cut(cmp.Or(text("apiVersion"), "apps/v1"), "/")
	if !found {
		group = ""
	}
	return object.ID{Group: group, Kind: cmp.Or(text("kind"), "Deployment"), Namespace: namespace, Name: text("name")}
}
