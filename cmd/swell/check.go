// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
)

func checkCommand(in *invocation) *cobra.Command {
	where := repoFlags{in: in}
	var output, unit, base, since string
	var excerpt, color bool
	cmd := &cobra.Command{
		Use:   "check [FOLDER | REVISION]",
		Short: "Find everything that is wrong with a monorepo",
		Long: `Render every unit for every target and print all problems, sorted by file and
line. No cluster and no network is needed. Without an argument, check the monorepo
that the current folder is in. A folder inside a monorepo selects the units below it,
as --unit does.

text is one line for a problem; on a terminal, an excerpt of the file and of the
kind's template follows. Excerpts never show lines of a Secret, nor of overrides,
generators and patches, which may change or make one. json is a list of problems.
sarif (2.1.0), github (workflow commands of GitHub Actions), gitlab (a report of its
Code Quality) and markdown (a comment, or a summary of a job) are for the pages of a
forge: their paths are relative to the root of the Git repository, all others to the
monorepo's folder. junit has a test case for each unit, and one for each file or kind
whose problem blocks several units.

With --base, the Tenants, the policies and facts, the Checkers and the checks of that
revision judge the units too, so that a change cannot allow itself anything: use it on
pull requests. Changes of fields that API servers let nobody change are problems too, as
swell diff finds them, and changes of kinds and of definitions of custom resources that
break documents, as swell schema compat finds them. With --changed-since, only what the change brings counts: problems of units that
differ from that revision, and others that were not there. That is for a monorepo that
has problems already.

Exit codes: 0 no problems, 1 problems, 2 could not check.`,
		Example: `  swell check
  swell check --unit services/shop/cart
  swell check .
  swell check HEAD~1 -o json
  swell check --base origin/main
  swell check --changed-since HEAD~1
  swell check -o sarif > swell.sarif`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			write := map[string]func(io.Writer, *checked) error{formatJSON: writeProblemData(formatJSON), formatYAML: writeProblemData(formatYAML),
				"sarif": writeSARIF, "github": writeAnnotations, "junit": writeJUnit, "gitlab": writeGitLab, formatMarkdown: writeProblemMarkdown}[output]
			compiler, done, err := where.compiler(cmd)
			if err != nil {
				return err
			}
			defer done()
			name := where.argument(args, 0)
			goesTo, err := where.renderBase(cmd.Context(), compiler, base)
			if err != nil {
				return err
			}
			earlier, err := where.renderSince(cmd.Context(), compiler, since)
			if err != nil {
				return err
			}
			snapshot, err := where.snapshot(cmd.Context(), compiler, name)
			if err != nil {
				return err
			}
			found := &checked{Snapshot: snapshot, folder: where.folder(name), below: where.units(unit, args, 0)}
			switch _, err := pick(snapshot, found.below, ""); {
			case err == nil || snapshot.Held:
			case unit != "":
				return err
			default:
				return noUnit(args[0])
			}
			found.Problems = problemsBelow(snapshot, found.below)
			if earlier != nil {
				found.Problems = broughtSince(earlier, snapshot, found.Problems)
			}
			found.addLost(compiler.Base, earlier)
			if err := found.judgeChange(cmd.Context(), &where, compiler, goesTo); err != nil {
				return err
			}
			if output == formatText {
				text := textFor(in, cmd.OutOrStdout(), snapshot, flagOr(cmd, "excerpt", excerpt), flagOr(cmd, "color", color))
				text.write(found.Problems)
			} else {
				found.sources = newSources(snapshot)
				if err := write(cmd.OutOrStdout(), found); err != nil {
					return err
				}
			}
			if compiler.Base != nil {
				rules := config.RuleLines(config.RuleChanges(compiler.Base, snapshot.Repository))
				printRuleChanges(cmd.ErrOrStderr(), base, rules, snapshot)
				printJoining(cmd.ErrOrStderr(), goesTo, snapshot)
			}
			found.printNotes(cmd.ErrOrStderr())
			found.printLeftOut(cmd.ErrOrStderr(), where.verbose)
			if err := found.printProtections(cmd.ErrOrStderr(), where.verbose); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), found.summary())
			if len(found.Problems) > 0 {
				return exit(exitProblems)
			}
			return nil
		},
	}
	where.flags(cmd)
	where.cacheFlag(cmd)
	cmd.Flags().BoolVarP(&where.verbose, "verbose", "v", false, "list files and folders that are left out, and what protects the unit that was asked about, and say which programs of Checkers ran, for how long and in which sandbox")
	outputFlag(cmd, &output, formatText, formatJSON, formatYAML, "sarif", "github", "gitlab", "junit", formatMarkdown)
	unitFlag(cmd, &unit)
	cmd.Flags().StringVar(&base, "base", "", "folder or Git revision that the change goes to: its rules judge too")
	cmd.Flags().StringVar(&since, "changed-since", "", "folder or Git revision: only problems that the change since then brings")
	cmd.Flags().BoolVar(&excerpt, "excerpt", false, "show the lines of the problems (default: on a terminal)")
	cmd.Flags().BoolVar(&color, "color", false, "colours in text, and excerpts (default: on a terminal, unless NO_COLOR is set)")
	return cmd
}

// checked is what the machines' formats are written from.
type checked struct {
	*render.Snapshot
	// folder of the monorepo inside its Git repository, "." for the root or
	// where there is no Git repository.
	folder string
	below  string // the unit, or folder of units, that was asked about; empty is all
	// Problems are those that were asked about.
	Problems document.Problems
	sources  *sources
	lost     int // units that are frozen although they have no problem by themselves
}

// printNotes says what these units left out of what they collect, and which rules in
// Defaults hold for nothing: the objects are good, but somebody will miss something.
func (c *checked) printNotes(w io.Writer) {
	notes := slices.Concat(c.IdleRules(c.below), c.Notes)
	if c.Repository != nil {
		notes = append(notes, c.Repository.StaleFacts(time.Now())...)
	}
	for _, unit := range c.Units.All() {
		if config.Within(string(unit.Path), c.below) {
			notes = append(notes, unit.Notes...)
		}
	}
	for _, note := range notes.Sorted() {
		fmt.Fprintf(w, "swell: note: %s\n", note)
	}
}

// printLeftOut says how many files and folders are no part of any unit; with verbose, it
// lists them.
func (c *checked) printLeftOut(w io.Writer, verbose bool) {
	all := slices.DeleteFunc(c.LeftOut(), func(l config.LeftOut) bool { return !config.Within(l.Path, c.below) })
	if len(all) == 0 {
		return
	}
	if !verbose {
		fmt.Fprintf(w, "swell: %s left out; swell check -v says which, and why\n", document.Count(len(all), "path"))
		return
	}
	for _, l := range all {
		fmt.Fprintf(w, "swell: left out: %s: %s\n", l.Path, l.Why)
	}
}

// printProtections lists the rules that match the unit, where one was asked about.
func (c *checked) printProtections(w io.Writer, verbose bool) error {
	unit := config.UnitPath(c.below)
	if !verbose || c.Held || c.Units.Get(unit) == nil {
		return nil
	}
	protections, err := c.Protections(unit)
	if err != nil {
		return err
	}
	noteUncounted(w, c.Snapshot, unit)
	fmt.Fprintf(w, "swell: %s is protected by\n", unit)
	return writeProtections(w, protections)
}

// flagOr is a flag's value; nil when it was not given.
func flagOr(cmd *cobra.Command, name string, value bool) *bool {
	if !cmd.Flags().Changed(name) {
		return nil
	}
	return &value
}

// textFor decides how text looks: as the flags say, else as fits the output.
func textFor(in *invocation, out io.Writer, s *render.Snapshot, excerpt, color *bool) *problemText {
	terminal := isTerminal(out)
	text := &problemText{out: out, color: terminal && in.colors()}
	if color != nil {
		text.color = *color
	}
	if text.color {
		text.out = raw(out)
	}
	if excerpt != nil && *excerpt || excerpt == nil && (terminal || text.color) {
		text.sources = newSources(s)
	}
	return text
}

func printProblems(w io.Writer, problems document.Problems) {
	(&problemText{out: w}).write(problems)
}

func writeProblemData(format string) func(io.Writer, *checked) error {
	return func(w io.Writer, c *checked) error { return writeData(w, format, listOf("ProblemList", c.Problems)) }
}

func (c *checked) summary() string {
	if c.Held {
		return fmt.Sprintf("swell: %s in the fleet's documents: nothing would be written from this", document.Count(len(c.Problems), "problem"))
	}
	units, objects, bundles, frozen := 0, 0, 0, c.lost
	for _, u := range c.Units.All() {
		if u.Void || c.Units.StandIn(u) || !config.Within(string(u.Path), c.below) {
			continue
		}
		units++
		if len(u.Problems) > 0 {
			frozen++
		}
		for _, on := range u.Placements {
			if on.Digest != "" {
				bundles++
				objects += on.Objects
			}
		}
	}
	text := fmt.Sprintf("swell: %s, %s, %s", document.Count(units, "unit"), document.Count(bundles, "bundle"), document.Count(objects, "object"))
	if c.Units.Len() == 0 {
		text += "; a daemon takes nothing from a commit without units: add one, or name its folder in units of swell.yaml"
	}
	if len(c.Problems) > 0 {
		text += fmt.Sprintf(", %s; frozen: %s", document.Count(len(c.Problems), "problem"), document.Count(frozen, "unit"))
	}
	return text
}
