// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/sync/status"
)

func getRolloutsCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:   "rollouts [UNIT | FOLDER | TARGET | CLUSTER] --config FILE",
		Short: "List rollouts that are under way or not done, and what they wait for",
		Long: `List the units whose rollout is under way or not done, a line for each: its commit, its
status, the wave that it is in, how many targets are done, since when, and what it waits
for. swell describe UNIT says more of one.`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return asking(cmd, file, func(t teller) error {
				lines, err := t.Rollouts(cmd.Context(), unitArgument(args), all)
				if err != nil {
					return err
				}
				return rolloutListing(lines).write(cmd.OutOrStdout(), output)
			})
		},
	}
	daemonFlags(cmd, &file)
	outputFlag(cmd, &output, listingFormats...)
	cmd.Flags().BoolVar(&all, "all", false, "list those that are done, too")
	return cmd
}

func rolloutListing(lines []status.UnderWay) *listing {
	l := &listing{kind: "RolloutList", columns: heads("UNIT", "COMMIT", "STATUS", "WAVE", "TARGETS", "SINCE", "WAITS FOR"), nothing: "no rollout is under way"}
	for i := range lines {
		u := &lines[i]
		l.add(u, string(u.Unit), string(u.Unit), orDash(u.Commit.Short()), string(u.Status), waveText(u), fmt.Sprintf("%d/%d", u.Done, u.Targets), fullTime(u.Since), u.Waits)
	}
	return l
}

// waveText is the wave that a rollout is in: "2/3 sas".
func waveText(u *status.UnderWay) string {
	if u.WaveName == "" {
		return "-"
	}
	return fmt.Sprintf("%d/%d %s", u.Wave, u.Waves, u.WaveName)
}

// roundly is a duration without more than two units: "2h5m", "6m", "40s".
func roundly(d time.Duration) string {
	if d < 0 {
		return "0s"
	}
	if d >= 10*time.Minute {
		d = d.Round(time.Minute)
	}
	days, hours, minutes, seconds := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60, int(d.Seconds())%60
	for _, part := range []struct {
		big, small int
		names      string
	}{{days, hours, "dh"}, {hours, minutes, "hm"}, {minutes, seconds, "ms"}} {
		switch {
		case part.big == 0:
		case part.small == 0:
			return fmt.Sprintf("%d%c", part.big, part.names[0])
		default:
			return fmt.Sprintf("%d%c%d%c", part.big, part.names[0], part.small, part.names[1])
		}
	}
	return cmp.Or(fmt.Sprintf("%ds", seconds), "0s")
}
