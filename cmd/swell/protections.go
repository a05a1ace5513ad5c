// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
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
		var known []config.UnitPath
		for other := range s.Units.All() {
			known = append(known, other)
		}
		return fmt.Errorf("unit %q: no such unit%s", unit, didYouMean(string(path), known))
	}
	found, err := s.Protections(path)
	if err != nil {
		return err
	}
	if output != formatText {
		return writeData(cmd.OutOrStdout(), output, listOf("ProtectionList", found))
	}
	return writeProtections(cmd.OutOrStdout(), found)
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
