// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/impact"
	"github.com/swell-sh/swell/render/schema/compat"
)

func schemaCompatCommand(in *invocation) *cobra.Command {
	where := repoFlags{in: in}
	var output string
	cmd := &cobra.Command{
		Use:   "compat BASE [HEAD]",
		Short: "Refuse changes of kinds and definitions that break documents",
		Long: `Compare the easy kinds and the CustomResourceDefinitions of two states of a monorepo,
folders or Git revisions, and find what breaks documents. Without HEAD, BASE is compared with the current folder. No
cluster is needed.

 1. Compare the messages of the kinds, by what documents may hold: names, types, lists
    and maps, oneofs, enums, required fields and rules, merge keys, defaults. Numbers and
    reserved names count for programs that are built from the same .proto.
 2. Render the documents of BASE with the kinds of HEAD. A document that had no problem
    and has one now is broken; objects that come out otherwise are counted.
 3. Compare the CustomResourceDefinitions of the folder of schemas and of units, by the
    rules of structural schemas: fields that would be dropped, versions, lists.

A change that a rule calls breaking is refused although no document breaks: those of
other branches, and objects in clusters, are not in the tree. Warnings refuse nothing. One
that is meant stands in the root's swell.yaml, and is let through as long as no document of
HEAD breaks:

  checks:
    allowedChanges:
    - {rule: FIELD_REMOVED, at: Runtime.spec.port, reason: nobody ever set it}

swell diff and swell check --base do the same when a kind or a definition changed.

Exit codes: 0 compatible, 1 breaking, 2 could not judge.`,
		Example: `  swell schema compat main
  swell schema compat HEAD~1 HEAD -o json`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			compiler, done, err := where.compiler(cmd)
			if err != nil {
				return err
			}
			defer done()
			states, err := where.compare(cmd.Context(), compiler, args[0], where.argument(args, 1))
			if err != nil {
				return err
			}
			if states.base.Held || states.head.Held {
				held, name := states.head, where.argument(args, 1)
				if states.base.Held {
					held, name = states.base, args[0]
				}
				printProblems(cmd.ErrOrStderr(), held.Problems)
				return fmt.Errorf("%s: the fleet's documents have problems, so there is nothing to compare with", name)
			}
			report, err := states.judge()
			if err != nil {
				return err
			}
			changed, err := impact.Changes(states.base, states.mixed)
			if err != nil {
				return err
			}
			if err := writeImpact(cmd.OutOrStdout(), output, report, changed); err != nil {
				return err
			}
			printProblems(cmd.ErrOrStderr(), report.Unjudged)
			for _, note := range report.Notes {
				fmt.Fprintf(cmd.ErrOrStderr(), "swell: note: %s\n", note)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), impactSummary(report, changed))
			switch {
			case len(report.Unjudged) > 0:
				return exit(exitError)
			case len(report.Refused())+len(report.Broken) > 0:
				return exit(exitProblems)
			}
			return nil
		},
	}
	where.flags(cmd)
	where.cacheFlag(cmd)
	outputFlag(cmd, &output, formatText, formatJSON, formatYAML)
	return cmd
}

// states are two states of a monorepo, and the documents of the first with the kinds of
// the second; nil where these are the same.
type states struct {
	base, mixed, head *render.Snapshot
}

// compare renders two states of a monorepo; head is the last that the compiler renders.
func (p *repoFlags) compare(ctx context.Context, compiler *render.Compiler, base, head string) (s states, err error) {
	if s.base, err = p.accepted(ctx, compiler, base); err != nil {
		return s, err
	}
	tree, commit, err := p.open(head)
	if err != nil {
		return s, err
	}
	return s, s.with(ctx, p, compiler, tree, commit)
}

// with renders mixed, where kinds or definitions differ, and head, which is that tree. Nothing
// is compared with a base that is held.
func (s *states) with(ctx context.Context, p *repoFlags, compiler *render.Compiler, tree config.Tree, commit config.Commit) (err error) {
	is := config.Load(tree, s.base.Repository)
	if was := s.base.Repository; !s.base.Held && len(is.Folders()) > 0 && impact.Touched(was, is) {
		if s.mixed, err = p.compile(ctx, compiler, "", impact.Tree(was, is)); err != nil {
			return err
		}
	}
	s.head, err = p.compile(ctx, compiler, commit, tree)
	return err
}

// judge finds what the change of kinds and definitions breaks.
func (s states) judge() (*impact.Report, error) { return impact.Judge(s.base, s.mixed, s.head) }

func writeImpact(w io.Writer, format string, r *impact.Report, changed []impact.Changed) error {
	if format != formatText {
		return writeData(w, format, struct {
			APIVersion string            `json:"apiVersion"`
			Kind       string            `json:"kind"`
			Findings   []compat.Finding  `json:"findings"`
			Broken     []impact.Broken   `json:"broken,omitempty"`
			Mended     []impact.Broken   `json:"mended,omitempty"`
			Changed    []impact.Changed  `json:"changed,omitempty"`
			Unjudged   document.Problems `json:"unjudged,omitempty"`
		}{config.APIVersion, "Compatibility", append([]compat.Finding{}, r.Findings...), r.Broken, r.Mended, changed, r.Unjudged})
	}
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f.WithPlace())
	}
	writeBroken(&b, "breaks", r.Broken)
	writeBroken(&b, "broke, and mended since:", r.Mended)
	for _, c := range changed {
		fmt.Fprintf(&b, "changes %s of %s: %s %s\n", document.Count(c.Objects, "object"), document.Count(len(c.Units), "unit"), c.Action, c.Kind)
		writeSome(&b, c.Fields)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeBroken(b *strings.Builder, verb string, all []impact.Broken) {
	for _, g := range all {
		fmt.Fprintf(b, "%s %s\n", verb, g.Text())
		places := make([]string, len(g.Places))
		for i, at := range g.Places {
			places[i] = at.String()
		}
		writeSome(b, places)
	}
}

// maxSome is how many of a group are shown.
const maxSome = 3

func writeSome(b *strings.Builder, lines []string) {
	for i, line := range lines {
		if i == maxSome {
			fmt.Fprintf(b, "  and %d more\n", len(lines)-i)
			return
		}
		fmt.Fprintf(b, "  %s\n", line)
	}
}

func impactSummary(r *impact.Report, changed []impact.Changed) string {
	broken, others := map[config.UnitPath]bool{}, map[config.UnitPath]bool{}
	for _, g := range r.Broken {
		for _, unit := range g.Units {
			broken[unit] = true
		}
	}
	for _, c := range changed {
		for _, unit := range c.Units {
			others[unit] = true
		}
	}
	refused, warnings, allowed := len(r.Refused()), 0, ""
	for _, f := range r.Findings {
		if f.Severity == compat.Warning {
			warnings++
		}
	}
	if n := len(r.Findings) - refused - warnings; n > 0 {
		allowed = fmt.Sprintf(", %d allowed", n)
	}
	if len(r.Findings)+len(broken)+len(others)+len(r.Unjudged) == 0 {
		return fmt.Sprintf("swell: compatible, %s", document.Count(r.Units, "unit"))
	}
	return fmt.Sprintf("swell: %s%s, %s; of %s, %d broken, %d with another output", document.Count(refused, "breaking change"), allowed, document.Count(warnings, "warning"), document.Count(r.Units, "unit"), len(broken), len(others))
}
