// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

func statusCommand() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "status [UNIT] --config FILE",
		Short: "Show how the rollouts stand, and what they wait for",
		Long: `Show for every unit, or for the units below a folder, how its last rollout stands
and why, and what is known to differ from what was applied; then why a newer commit
is not known or not taken, or a new unit not released, which clusters cannot be
reached, deletions that wait for approval, and clusters whose inventory is being
rebuilt. It reads the daemon's state, whether or not the daemon runs, and says when
it does not.

Exit codes: 0 all units are where the commit wants them, 1 some are not, or it is
not known, 2 the state could not be read.`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := map[string]func(io.Writer, []unitStatus) error{"table": writeStatus, "wide": writeStatusWide, "json": nil}[output]
			if !ok {
				return fmt.Errorf("-o %q: want table, wide or json", output)
			}
			units, fleet, err := readStatus(file, unitArgument(args))
			if err != nil {
				return err
			}
			if output == "json" {
				err = writeStatusJSON(cmd.OutOrStdout(), units, fleet)
			} else if err = write(cmd.OutOrStdout(), units); err == nil {
				err = fleet.write(cmd.OutOrStdout())
			}
			if err != nil {
				return err
			}
			if !fleet.running {
				fmt.Fprintln(cmd.ErrOrStderr(), "swell: this is how it was left: no swell run is at work on it")
			}
			if len(fleet.troubles) > 0 || slices.ContainsFunc(units, unfinished) {
				return exit(exitProblems)
			}
			return nil
		},
	}
	configFlag(cmd, &file)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, wide (a line for each target) or json")
	return cmd
}

// unitArgument is the unit, or the folder of units, that a command is about;
// empty is all.
func unitArgument(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return unitFlag(args[0])
}

func unfinished(u unitStatus) bool {
	return u.Blocked != "" || u.Waiting != "" || u.Rollout.Status != rollout.Done || u.Rollout.Reason != ""
}

// fleetStatus is what there is to say of the fleet as a whole.
type fleetStatus struct {
	running  bool // a daemon is at work on the state
	troubles []store.Trouble
	notes    []string // a line each
}

func (f *fleetStatus) write(w io.Writer) error {
	for _, t := range f.troubles {
		if _, err := fmt.Fprintf(w, "%s: %s (since %s)\n", t.About, strings.TrimPrefix(t.Text, t.About+": "), t.Since.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	for _, note := range f.notes {
		if _, err := fmt.Fprintln(w, note); err != nil {
			return err
		}
	}
	return nil
}

// readStatus reads the units below a folder, and how the fleet is.
func readStatus(file, below string) (units []unitStatus, fleet fleetStatus, err error) {
	s, err := openState(file)
	if err != nil {
		return nil, fleet, err
	}
	defer s.Close()
	if fleet.running, err = s.InUse(); err != nil {
		return nil, fleet, err
	}
	troubles, err := s.Troubles()
	if err != nil {
		return nil, fleet, err
	}
	fleet.troubles = slices.DeleteFunc(troubles, func(t store.Trouble) bool {
		unit, isUnits := strings.CutPrefix(t.About, "unit ")
		return isUnits && !within(unit, below)
	})
	told := below == "" && len(fleet.troubles) > 0 ||
		slices.ContainsFunc(fleet.troubles, func(t store.Trouble) bool { return strings.HasPrefix(t.About, "unit ") })
	found, err := unitsBelow(s, below)
	if err != nil && !told { // why nothing is there
		return nil, fleet, err
	}
	drifts, err := s.Drifts()
	if err != nil {
		return nil, fleet, err
	}
	for _, u := range found {
		units = append(units, withDrift(u, drifts))
	}
	fleet.notes, err = fleetNotes(s)
	return units, fleet, err
}

// fleetNotes says which deletions wait for approval, and which clusters' objects
// are not all known.
func fleetNotes(s *store.Store) (notes []string, err error) {
	plans, err := s.Plans()
	if err != nil {
		return nil, err
	}
	for _, p := range plans {
		notes = append(notes, fmt.Sprintf("plan %s: %s of %s for approval since %s: swell approve %s",
			p.Digest.Short(), diff.Count(len(p.Deletions), "deletion"), planOf(p), p.At.UTC().Format(time.RFC3339), p.Digest.Short()))
	}
	clusters, err := s.Clusters()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		c := clusters[name]
		if c.Survey == store.Rebuilding {
			notes = append(notes, fmt.Sprintf("cluster %s: rebuilding its inventory: nothing is deleted until every unit there is applied and healthy", name))
		}
		if c.Unknown != "" {
			notes = append(notes, fmt.Sprintf("cluster %s: not known what swell has of %s: they could not be listed", name, c.Unknown))
		}
	}
	return notes, nil
}

func writeStatus(w io.Writer, units []unitStatus) error {
	l := &listing{head: []string{"UNIT", "STATUS", "WAVE", "COMMIT", "TARGETS", "REASON"}}
	for _, u := range units {
		is := standingOf(u.Unit)
		l.add(u, string(is.Path), string(is.Status), waveName(u.Unit), is.Commit.Short(), is.progress(), cmp.Or(is.Reason, u.driftText("")))
	}
	return writeListing(w, l)
}

func writeStatusWide(w io.Writer, units []unitStatus) error {
	l := &listing{head: []string{"UNIT", "TARGET", "WAVE", "HEALTH", "APPLIED", "WANTED", "REASON"}}
	for _, u := range units {
		for _, name := range slices.Sorted(maps.Keys(u.Targets)) {
			t := u.Targets[name]
			wave := "-"
			if t.Wave >= 0 && t.Wave < len(u.Rollout.Spec.Waves) {
				wave = u.Rollout.Spec.Waves[t.Wave].Name
			}
			l.add(u, string(u.Path), string(name), wave, orDash(string(t.Health)),
				orDash(t.Applied.Short()), orDash(t.Wanted.Short()), cmp.Or(t.Reason, u.driftText(name)))
		}
	}
	return writeListing(w, l)
}

func writeStatusJSON(w io.Writer, units []unitStatus, fleet fleetStatus) error {
	return writeIndented(w, struct {
		list[unitStatus]
		Running  bool            `json:"running"`
		Troubles []store.Trouble `json:"troubles,omitempty"`
	}{listOf("UnitStatusList", units), fleet.running, fleet.troubles})
}

// standing is how a unit stands, in short.
type standing struct {
	Path    config.UnitPath `json:"path"`
	Status  rollout.Status  `json:"status"`
	Commit  config.Commit   `json:"commit"`
	Ready   int             `json:"ready"` // targets that hold what is wanted and are healthy
	Targets int             `json:"targets"`
	Reason  string          `json:"reason,omitempty"`
}

func standingOf(u *rollout.Unit) standing {
	is := standing{Path: u.Path, Status: u.Rollout.Status, Commit: u.Rollout.Commit, Targets: len(u.Targets), Reason: reason(u)}
	for _, t := range u.Targets {
		if ready(t) {
			is.Ready++
		}
	}
	return is
}

func (s standing) progress() string { return fmt.Sprintf("%d/%d", s.Ready, s.Targets) }

// ready says whether the target holds what is wanted and is healthy.
func ready(t *rollout.Target) bool {
	return t.Applied == t.Wanted && !t.Dirty && t.Health == rollout.HealthGood
}

func waveName(u *rollout.Unit) string {
	if u.Rollout.Status != rollout.Progressing || u.Rollout.Wave >= len(u.Rollout.Spec.Waves) {
		return "-"
	}
	return fmt.Sprintf("%s (%d of %s)", u.Rollout.Spec.Waves[u.Rollout.Wave].Name, u.Rollout.Wave+1, diff.Count(len(u.Rollout.Spec.Waves), "wave"))
}

// reason is why the unit is not where the newest commit wants it.
func reason(u *rollout.Unit) string {
	switch {
	case u.Blocked != "":
		return u.Blocked
	case u.Waiting != "" && !strings.Contains(u.Rollout.Reason, u.Waiting):
		return strings.TrimPrefix(u.Rollout.Reason+"; "+u.Waiting, "; ")
	}
	return u.Rollout.Reason
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
