// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync"
)

// diffOptions are the flags of swell diff.
type diffOptions struct {
	where        place
	output       string
	asks         bool   // --live
	config       string // of the daemon
	unit, target string // with --live

	plan *sync.Forecast // the way of the releases; nil with --live
}

func diffCommand() *cobra.Command {
	var o diffOptions
	where := &o.where
	cmd := &cobra.Command{
		Use:   "diff BASE [HEAD] | diff --live [HEAD]",
		Short: "Show what a change does to the objects of the fleet",
		Long: `Render two states of a monorepo, folders or Git revisions, and show which objects
differ, field by field, with equal changes on several targets shown once. This
is the preview of a pull request. Without HEAD, BASE is compared with the current
folder. No cluster is needed.

It shows what the daemon would do in a fleet that has BASE, by the daemon's own
code: the deletions that wait for approval and why, the units that are not released
before that, and the objects that are orphaned, left, or forgotten with their cluster.
The bounds on deletions are the defaults, or those of the daemon's configuration with
-c. Facts that only the clusters know, such as a field that cannot be changed, are
missing: see --live. Below the changes stands how they are released, as swell plan shows
it: the waves with their soaks and gates, who may approve them, masked targets and closed
windows, by the documents of HEAD and without the orders of operators. The Tenants of BASE
judge the units of HEAD too, so a change cannot allow itself anything.

With --live, ask the clusters for the changes that an apply of HEAD would make now, by
a dry run for each object, which writes nothing. The clusters and the credentials are
those of the daemon's configuration. Deletions are shown only where the daemon's state
is. The values of Secrets are neither read nor shown.

Where a kind or a definition of custom resources changed, its breaking changes are
problems, as swell schema compat finds them.

Exit codes: 0 no changes, 1 changes, 2 an error or a problem; or some units could not be compared
because they have problems on one side, or are no longer units and keep their objects,
or the daemon would refuse HEAD as a whole.`,
		Example: `  swell diff main                     # what my working tree changes
  swell diff main my-branch -o markdown
  swell diff HEAD~1 HEAD --path testdata/monorepo
  swell diff --live -c daemon.yaml --unit services/shop`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.asks {
				return arguments(0, 1)(cmd, args)
			}
			return arguments(1, 2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			write := func(w io.Writer, r *diff.Report) error { return writeReport(w, o.output, r, o.plan) }
			if o.asks {
				return o.live(cmd, where.argument(args, 0), write)
			}
			for _, name := range []string{"unit", "target"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s: only with --live", name)
				}
			}
			compiler, done, err := where.compiler(cmd)
			if err != nil {
				return err
			}
			defer done()
			base, err := where.snapshot(cmd.Context(), compiler, args[0])
			if err != nil {
				return err
			}
			if base.Held {
				printProblems(cmd.ErrOrStderr(), base.Problems)
				return fmt.Errorf("%s: the fleet's documents have problems, so there is nothing to compare with", args[0])
			}
			compiler.Base = base.Repository
			states := states{base: base}
			if err := states.with(cmd.Context(), where, compiler, where.argument(args, 1)); err != nil {
				return err
			}
			head := states.head
			printRuleChanges(cmd.ErrOrStderr(), args[0], base.Repository, head.Repository)
			problems := head.Problems
			if !head.Held {
				compatible, err := states.judge()
				if err != nil {
					return err
				}
				problems = append(compatible.Problems(), problems...).Sorted()
			}
			printProblems(cmd.ErrOrStderr(), problems)
			if head.Held {
				return exit(exitError)
			}
			guard := config.DefaultGuard
			if cmd.Flags().Changed("config") {
				settings, err := readDaemonConfig(o.config)
				if err != nil {
					return err
				}
				guard = settings.Guard
			}
			report, plan, err := sync.PreviewPlan(base, head, compiler, guard, time.Now())
			if err != nil {
				return err
			}
			o.plan = plan
			printBaseProblems(cmd.ErrOrStderr(), args[0], base, report)
			if err := write(cmd.OutOrStdout(), report); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "swell: %s\n", report.Summary())
			switch {
			case len(problems) > 0 || report.Refused != "" || len(report.Unknown) > 0 || slices.ContainsFunc(report.Kept, wholly):
				return exit(exitError)
			case len(report.Changes) > 0:
				return exit(exitProblems)
			}
			return nil
		},
	}
	where.flags(cmd)
	where.cacheFlag(cmd)
	outputFlag(cmd, &o.output, formatText, formatName, formatJSON, formatYAML, formatMarkdown)
	cmd.Flags().BoolVar(&o.asks, "live", false, "compare with what the clusters hold")
	configFlag(cmd, &o.config)
	cmd.Flags().StringVar(&o.unit, "unit", "", "with --live: only this unit, or the units below this folder")
	cmd.Flags().StringVar(&o.target, "target", "", "with --live: only this target (cluster/cell), or the targets of this cluster")
	return cmd
}

// wholly says whether a unit is kept on all targets.
func wholly(k diff.Kept) bool { return len(k.Targets) == 0 }

// printBaseProblems says why units of BASE could not be compared.
func printBaseProblems(w io.Writer, name string, base *render.Snapshot, r *diff.Report) {
	for _, path := range r.Unknown {
		if unit := base.Units.Get(path); unit != nil && len(unit.Problems) > 0 {
			fmt.Fprintf(w, "in %s: %s\n", name, unit.Problems[0])
		}
	}
}

func writeReport(w io.Writer, format string, r *diff.Report, plan *sync.Forecast) error {
	switch format {
	case formatJSON, formatYAML:
		is := struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			*diff.Report
			Releases []sync.UnitForecast `json:"releases,omitempty"`
		}{config.APIVersion, "Diff", r, nil}
		if plan != nil {
			is.Releases = plan.Units
		}
		return writeData(w, format, is)
	case formatMarkdown:
		return writeReportMarkdown(w, r, plan)
	case formatName:
		for _, c := range r.Changes {
			if _, err := fmt.Fprintf(w, "%s %s %s\n", c.Action, c.Unit, c.Object); err != nil {
				return err
			}
		}
		return nil
	}
	return writeReportText(w, r, plan, widthOf(w))
}

// writeReportText writes the changes, then how they are released.
func writeReportText(w io.Writer, r *diff.Report, plan *sync.Forecast, width int) error {
	if err := r.Write(w); err != nil || plan == nil || len(plan.Units) == 0 {
		return err
	}
	if _, err := fmt.Fprint(w, "\nreleases, if all goes well\n"); err != nil {
		return err
	}
	return (&planWriter{f: plan, brief: true, indent: 2, width: width}).write(w)
}

func writeReportMarkdown(w io.Writer, r *diff.Report, plan *sync.Forecast) error {
	var text strings.Builder
	if err := writeReportText(&text, r, plan, pipeWidth); err != nil {
		return err
	}
	return writeFenced(w, r.Summary(), "diff", text.String())
}
