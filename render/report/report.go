// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package report composes what a reviewer reads of a change: a comment on a pull request, or
// the page behind it.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/render/impact"
)

// Change is what is known of a change. The zero value is a change of nothing. It is used by one
// goroutine at a time, and its report stays as it is.
type Change struct {
	// Base and Head name what is compared, as "main 1234abcd".
	Base, Head string
	// Aside says why Base is not the newest commit of its branch: a sentence. Empty: it is.
	Aside string
	// Report is what the daemon makes of it; nil when head was refused as a whole.
	Report *diff.Report
	// Problems are those that head has and base does not, and Before those of both.
	Problems, Before document.Problems
	// BaseHeld says that nothing can be compared with base: its fleet's documents have
	// problems, and those of head have none.
	BaseHeld bool
	// Impact is what a change of kinds or definitions does; nil when none changed.
	Impact *impact.Report
	// Rules are the rules that the change edits, a line each, see [config.RuleLines].
	Rules []string
	// Alone says that it edits nothing else: they count at once. Else those of the base judge it
	// too.
	Alone bool
	// Both are paths that changed in base, too, since the change was begun.
	Both []string
	// Fork says that it comes from another repository.
	Fork bool
	// Releases says how the change goes through waves and gates, and who approves: lines of
	// text.
	Releases string
	// More is a command that shows all of it, and Link the URL where it is shown, which is
	// the better of the two. Either may be empty.
	More, Link string

	alike []*group // of the report, once they are known
}

// Unmoved is the change without the commit that it is compared with. While it stays the
// same, so does what a reviewer has to know, however often the base moves.
func (c *Change) Unmoved() *Change {
	unmoved := *c
	unmoved.Base, unmoved.Link = "the base", ""
	return &unmoved
}

// IsNothing says that there is nothing to tell: no object changes, and nothing is wrong.
func (c *Change) IsNothing() bool {
	verdict, _ := c.Verdict()
	return verdict == Good && !c.BaseHeld && len(c.Rules) == 0 && (c.Report == nil || c.Report.IsNothing()) && (c.Impact == nil || len(c.impactLines()) == 0)
}

// judges says which rules judge a change that edits some.
func (c *Change) judges() string {
	if c.Alone {
		return "It edits nothing else, so they count at once."
	}
	return "Those of the base judge it too, and its releases go by the stricter of both."
}

// Verdict is what a commit status says of a change.
type Verdict string

const (
	Good Verdict = "good"
	Bad  Verdict = "bad" // it must not be merged as it is
)

// Verdict is that of the change, with a line of text that says why: no text of an author is
// in it.
func (c *Change) Verdict() (Verdict, string) {
	problems := len(c.Problems)
	switch {
	case c.BaseHeld && problems > 0:
		return Good, "mends the fleet's documents: there is nothing to compare it with; " + document.Count(problems, "problem") + " in units may be older"
	case c.BaseHeld:
		return Good, "mends the fleet's documents: there is nothing to compare it with"
	case problems > 0 && c.Report == nil:
		return Bad, document.Count(problems, "problem") + " in the fleet's documents: nothing would be taken from it"
	case problems > 0:
		return Bad, document.Count(problems, "problem")
	case c.Report == nil && len(c.Before) > 0:
		return Bad, "the fleet's documents have problems already: nothing would be taken from it"
	case c.Report == nil:
		return Good, "no changes"
	case c.Report.Refused != "":
		return Bad, "nothing would be taken from it"
	}
	text := c.Summary()
	if slices.ContainsFunc(c.Report.Kept, diff.Kept.Wholly) || len(c.of(diff.Refused))+len(c.Report.Unreached()) > 0 {
		return Bad, text
	}
	return Good, text
}

// Summary counts in a line what the change does to objects, or to rules where no object changes.
func (c *Change) Summary() string {
	text := c.Report.Summary()
	if rest, ok := strings.CutPrefix(text, "no changes"); ok && len(c.Rules) > 0 {
		return document.Count(len(c.Rules), "rule") + " edited, no objects change" + rest
	}
	return text
}

// held counts the objects that are deleted after an approval.
func (c *Change) held() (n int) {
	for i := range c.Report.Changes {
		if c.Report.Changes[i].Action == diff.Held {
			n += len(c.Report.Changes[i].Targets)
		}
	}
	return n
}

// releaseLines say how the change goes on after the merge.
func (c *Change) releaseLines() (lines []string) {
	if c.Report != nil && c.Report.Refused == "" {
		if held := c.held(); held > 0 {
			lines = append(lines, fmt.Sprintf("%s wait for an approval: swell approve lists them", document.Count(held, "deletion")))
		}
		if text := c.Report.Restarts(); text != "" {
			lines = append(lines, text)
		}
	}
	if text := strings.TrimSuffix(c.Releases, "\n"); text != "" {
		lines = append(lines, strings.Split(text, "\n")...)
	}
	return lines
}

// going are the actions after which an object is swell's no more.
var going = []diff.Action{diff.Deleted, diff.Held, diff.Released, diff.Forgotten}

// of are the changes of some actions, without their fields.
func (c *Change) of(actions ...diff.Action) (changes []diff.Change) {
	if c.Report == nil {
		return nil
	}
	for _, change := range c.Report.Changes {
		if slices.Contains(actions, change.Action) {
			change.Fields, change.Content, change.Variants, change.Risks = nil, nil, nil, nil
			change.Restart = nil
			changes = append(changes, change)
		}
	}
	return changes
}

// group is units that change alike.
type group struct {
	units    []config.UnitPath
	changes  [][]diff.Change // of each
	withheld []diff.Kept     // what waits for approval, of the first
	targets  map[config.TargetName]bool
	objects  int
}

// groups are the units that change, those with the most objects first.
func (c *Change) groups() []*group {
	if c.alike == nil && c.Report != nil {
		c.alike = groupsOf(c.Report)
	}
	return c.alike
}

// changing are the groups, but for those that only go, where these are shown by themselves.
func (c *Change) changing(shown bool) []*group {
	if !shown {
		return c.groups()
	}
	return slices.DeleteFunc(slices.Clone(c.groups()), func(g *group) bool {
		return !slices.ContainsFunc(g.changes[0], func(change diff.Change) bool { return !slices.Contains(going, change.Action) })
	})
}

func groupsOf(r *diff.Report) []*group {
	var all []*group
	known, withheld := map[string]*group{}, map[config.UnitPath][]diff.Kept{}
	for _, k := range r.Withheld {
		withheld[k.Unit] = append(withheld[k.Unit], k)
	}
	for rest := r.Changes; len(rest) > 0; {
		unit, n := rest[0].Unit, 1
		for n < len(rest) && rest[n].Unit == unit {
			n++
		}
		changes := rest[:n]
		rest = rest[n:]
		key := likeness(unit, changes, withheld[unit])
		g := known[key]
		if g == nil {
			g = &group{withheld: withheld[unit], targets: map[config.TargetName]bool{}}
			known[key] = g
			all = append(all, g)
		}
		g.units, g.changes = append(g.units, unit), append(g.changes, changes)
		for i := range changes {
			g.objects += len(changes[i].Targets)
			for _, t := range changes[i].Targets {
				g.targets[t] = true
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *group) int { return cmp.Compare(b.objects, a.objects) })
	return all
}

// likeness is the same for units that change alike, but for their names and targets, and of
// which the same waits for approval. The whole content of created objects counts, also where it is not shown.
func likeness(unit config.UnitPath, changes []diff.Change, withheld []diff.Kept) string {
	var b strings.Builder
	one := diff.Report{}
	for _, change := range changes {
		change.Unit, change.Targets = "", nil
		one.Changes = append(one.Changes, change)
	}
	for _, k := range withheld {
		fmt.Fprintf(&b, "withheld %q %q\n", k.Targets, k.Reason)
	}
	_ = one.WriteUnits(&b) // to memory
	for _, change := range changes {
		if err := json.NewEncoder(&b).Encode(change.Content); err != nil {
			panic(err) // it came out of JSON
		}
	}
	return withoutName(b.String(), path.Base(string(unit)))
}

// withoutName puts a star for a name wherever it stands as a word of its own, or at the begin
// or the end of one with hyphens.
func withoutName(text, name string) string {
	isPart := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	var b strings.Builder
	for {
		at := strings.Index(text, name)
		if at < 0 || name == "" {
			b.WriteString(text)
			return b.String()
		}
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(name):])
		b.WriteString(text[:at])
		if at > 0 && isPart(before) || at+len(name) < len(text) && isPart(after) {
			b.WriteString(name)
		} else {
			b.WriteByte('*')
		}
		text = text[at+len(name):]
	}
}
