// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
)

// explainUnit shows what protects a unit, from the monorepo alone.
func (p *repoFlags) explainUnit(cmd *cobra.Command, output, unit string) error {
	compiler, done, err := p.compiler(cmd)
	if err != nil {
		return err
	}
	defer done()
	s, err := p.snapshot(cmd.Context(), compiler, p.argument(nil, 0))
	if err != nil {
		return err
	}
	if s.Held {
		printProblems(cmd.ErrOrStderr(), s.Problems)
		return exit(exitError)
	}
	path := config.CleanUnitPath(unit)
	if s.Units.Get(path) == nil {
		var below []string
		for other := range s.Units.All() {
			if config.Within(string(other), string(path)) {
				below = append(below, string(other))
			}
		}
		if len(below) > 0 {
			slices.Sort(below)
			return fmt.Errorf("unit %q: it is a folder of %s, want one of %s", unit, document.Count(len(below), "unit"),
				document.Some(below, 5))
		}
		return fmt.Errorf("unit %q: no such unit%s", unit, didYouMean(string(path), pathsOf(s)))
	}
	found, err := s.Protections(path)
	if err != nil {
		return err
	}
	noteUncounted(cmd.ErrOrStderr(), s, path)
	if output != formatText {
		return writeData(cmd.OutOrStdout(), output, listOf("ProtectionList", found))
	}
	return writeProtections(cmd.OutOrStdout(), found)
}

// noteUncounted says of a unit with a problem that what judges its objects is not in its protections.
func noteUncounted(w io.Writer, s *render.Snapshot, path config.UnitPath) {
	if len(s.Units.Get(path).Problems) > 0 {
		fmt.Fprintf(w, "swell: note: %s has a problem: its objects are not counted, and the policies and Checkers that judge them are "+
			"missing\n", path)
	}
}

// writeProtections writes a line for each rule: how much of the unit it matches, where it is written,
// and what it says.
func writeProtections(w io.Writer, protections []config.Protection) error {
	t := newTable()
	t.row("RULE", "WHERE", "MATCHES", "SAYS")
	for _, p := range protections {
		t.row(p.Rule, p.Position.String(), p.Text(), strings.TrimSpace(p.Says))
	}
	return t.write(w)
}
