// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/render/impact"
	"github.com/swell-sh/swell/sync"
)

// renderBase renders the revision that a change goes to, and has its repository judge what the
// compiler renders from now on. It is nil without a name.
func (p *repoFlags) renderBase(ctx context.Context, compiler *render.Compiler, name string) (*render.Snapshot, error) {
	if name == "" {
		return nil, nil
	}
	base, err := p.accepted(ctx, compiler, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--base: %w", err)
	case base.Held:
		return nil, fmt.Errorf("--base %s: its documents of the fleet have problems, so they cannot judge: %s", name, base.Problems[0])
	}
	compiler.Base = base.Repository
	return base, nil
}

// renderSince renders the revision whose problems do not count. It is nil without a name.
func (p *repoFlags) renderSince(ctx context.Context, compiler *render.Compiler, name string) (*render.Snapshot, error) {
	if name == "" {
		return nil, nil
	}
	earlier, err := p.accepted(ctx, compiler, name)
	if err != nil {
		return nil, fmt.Errorf("--changed-since: %w", err)
	}
	return earlier, nil
}

// refusals are the changes since a revision that API servers refuse: of fields that nobody may change.
// The compiler made head last.
func refusals(base, head *render.Snapshot, compiler *render.Compiler) (problems document.Problems, err error) {
	if head.Held {
		return nil, nil
	}
	r, err := sync.Preview(base, head, compiler, config.DefaultGuard)
	if err != nil {
		return nil, err
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		if c.Action != diff.Refused {
			continue
		}
		bundle, err := head.Bundle(c.Unit, c.Targets[0])
		if err != nil {
			return nil, err
		}
		position := document.Position{File: string(c.Unit)}
		if o := bundle.Find(c.IDs[0]); o != nil {
			position = o.Spec
		}
		problems = append(problems, document.Problem{Position: position, Unit: string(c.Unit), Code: document.CodeObject,
			Message: fmt.Sprintf("%s on %s: %s", c.Object, diff.Targets(c.Targets, maxTargets), c.Reason)})
	}
	return problems, nil
}

// judgeChange adds the problems of the change since a revision, which is nil where none is named: what
// API servers refuse of it and, where all is asked about, what its changes of kinds break.
func (c *checked) judgeChange(ctx context.Context, where *repoFlags, compiler *render.Compiler, base *render.Snapshot) error {
	if base == nil {
		return nil
	}
	refused, err := refusals(base, c.Snapshot, compiler)
	if err != nil {
		return err
	}
	for _, problem := range refused {
		if config.Within(problem.Unit, c.below) {
			c.Problems = append(c.Problems, problem)
		}
	}
	if c.below == "" {
		breaks, err := where.breaks(ctx, compiler, base, c.Snapshot)
		if err != nil {
			return err
		}
		c.Problems = append(breaks, c.Problems...)
	}
	c.Problems = c.Problems.Sorted()
	return nil
}

// maxTargets is how many targets a problem names.
const maxTargets = 3

// breaks are the breaking changes of kinds and definitions since a revision.
func (p *repoFlags) breaks(ctx context.Context, compiler *render.Compiler, base, head *render.Snapshot) (document.Problems, error) {
	touched := impact.Touched(base.Repository, head.Repository)
	if head.Held || !touched && !impact.Redefined(base.Repository.Tree, head) {
		return nil, nil
	}
	s := states{base: base, head: head}
	var err error
	if touched {
		if s.mixed, err = p.compile(ctx, compiler, "", impact.Tree(base.Repository, head.Repository)); err != nil {
			return nil, err
		}
	}
	report, err := s.judge()
	if err != nil {
		return nil, err
	}
	return report.Problems(), nil
}

// addLost adds the problems that units of the base, or else of an earlier snapshot, are not
// there any more although nobody removed them.
func (c *checked) addLost(base *config.Repository, earlier *render.Snapshot) {
	if base == nil && earlier != nil {
		base = earlier.Repository
	}
	if base == nil || c.Held {
		return
	}
	for _, problem := range c.Lost(base) {
		if config.Within(problem.Unit, c.below) {
			c.Problems = append(c.Problems, problem)
			c.lost++
		}
	}
	c.Problems = c.Problems.Sorted()
}

// broughtSince are the problems that an earlier snapshot, rendered by the same
// compiler, did not have: those of units that differ, and others that are not among
// its problems wherever they stood.
func broughtSince(earlier, s *render.Snapshot, problems document.Problems) (brought document.Problems) {
	type said struct {
		file, text string
	}
	before := map[said]bool{}
	for _, p := range earlier.Problems {
		before[said{p.File, p.Text()}] = true
	}
	for _, p := range problems {
		path := config.UnitPath(p.Unit)
		if now := s.Units.Get(path); p.Unit != "" && now != nil && now != earlier.Units.Get(path) || !before[said{p.File, p.Text()}] {
			brought = append(brought, p)
		}
	}
	return brought
}

// printJoining says in which clusters units would wait that the change places there, as far as it is known
// without the daemon's configuration.
func printJoining(w io.Writer, base, head *render.Snapshot) {
	for _, cluster := range sync.Joining(base, head, nil) {
		fmt.Fprintf(w, "swell: note: %s\n", cluster.Text())
	}
}

// printRuleChanges says which rules the change itself changes, and how, a line each: whoever reviews
// it has to know that these hold only once it is in.
func printRuleChanges(w io.Writer, name string, rules []string, head *render.Snapshot) {
	if len(rules) == 0 {
		return
	}
	judges := fmt.Sprintf("those of %s judge it too", name)
	if head.Base == nil {
		judges = "they count at once, as it edits nothing else"
	}
	fmt.Fprintf(w, "swell: note: the change edits rules that judge changes; %s\n", judges)
	for _, line := range rules {
		fmt.Fprintf(w, "swell: note: rule: %s\n", line)
	}
}
