// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/store"
)

func historyCommand() *cobra.Command {
	var file, output string
	var limit int
	cmd := &cobra.Command{
		Use:   "history [UNIT] --config FILE",
		Short: "Show what happened to the units, when and why",
		Long: `Show what the daemon did with a unit, with the units below a folder, or with all,
and what it found: rollouts, waves, failures, drift. The newest comes last. It
reads the daemon's state and may be used while the daemon runs.

Exit codes: 0, 2 the state could not be read.`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := map[string]func(io.Writer, []store.Event) error{"table": writeHistory, "json": writeHistoryJSON}[output]
			if !ok {
				return fmt.Errorf("-o %q: want table or json", output)
			}
			if limit < 1 {
				return fmt.Errorf("--limit %d: want at least 1", limit)
			}
			s, err := openState(file)
			if err != nil {
				return err
			}
			defer s.Close()
			events, err := s.History(config.UnitPath(unitArgument(args)), limit)
			if err != nil {
				return err
			}
			if len(events) == 0 {
				return noUnits(s, unitArgument(args))
			}
			slices.Reverse(events)
			return write(cmd.OutOrStdout(), events)
		},
	}
	configFlag(cmd, &file)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	cmd.Flags().IntVarP(&limit, "limit", "n", 100, "number of events, the newest")
	return cmd
}

func writeHistory(w io.Writer, events []store.Event) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIME\tCOMMIT\tUNIT\tTARGET\tWAVE\tEVENT\tTEXT")
	for _, e := range events {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Time.Local().Format(time.DateTime), orDash(e.Commit.Short()),
			orDash(string(e.Unit)), orDash(string(e.Target)), orDash(e.Wave), e.Kind, e.Text)
	}
	return table.Flush()
}

func writeHistoryJSON(w io.Writer, events []store.Event) error {
	return writeList(w, "EventList", events)
}
