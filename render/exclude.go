// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/checker"
	"github.com/swell-sh/swell/render/kind"
)

// item is a document that was collected, and for what.
type item struct {
	*kind.Collected
	collection *kind.Collection
}

// leftOut are the items that a document of the unit is rendered without.
type leftOut map[*document.Document]map[*kind.Collected]bool

// trial is what the documents of a unit collect on one target.
type trial struct {
	doc     *document.Document // the one that is rendered
	without leftOut
	items   map[*document.Document][]item // those that may be left out
}

// takes notes an item, and says whether the document that is rendered gets it.
func (t *trial) takes(c *kind.Collection, collected *kind.Collected) bool {
	if c.OnInvalid != kind.OnInvalidExclude {
		return true
	}
	if i := (item{collected, c}); !slices.Contains(t.items[t.doc], i) {
		t.items[t.doc] = append(t.items[t.doc], i)
	}
	return !t.without[t.doc][collected]
}

// exclude finds which collected items a program refuses what was made of, and renders
// without them. What a document without any item is refused for is its own problem.
func (u *unitRenderer) exclude(placed []place, expansions []*expansion) {
	guilty := map[*document.Document][]*kind.Collected{} // of targets before
	for i, e := range expansions {
		without := leftOut{}
		for _, src := range u.sources {
			if f := u.firstFinding(e, src.doc); f != nil && len(e.trial.items[src.doc]) > 0 && !f.Retry {
				s := search{u, placed[i], src, e.trial.items[src.doc]}
				if out := s.find(guilty[src.doc]); len(out) > 0 {
					without[src.doc] = out
				}
			}
		}
		if len(without) == 0 {
			continue
		}
		u.found.placement = i
		u.settings = slices.DeleteFunc(u.settings, func(s setting) bool { return s.place == i })
		expansions[i] = u.expandAt(placed[i], without)
		u.ask(expansions[i])
		for doc, items := range without {
			for collected := range items {
				if !slices.Contains(guilty[doc], collected) {
					guilty[doc] = append(guilty[doc], collected)
				}
			}
		}
	}
}

// firstFinding is the first one about the objects of a document; nil when there is none.
func (u *unitRenderer) firstFinding(e *expansion, doc *document.Document) *checker.Finding {
	for i := range e.questions {
		if q := &e.questions[i]; q.src.doc == doc {
			if verdict := u.answers[q.key()]; len(verdict.Findings) > 0 {
				return &checker.Finding{Text: q.message(verdict.Findings[0]), Retry: verdict.Retry()}
			}
		}
	}
	return nil
}

// search finds the items that a document has to be rendered without on one target.
type search struct {
	*unitRenderer
	place place
	src   source
	items []item
}

// maxConflicts is how many items are left out that are refused only beside others. More
// are a problem of the collector.
const maxConflicts = 16

// find lists the items to leave out; none when the document is refused whatever it
// collects. known are those of other targets, which are tried first.
func (s *search) find(known []*kind.Collected) map[*kind.Collected]bool {
	if why := s.judge([]item{})[0]; why != nil {
		return nil
	}
	out := map[*kind.Collected]bool{}
	suspects := slices.DeleteFunc(slices.Clone(s.items), func(i item) bool { return !slices.Contains(known, i.Collected) })
	for _, list := range [][]item{suspects, s.items} {
		if !s.alone(list, out) {
			return nil
		}
		if len(list) > 0 && s.judge(s.rest(out))[0] == nil {
			return out
		}
	}
	for range maxConflicts {
		if !s.conflict(out) {
			return nil
		}
		if s.judge(s.rest(out))[0] == nil {
			return out
		}
	}
	return nil
}

// rest are the items that are not left out.
func (s *search) rest(out map[*kind.Collected]bool) []item {
	return slices.DeleteFunc(slices.Clone(s.items), func(i item) bool { return out[i.Collected] })
}

// alone judges each of the items alone. ok is false when one could not be judged.
func (s *search) alone(items []item, out map[*kind.Collected]bool) (ok bool) {
	sets := make([][]item, len(items))
	for i := range items {
		sets[i] = items[i : i+1]
	}
	for i, why := range s.judge(sets...) {
		switch {
		case why == nil:
		case why.Retry:
			return false
		default:
			s.leave(items[i], why.Text, out)
		}
	}
	return true
}

// conflict leaves out the first item that is refused with those before it, although not
// alone. ok is false when there is none.
func (s *search) conflict(out map[*kind.Collected]bool) (ok bool) {
	rest := s.rest(out)
	good, bad := 0, len(rest) // so many from the front pass, and do not
	var last *checker.Finding
	for bad-good > 1 {
		half := (good + bad) / 2
		why := s.judge(rest[:half])[0]
		if why != nil && why.Retry {
			return false
		}
		if why == nil {
			good = half
		} else {
			bad, last = half, why
		}
	}
	if last == nil {
		last = s.judge(rest[:bad])[0]
	}
	if bad == 0 || last == nil || last.Retry {
		return false
	}
	s.leave(rest[bad-1], "beside those before it: "+last.Text, out)
	return true
}

// leave leaves out an item: a note of this unit, and a problem of its own.
func (s *search) leave(i item, why string, out map[*kind.Collected]bool) {
	if out[i.Collected] {
		return
	}
	out[i.Collected] = true
	s.leaveOut(i.collection, i.Position(), why)
	blame := document.Problem{Position: i.Position(), Code: document.CodeChecker, Unit: string(i.Unit()),
		Message: fmt.Sprintf("%s collects this without success: %s", s.unit.Path, why)}
	if !slices.ContainsFunc(s.blames, func(p document.Problem) bool { return sameProblem(p, blame) }) {
		s.blames = append(s.blames, blame)
	}
}

// judge renders the document with each of these sets of items, and tells what is found
// first; nil where nothing is.
func (s *search) judge(sets ...[]item) []*checker.Finding {
	expansions := make([]*expansion, len(sets))
	for i, set := range sets {
		expansions[i] = s.render(set)
	}
	s.ask(expansions...)
	found := make([]*checker.Finding, len(sets))
	for i, e := range expansions {
		if found[i] = s.firstFinding(e, s.src.doc); found[i] == nil && len(e.found.problems) > 0 {
			found[i] = &checker.Finding{Text: e.found.problems[0].Message}
		}
	}
	return found
}

// render renders the document alone with some of the items, aside: what is wrong then is
// not the unit's problem. What was read counts.
func (s *search) render(set []item) *expansion {
	without := map[*kind.Collected]bool{}
	for _, i := range s.items {
		if !slices.Contains(set, i) {
			without[i.Collected] = true
		}
	}
	aside := *s.unitRenderer
	aside.sources = []source{s.src}
	aside.found = targetProblems{}
	aside.settings, aside.values, aside.rendered, aside.notes, aside.noted = nil, nil, nil, nil, nil
	e := aside.expandAt(s.place, leftOut{s.src.doc: without})
	s.reads, s.secrets = aside.reads, aside.secrets
	return e
}
