// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

func renderCommand() *cobra.Command {
	var where place
	var output, unit, target string
	cmd := &cobra.Command{
		Use:   "render [FOLDER | REVISION]",
		Short: "Print the Kubernetes objects that a monorepo stands for",
		Long: `Print the Kubernetes objects that a monorepo stands for, sorted by unit and
target, each target's in the order in which they would be applied. No cluster
and no network is needed: the same input always gives the same bytes.

Without an argument the current folder is rendered. A unit with a problem is
left out; its problems go to standard error.

Exit codes: 0 rendered, 1 some units have problems, 2 nothing could be rendered.`,
		Example: `  swell render
  swell render --unit services/shop/cart --target sas-1/rz00a
  swell render HEAD~1 -o name`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := map[string]func(io.Writer, *render.Bundle) error{"yaml": writeYAML, "json": writeJSON, "name": writeNames}[output]
			if !ok {
				return fmt.Errorf("-o %q: want yaml, json or name", output)
			}
			snapshot, err := where.snapshot(&render.Compiler{}, where.argument(args, 0))
			if err != nil {
				return err
			}
			printProblems(cmd.ErrOrStderr(), snapshot.Problems)
			if snapshot.Held {
				return exit(exitError)
			}
			bundles, err := pick(snapshot, unit, target)
			if err != nil {
				return err
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			for _, b := range bundles {
				if err := write(out, b); err != nil {
					return err
				}
			}
			if err := out.Flush(); err != nil {
				return err
			}
			if len(snapshot.Problems) > 0 {
				return exit(exitProblems)
			}
			return nil
		},
	}
	where.flags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", "yaml, json (one object a line) or name")
	cmd.Flags().StringVar(&unit, "unit", "", "only this unit, or the units below this folder")
	cmd.Flags().StringVar(&target, "target", "", "only this target (cluster/cell), or the targets of this cluster")
	return cmd
}

// pick lists the bundles to show, by unit and target.
func pick(s *render.Snapshot, unit, target string) ([]*render.Bundle, error) {
	var bundles []*render.Bundle
	units, targets := 0, 0
	for _, path := range slices.Sorted(maps.Keys(s.Units)) {
		if !within(string(path), strings.TrimSuffix(unit, "/")) {
			continue
		}
		units++
		for _, name := range slices.Sorted(maps.Keys(s.Units[path].Bundles)) {
			if within(string(name), target) {
				targets++
				bundles = append(bundles, s.Units[path].Bundles[name])
			}
		}
	}
	switch {
	case units == 0 && unit != "":
		return nil, fmt.Errorf("--unit %q: no such unit%s", unit, didYouMean(unit, slices.Collect(maps.Keys(s.Units))))
	case targets == 0 && target != "":
		return nil, fmt.Errorf("--target %q: nothing is rendered for it", target)
	}
	return bundles, nil
}

func didYouMean(got string, units []config.UnitPath) string {
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = string(u)
	}
	return config.DidYouMean(got, names)
}

func within(name, prefix string) bool {
	return prefix == "" || name == prefix || strings.HasPrefix(name, prefix+"/")
}

func writeYAML(w io.Writer, b *render.Bundle) error {
	for _, o := range b.Objects {
		text, err := yaml.JSONToYAML(o.JSON)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n# %s on %s, from %s\n%s", b.Unit, b.Target, o.Spec, text); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(w io.Writer, b *render.Bundle) error {
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

func writeNames(w io.Writer, b *render.Bundle) error {
	for _, o := range b.Objects {
		if _, err := fmt.Fprintf(w, "%s %s\n", b.Target, o.ID); err != nil {
			return err
		}
	}
	return nil
}
