// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
)

func checkCommand() *cobra.Command {
	var where place
	var output string
	cmd := &cobra.Command{
		Use:   "check [FOLDER | REVISION]",
		Short: "Find everything that is wrong with a monorepo",
		Long: `Render every unit for every target and print all problems, one a line, sorted by
file and line. No cluster and no network is needed.

Exit codes: 0 no problems, 1 problems, 2 could not check.`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o %q: want text or json", output)
			}
			compiler, done := where.compiler()
			defer done()
			snapshot, err := where.snapshot(compiler, where.argument(args, 0))
			if err != nil {
				return err
			}
			if output == "json" {
				if err := writeList(cmd.OutOrStdout(), "ProblemList", snapshot.Problems); err != nil {
					return err
				}
			} else {
				printProblems(cmd.OutOrStdout(), snapshot.Problems)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), checkSummary(snapshot))
			if len(snapshot.Problems) > 0 {
				return exit(exitProblems)
			}
			return nil
		},
	}
	where.flags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

func printProblems(w io.Writer, problems config.Problems) {
	for _, p := range problems {
		fmt.Fprintf(w, "%s (%s)\n", p, p.Code)
	}
}

// writeList writes items as JSON in the form of a Kubernetes list.
func writeList[T any](w io.Writer, kind string, items []T) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []T    `json:"items"`
	}{config.APIVersion, kind, append([]T{}, items...)}) // never null
}

func checkSummary(s *render.Snapshot) string {
	if s.Held {
		return fmt.Sprintf("swell: %s in the fleet's documents: nothing would be written from this", diff.Count(len(s.Problems), "problem"))
	}
	objects, bundles, frozen := 0, 0, 0
	for _, u := range s.Units.All() {
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
	text := fmt.Sprintf("swell: %s, %s, %s", diff.Count(s.Units.Len(), "unit"), diff.Count(bundles, "bundle"), diff.Count(objects, "object"))
	if len(s.Problems) > 0 {
		text += fmt.Sprintf(", %s; frozen: %s", diff.Count(len(s.Problems), "problem"), diff.Count(frozen, "unit"))
	}
	return text
}
