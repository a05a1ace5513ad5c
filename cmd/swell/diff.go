// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
)

func diffCommand() *cobra.Command {
	var where place
	var output string
	cmd := &cobra.Command{
		Use:   "diff BASE [HEAD]",
		Short: "Show what a change does to the objects of the fleet",
		Long: `Render two states of a monorepo, folders or Git revisions, and show which objects
differ, field by field, with equal changes on several targets shown once. This
is the preview of a pull request. Without HEAD, BASE is compared with the current
folder. No cluster is needed.

Exit codes: 0 no changes, 1 changes, 2 an error, or units that could not be
compared because one side has problems with them.`,
		Example: `  swell diff main                     # what my working tree changes
  swell diff main my-branch -o markdown
  swell diff HEAD~1 HEAD --path testdata/monorepo`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := map[string]func(io.Writer, *diff.Report) error{
				"text": writeReport, "json": writeReportJSON, "markdown": writeReportMarkdown}[output]
			if !ok {
				return fmt.Errorf("-o %q: want text, json or markdown", output)
			}
			compiler, done, err := where.compiler()
			if err != nil {
				return err
			}
			defer done()
			base, err := where.snapshot(compiler, args[0])
			if err != nil {
				return err
			}
			head, err := where.snapshot(compiler, where.argument(args, 1))
			if err != nil {
				return err
			}
			if base.Held {
				printProblems(cmd.ErrOrStderr(), base.Problems)
				return fmt.Errorf("%s: the fleet's documents have problems, so there is nothing to compare with", args[0])
			}
			printProblems(cmd.ErrOrStderr(), head.Problems)
			if head.Held {
				return exit(exitError)
			}
			report, err := diff.Compare(base, head)
			if err != nil {
				return err
			}
			printBaseProblems(cmd.ErrOrStderr(), args[0], base, report)
			if err := write(cmd.OutOrStdout(), report); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "swell: %s\n", report.Summary())
			switch {
			case len(head.Problems) > 0 || len(report.Unknown) > 0:
				return exit(exitError)
			case len(report.Changes) > 0:
				return exit(exitProblems)
			}
			return nil
		},
	}
	where.flags(cmd)
	where.cacheFlag(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json or markdown")
	return cmd
}

// printBaseProblems says why units of BASE could not be compared.
func printBaseProblems(w io.Writer, name string, base *render.Snapshot, r *diff.Report) {
	for _, path := range r.Unknown {
		if unit := base.Units.Get(path); unit != nil && len(unit.Problems) > 0 {
			fmt.Fprintf(w, "in %s: %s\n", name, unit.Problems[0])
		}
	}
}

func writeReport(w io.Writer, r *diff.Report) error { return r.Write(w) }

func writeReportJSON(w io.Writer, r *diff.Report) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		*diff.Report
	}{config.APIVersion, "Diff", r})
}

func writeReportMarkdown(w io.Writer, r *diff.Report) error {
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		return err
	}
	// A value may itself hold a fence: ours is longer than any in it.
	fence := "```"
	for strings.Contains(text.String(), fence) {
		fence += "`"
	}
	_, err := fmt.Fprintf(w, "### swell: %s\n\n%sdiff\n%s%s\n", r.Summary(), fence, text.String(), fence)
	return err
}
