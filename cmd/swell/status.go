// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/status"
	"github.com/swell-sh/swell/sync/store"
)

func statusCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var output string
	cmd := &cobra.Command{
		Use:   "status [UNIT] --config FILE",
		Short: "Show the state of the units, and what they wait for",
		Long: `Show every unit, or the units below a folder: its state in one word, the commit that
its targets hold, the number of healthy targets, and the reason when it is not done.
When several words are true, the first of this list is shown: held, rolling back,
rolled back, failed, degraded, fight, quarantined, stopped, blocked, drifted, empty,
approval, unreachable, unavailable, masked, leftovers, waiting, progressing, done.

Then come conditions of the whole fleet: why a newer commit is not known or not
taken, why a new unit is not released, clusters that cannot be reached, deletions that
wait for approval, orders in force, and clusters whose inventory is being rebuilt. -o wide has a line
for each target. Where no daemon runs, it reads the daemon's state and says so.

Exit codes: 0 all units are done and the fleet has no condition, 1 otherwise, or when
it is not known, 2 the state could not be read.`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return asking(cmd, file, func(t teller) error {
				is, err := t.Status(cmd.Context(), unitArgument(args))
				if err != nil {
					return err
				}
				if err := writeStatus(cmd.OutOrStdout(), output, is); err != nil {
					return err
				}
				if ails(&is.Fleet) || slices.ContainsFunc(is.Units, func(u status.Unit) bool { return u.Status != status.Done }) {
					return exit(exitProblems)
				}
				return nil
			})
		},
	}
	daemonFlags(cmd, &file)
	outputFlag(cmd, &output, listingFormats...)
	return cmd
}

// unitArgument is the unit, or the folder of units, that a command is about;
// empty is all.
func unitArgument(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return unitNamed(args[0])
}

// ails says whether something keeps the daemon from its work, or waits for somebody.
func ails(f *serve.Fleet) bool {
	return len(f.Plans)+len(f.Asks)+len(f.Clusters) > 0 ||
		slices.ContainsFunc(f.Conditions, store.Condition.Blocks)
}

// fleetLines is what there is to say of the fleet, a line each.
func fleetLines(f *serve.Fleet) (lines []string) {
	for _, t := range f.Conditions {
		lines = append(lines, fmt.Sprintf("%s: %s (since %s)", t.About, strings.TrimPrefix(t.Text, t.About+": "), fullTime(t.Since)))
	}
	for i := range f.Orders {
		o := &f.Orders[i]
		lines = append(lines, fmt.Sprintf("%s of %s %s: %s", o.Verb, o.Scope.Text(), serve.SinceText(o), o.EndCommand()))
	}
	for _, p := range f.Plans {
		plan := store.Plan{Digest: object.Digest(p.Plan), Rejected: p.Rejected}
		lines = append(lines, fmt.Sprintf("plan %s: %s pending since %s: %s", p.Plan, planText(p.Deletions, p.Unit, p.Forgets), fullTime(p.Since), plan.Ask()))
	}
	for _, ask := range f.Asks {
		lines = append(lines, fmt.Sprintf("gate %s: wave %s of %s waits for approval since %s: swell approve %s", ask.Digest.Short(), ask.Wave, ask.Unit, fullTime(ask.Since), ask.Digest.Short()))
	}
	for _, c := range f.Clusters {
		if c.Survey == store.Rebuilding {
			lines = append(lines, fmt.Sprintf("cluster %s: rebuilding its inventory: nothing is deleted until every unit there is applied and healthy", c.Cluster))
		}
		if c.Unknown != "" {
			lines = append(lines, fmt.Sprintf("cluster %s: %s could not be listed, so it is not known what swell has of them", c.Cluster, c.Unknown))
		}
	}
	return lines
}

func writeFleet(w io.Writer, f *serve.Fleet) error {
	for _, line := range fleetLines(f) {
		if _, err := fmt.Fprintln(w, visible(line)); err != nil {
			return err
		}
	}
	return nil
}

// writeStatus writes units and fleet.
func writeStatus(w io.Writer, format string, is serve.Status) error {
	switch format {
	case formatJSON, formatYAML:
		return writeData(w, format, struct {
			list[status.Unit]
			serve.Fleet
		}{listOf("UnitStatusList", is.Units), is.Fleet})
	case formatWide:
		if err := targetListing(is.Units).table(true).write(w); err != nil {
			return err
		}
		return writeFleet(w, &is.Fleet)
	}
	if err := unitListing(is.Units).write(w, format); err != nil || format == formatName {
		return err
	}
	return writeFleet(w, &is.Fleet)
}

// unitListing has a row for each unit.
func unitListing(units []status.Unit) *listing {
	l := &listing{kind: "UnitStatusList", columns: heads("UNIT", "STATUS", "WAVE", "COMMIT", "TARGETS", "REASON"), nothing: "no unit has been released yet"}
	for _, u := range units {
		l.add(u, string(u.Path), string(u.Path), string(u.Status), orDash(u.Wave), u.CommitText(), u.Progress(), u.Reason)
	}
	return l
}

// targetListing has a row for each unit on each target.
func targetListing(units []status.Unit) *listing {
	l := &listing{kind: "UnitStatusList", columns: heads("UNIT", "TARGET", "STATUS", "WAVE", "COMMIT", "HEALTH", "APPLIED", "WANTED", "REASON")}
	for _, u := range units {
		for _, t := range u.Targets {
			l.add(t, string(u.Path)+" "+string(t.Target), string(u.Path), string(t.Target), string(t.Status), orDash(t.Wave),
				orDash(t.Commit.Short()), orDash(string(t.Health)), orDash(t.Applied.Short()), orDash(t.Wanted.Short()), t.Reason)
		}
	}
	return l
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
