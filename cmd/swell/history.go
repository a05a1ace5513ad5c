// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/store"
)

func historyCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var output string
	var limit int
	cmd := &cobra.Command{
		Use:   "history [UNIT] --config FILE",
		Short: "Show the events of units: rollouts, waves, failures, drift",
		Long: `Show the events of a unit, of the units below a folder, or of all units: rollouts,
waves, failures, drift, orders. Orders about a folder that the unit is in, and about
everything, are among them. The newest event comes last. Where no daemon runs, it reads
the daemon's state and says so.

Exit codes: 0 shown, 2 the state could not be read.`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return asking(cmd, file, func(t teller) error {
				events, err := t.History(cmd.Context(), serve.Query{Below: config.UnitPath(unitArgument(args)), Since: -1, Limit: limit})
				if err != nil {
					return err
				}
				return eventListing(events).write(cmd.OutOrStdout(), output)
			})
		},
	}
	daemonFlags(cmd, &file)
	outputFlag(cmd, &output, formatTable, formatWide, formatJSON, formatYAML)
	limitFlag(cmd, &limit, 100, "number of events to show, the newest ones")
	return cmd
}

func eventListing(events []store.Recorded) *listing {
	l := &listing{kind: "EventList", columns: []column{{head: "TIME"}, {head: "COMMIT"}, {head: "UNIT"}, {head: "ROLLOUT", wide: true},
		{head: "TARGET"}, {head: "WAVE"}, {head: "EVENT"}, {head: "TEXT"}}, nothing: "no event"}
	for _, e := range events {
		number := "-"
		if e.Rollout > 0 {
			number = strconv.Itoa(e.Rollout)
		}
		l.add(e, "", fullTime(e.Time), orDash(e.Commit.Short()), orDash(string(e.Unit)), number,
			orDash(string(e.Target)), orDash(e.Wave), e.Kind, e.Text)
	}
	return l
}
