// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
)

func renderCommand(in *invocation) *cobra.Command {
	where := repoFlags{in: in}
	var output, unit, target string
	var explain bool
	cmd := &cobra.Command{
		Use:   "render [FOLDER | REVISION]",
		Short: "Print the Kubernetes objects that a monorepo stands for",
		Long: `Print the Kubernetes objects that a monorepo stands for, sorted by unit and target,
and for each target in the order of applying. No cluster and no network is needed:
the same input always gives the same bytes.

Without an argument, render the monorepo that the current folder is in. A folder
inside a monorepo selects the units below it, as --unit does. A unit with a problem
is left out; its problems go to standard error.

yaml is a stream of documents, json has one object on a line, name has a target and
an object on a line.

With --explain, a comment on each line names the source of its value, as swell blame
does. The values of Secrets are then left out.

Exit codes: 0 rendered, 1 some of these units have problems, 2 nothing could be rendered.`,
		Example: `  swell render
  swell render --unit services/shop/cart --target sas-1/rz00a
  swell render --unit services/shop/cart --target sas-1/rz00a --explain
  swell render HEAD~1 -o name`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			write := map[string]func(io.Writer, *object.Bundle) error{formatYAML: writeYAML, formatJSON: writeJSON, formatName: writeNames}[output]
			if explain && output != "yaml" {
				return fmt.Errorf("--explain: want -o yaml, which has comments, got %q", output)
			}
			compiler, done, err := where.compiler(cmd)
			if err != nil {
				return err
			}
			defer done()
			snapshot, err := where.accepted(cmd.Context(), compiler, where.argument(args, 0))
			if err != nil {
				return err
			}
			flag := unit
			unit = where.units(unit, args, 0)
			problems := problemsBelow(snapshot, unit)
			printProblems(cmd.ErrOrStderr(), problems)
			if snapshot.Held {
				return exit(exitError)
			}
			units, err := pick(snapshot, unit, target)
			if err != nil && flag == "" && unit != "" && target == "" {
				return noUnit(args[0])
			}
			if err != nil {
				return err
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			if explain {
				past, closed := where.history(where.argument(args, 0), snapshot.Commit, snapshot.Repository.Tree)
				defer closed()
				w := blameWriter{ctx: cmd.Context(), out: out, history: past}
				write, err = w.explained(snapshot, units, unit)
				if err != nil {
					return err
				}
			}
			var failed []error // of units that could not be written; the others are
			for _, u := range units {
				failed = append(failed, writeUnit(out, snapshot, u, target, write))
			}
			if err := errors.Join(append(failed, out.Flush())...); err != nil {
				return err
			}
			if len(problems) > 0 {
				return exit(exitProblems)
			}
			return nil
		},
	}
	where.flags(cmd)
	where.cacheFlag(cmd)
	outputFlag(cmd, &output, formatYAML, formatJSON, formatName)
	unitFlag(cmd, &unit)
	targetFlag(cmd, &target)
	cmd.Flags().BoolVar(&explain, "explain", false, "add a comment with the source of each value")
	return cmd
}

// pick lists the units to show, by path. It is an error when there is nothing
// that the flags name.
func pick(s *render.Snapshot, unit, target string) ([]*render.Unit, error) {
	var units []*render.Unit
	targets := 0
	for _, u := range s.Units.Sorted() {
		if !config.Within(string(u.Path), unit) {
			continue
		}
		units = append(units, u)
		for _, on := range u.Placements {
			if on.Digest != "" && config.Within(string(on.Target.Name), target) {
				targets++
			}
		}
	}
	switch {
	case len(units) == 0 && unit != "":
		return nil, fmt.Errorf("--unit %q: no such unit%s", unit, didYouMean(unit, pathsOf(s)))
	case targets == 0 && target != "":
		return nil, noTarget(s.Repository, target)
	}
	return units, nil
}

// noTarget says why nothing is shown for a target.
func noTarget(r *config.Repository, target string) error {
	var names []string
	for _, cluster := range r.Clusters {
		names = append(names, cluster.Name)
		for _, t := range cluster.Targets(false) {
			names = append(names, string(t.Name))
		}
	}
	if slices.Contains(names, target) {
		return fmt.Errorf("--target %q: nothing is rendered for it", target)
	}
	return fmt.Errorf("--target %q: no such target%s", target, document.DidYouMean(target, names))
}

// writeUnit writes the unit's bundles, by target.
func writeUnit(w io.Writer, s *render.Snapshot, unit *render.Unit, target string, write func(io.Writer, *object.Bundle) error) error {
	bundles, err := s.Bundles(unit)
	if err != nil {
		return err
	}
	slices.SortFunc(bundles, func(a, b *object.Bundle) int { return cmp.Compare(a.Target, b.Target) })
	for _, b := range bundles {
		if !config.Within(string(b.Target), target) {
			continue
		}
		if err := write(w, b); err != nil {
			return err
		}
	}
	return nil
}

// pathsOf are the units of a snapshot.
func pathsOf(s *render.Snapshot) (paths []config.UnitPath) {
	for path := range s.Units.All() {
		paths = append(paths, path)
	}
	return paths
}

func didYouMean(got string, units []config.UnitPath) string {
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = string(u)
	}
	if below := slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(name string) bool { return !strings.HasSuffix(name, "/"+got) }); len(below) > 0 {
		return ", want " + document.Some(below, 3) // the end of its path alone was named
	}
	return document.DidYouMean(got, names)
}

// noUnit is the error for a folder of the monorepo that is not for units, or has none.
func noUnit(folder string) error {
	return hinted{fmt.Errorf("%s: no unit in this folder or below it", folder), "without an argument it is the whole monorepo, with its kinds, data and fleet"}
}

// problemsBelow are those of the units below a folder, and those that hold the
// whole fleet; all when the folder is empty.
func problemsBelow(s *render.Snapshot, below string) document.Problems {
	if below == "" || s.Held {
		return s.Problems
	}
	var problems document.Problems
	for _, u := range s.Units.Sorted() {
		if config.Within(string(u.Path), below) {
			problems = append(problems, u.Problems...)
		}
	}
	problems = problems.Sorted()
	return slices.CompactFunc(problems, func(a, b document.Problem) bool { return a.String() == b.String() })
}

// unitNamed is the value of --unit as units are called: what a shell's
// completion writes, ./services/shop/cart/, is services/shop/cart.
func unitNamed(value string) string {
	if value == "" {
		return ""
	}
	return path.Clean(filepath.ToSlash(value))
}

func writeYAML(w io.Writer, b *object.Bundle) error {
	for _, o := range b.Objects {
		text, err := jsonToYAML(o.JSON)
		if err != nil {
			return fmt.Errorf("%s on %s: %s: %w", b.Unit, b.Target, o.ID, err)
		}
		if _, err := fmt.Fprintf(w, "---\n# %s on %s, from %s\n%s", b.Unit, b.Target, o.Spec, text); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(w io.Writer, b *object.Bundle) error {
	for _, o := range b.Objects {
		line, err := json.Marshal(struct {
			Unit   config.UnitPath   `json:"unit"`
			Target config.TargetName `json:"target"`
			Object json.RawMessage   `json:"object"`
		}{b.Unit, b.Target, o.JSON})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

func writeNames(w io.Writer, b *object.Bundle) error {
	for _, o := range b.Objects {
		if _, err := fmt.Fprintf(w, "%s %s\n", b.Target, o.ID); err != nil {
			return err
		}
	}
	return nil
}
