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
	"github.com/swell-sh/swell/render/impact"
)

// baseOf has the repository of one revision judge what the compiler renders from now
// on, and renders another revision; both may be empty. earlier is nil without since.
func (p *repoFlags) baseOf(ctx context.Context, compiler *render.Compiler, base, since string) (earlier *render.Snapshot, err error) {
	if base != "" {
		tree, _, err := p.open(base)
		if err != nil {
			return nil, fmt.Errorf("--base: %w", err)
		}
		r := config.Load(tree, nil)
		if len(r.Problems) > 0 {
			return nil, fmt.Errorf("--base %s: its documents of the fleet have problems, so they cannot judge: %s", base, r.Problems[0])
		}
		compiler.Base = r
	}
	if since == "" {
		return nil, nil
	}
	if earlier, err = p.accepted(ctx, compiler, since); err != nil {
		return nil, fmt.Errorf("--changed-since: %w", err)
	}
	return earlier, nil
}

// breaks are the breaking changes of kinds and definitions since a revision whose
// repository is base.
func (p *repoFlags) breaks(ctx context.Context, compiler *render.Compiler, name string, base *config.Repository, head *render.Snapshot) (document.Problems, error) {
	touched := impact.Touched(base, head.Repository)
	if head.Held || !touched && !impact.Redefined(base.Tree, head) {
		return nil, nil
	}
	s := states{head: head}
	var err error
	if s.base, err = p.compile(ctx, compiler, "", base.Tree); err != nil {
		return nil, err
	}
	if s.base.Held {
		return nil, fmt.Errorf("--base %s: its documents of the fleet have problems, so there is nothing to compare with: %s", name, s.base.Problems[0])
	}
	if touched {
		if s.mixed, err = p.compile(ctx, compiler, "", impact.Tree(base, head.Repository)); err != nil {
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
