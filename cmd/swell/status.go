// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

func statusCommand() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "status [UNIT] --config FILE",
		Short: "Show how the rollouts stand, and what they wait for",
		Long: `Show for every unit, or for the units below a folder, how its last rollout stands
and why. It reads the daemon's state and may be used while the daemon runs.

Exit codes: 0 all units are where the commit wants them, 1 some are not,
2 the state could not be read.`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := map[string]func(io.Writer, []*rollout.Unit) error{"table": writeStatus, "wide": writeStatusWide, "json": writeStatusJSON}[output]
			if !ok {
				return fmt.Errorf("-o %q: want table, wide or json", output)
			}
			units, err := readStatus(file, argumentOr(args, ""))
			if err != nil {
				return err
			}
			if err := write(cmd.OutOrStdout(), units); err != nil {
				return err
			}
			if slices.ContainsFunc(units, unfinished) {
				return exit(exitProblems)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "swell-daemon.yaml", "configuration of the daemon (kind: Daemon)")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, wide (a line for each target) or json")
	return cmd
}

func argumentOr(args []string, otherwise string) string {
	if len(args) > 0 {
		return strings.TrimSuffix(args[0], "/")
	}
	return otherwise
}

func unfinished(u *rollout.Unit) bool {
	return u.Blocked != "" || u.Rollout.Status != rollout.Done || u.Rollout.Reason != ""
}

func readStatus(file, below string) ([]*rollout.Unit, error) {
	below = unitFlag(below)
	settings, err := readDaemonConfig(file)
	if err != nil {
		return nil, err
	}
	s, err := store.OpenReadOnly(settings.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hinted{fmt.Errorf("%s: no state yet", settings.State), "swell run makes it"}
	}
	if err != nil {
		return nil, err
	}
	defer s.Close()
	state, err := sync.LoadState(s)
	if err != nil {
		return nil, err
	}
	var units []*rollout.Unit
	for _, path := range slices.Sorted(maps.Keys(state.Units)) {
		if within(string(path), below) {
			units = append(units, state.Units[path])
		}
	}
	if len(state.Units) == 0 {
		return nil, hinted{errors.New("no unit has been released yet"), "swell run says what it waits for"}
	}
	if len(units) == 0 {
		return nil, fmt.Errorf("%q: no such unit%s", below, didYouMean(below, slices.Collect(maps.Keys(state.Units))))
	}
	return units, nil
}

func writeStatus(w io.Writer, units []*rollout.Unit) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "UNIT\tSTATUS\tWAVE\tCOMMIT\tTARGETS\tREASON")
	for _, u := range units {
		there, total := progress(u)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d/%d\t%s\n", u.Path, u.Rollout.Status, waveName(u), u.Rollout.Commit.Short(), there, total, reason(u))
	}
	return table.Flush()
}

func writeStatusWide(w io.Writer, units []*rollout.Unit) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "UNIT\tTARGET\tWAVE\tHEALTH\tAPPLIED\tWANTED\tREASON")
	for _, u := range units {
		for _, name := range slices.Sorted(maps.Keys(u.Targets)) {
			t := u.Targets[name]
			wave := "-"
			if t.Wave >= 0 && t.Wave < len(u.Rollout.Spec.Waves) {
				wave = u.Rollout.Spec.Waves[t.Wave].Name
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", u.Path, name, wave, orDash(string(t.Health)),
				orDash(t.Applied.Short()), orDash(t.Wanted.Short()), t.Reason)
		}
	}
	return table.Flush()
}

func writeStatusJSON(w io.Writer, units []*rollout.Unit) error {
	return writeList(w, "UnitStatusList", units)
}

// progress counts the targets that hold what is wanted and are healthy.
func progress(u *rollout.Unit) (there, total int) {
	for _, t := range u.Targets {
		if t.Applied == t.Wanted && !t.Dirty && t.Health == rollout.HealthGood {
			there++
		}
	}
	return there, len(u.Targets)
}

func waveName(u *rollout.Unit) string {
	if u.Rollout.Status != rollout.Progressing || u.Rollout.Wave >= len(u.Rollout.Spec.Waves) {
		return "-"
	}
	return fmt.Sprintf("%s (%d of %s)", u.Rollout.Spec.Waves[u.Rollout.Wave].Name, u.Rollout.Wave+1, diff.Count(len(u.Rollout.Spec.Waves), "wave"))
}

// reason is why the unit is not where the newest commit wants it.
func reason(u *rollout.Unit) string {
	if u.Blocked != "" {
		return u.Blocked
	}
	return u.Rollout.Reason
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
