// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/schema"
)

// sealing is a draft that was checked and made final, or refused: object is nil then. What
// becomes of a document does not depend on the target, so other targets take the same one.
type sealing struct {
	draft   *draft
	object  *object.Object
	setting setting // of which target is not in it
	sets    bool    // the object is a setting
}

// sealingKey tells the sealings of a unit apart.
type sealingKey struct {
	origin any // the document, or the object of a chart's answer
	hard   *schema.Set
	space  string
}

// sealedBefore is the sealing of an object that another target of the unit has, too; nil where
// there is none, or where overrides make another object of it.
func (e *expansion) sealedBefore(src source, id string, key sealingKey) *sealing {
	known := e.sealings[key]
	if known == nil || len(e.overridesOf(src, id)) > 0 {
		return nil
	}
	return known
}

// sealOnce checks an object that is the same on all targets with its key, and takes it up.
func (e *expansion) sealOnce(src source, d *draft, key sealingKey) {
	s := e.sealing(d)
	if len(e.placed) > 1 && d.touched == nil && d.step == nil {
		if e.sealings == nil {
			e.sealings = map[sealingKey]*sealing{}
		}
		e.sealings[key] = s
	}
	e.takeUp(src, s)
}

// seal checks an object and takes it up.
func (e *expansion) seal(src source, d *draft) { e.takeUp(src, e.sealing(d)) }

// sealing checks an object.
func (e *expansion) sealing(d *draft) *sealing {
	e.noteKind(d)
	d.checks, d.fileOf = e.treatments, e.sealedFrom
	if e.world.checks.released {
		d.checks.PlainSecrets = config.Pass
	}
	s := &sealing{draft: d, object: d.seal()}
	if s.object != nil {
		s.setting, s.sets = settingOf(0, s.object, d.object)
	}
	return s
}

// takeUp takes up the object on the target, or its problems.
func (e *expansion) takeUp(src source, s *sealing) {
	for _, n := range s.draft.notes {
		e.note(n)
	}
	own := *s.draft // findings on this target are added to it
	d, o := &own, s.object
	if d.doc.Packed != nil && d.step == nil {
		defer func() { s.draft.object, d.object = nil, nil }() // judging decodes it again
	}
	if o != nil && e.policies != nil {
		if s.sets {
			s.setting.place = e.found.placement
			e.settings = append(e.settings, s.setting)
		}
		e.unjudged = append(e.unjudged, unjudged{d, o})
	}
	if len(d.problems) > 0 {
		e.found.add(d.problems...)
		return
	}
	if other := e.seen[o.ID]; other != nil {
		e.found.add(document.Problem{Position: o.Spec, Code: document.CodeDuplicate, Via: via(o.Template),
			Message: fmt.Sprintf("%s: wanted twice in this unit, first at %s", o.ID, other.Spec)})
		return
	}
	e.seen[o.ID] = o
	e.objects = append(e.objects, o)
	e.sharedNames = append(e.sharedNames, d.sharedNames...)
	e.question(src, d, o)
	if e.steps != nil {
		e.steps[o] = d.step
	}
}
