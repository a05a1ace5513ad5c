// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/schema"
)

// noteScaled notes each number of replicas that is not in force, because an autoscaler of the
// unit sets the number: sync/apply leaves the live one.
func (e *expansion) noteScaled() {
	scalers := map[object.ID]object.ID{}
	for _, each := range e.unjudged {
		if id := each.object.ID; id.IsScaler() {
			if scaled := object.ScaledBy(each.content(), id.Namespace); scaled.Name != "" {
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
