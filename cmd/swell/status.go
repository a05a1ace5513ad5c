// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync/status"
	"github.com/swell-sh/swell/sync/store"
)

func statusCommand() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "status [UNIT] --config FILE",
		Short: "Show the state of the units, and what they wait for",
		Long: `Show every unit, or the units below a folder: its state in one word, the commit that
its targets hold, the number of healthy targets, and the reason when it is not done.
When several words are true, the first of this list is shown: held, rolling back,
rolled back, failed, fight, quarantined, blocked, drifted, empty, approval,
unreachable, unavailable, waiting, progressing, done.

Then come conditions of the whole fleet: why a newer commit is not known or not
taken, why a new unit is not released, clusters that cannot be reached, deletions that
wait for approval, and clusters whose inventory is being rebuilt. -o wide has a line
for each target. It reads the daemon's state, also when the daemon does not run, and
says so then.

Exit codes: 0 all units are done and the fleet has no condition, 1 otherwise, or when
it is not known, 2 the state could not be read.`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			units, fleet, err := readStatus(file, unitArgument(args))
			if err != nil {
				return err
			}
			if err := writeStatus(cmd.OutOrStdout(), output, units, fleet); err != nil {
				return err
			}
			if !fleet.Running {
				fmt.Fprintln(cmd.ErrOrStderr(), "swell: the daemon is not running; this is the last recorded state")
			}
			if fleet.ails() || len(fleet.notes) > 0 || slices.ContainsFunc(units, func(u status.Unit) bool { return u.Status != status.Done }) {
				return exit(exitProblems)
			}
			return nil
		},
	}
	configFlag(cmd, &file)
	outputFlag(cmd, &output, listingFormats...)
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

// fleetStatus is what there is to say of the fleet as a whole.
type fleetStatus struct {
	Running    bool              `json:"running"` // a daemon is at work on the state
	Conditions []store.Condition `json:"conditions,omitempty"`
	Plans      []planSummary     `json:"plans,omitempty"`
	Clusters   []clusterStatus   `json:"clusters,omitempty"`

	notes []string // about plans and clusters, a line each
}

// planSummary is deletions that wait for approval.
type planSummary struct {
	Plan      string           `json:"plan"`
	Unit      config.UnitPath  `json:"unit,omitempty"` // empty: the whole fleet
	Deletions int              `json:"deletions"`
	Since     time.Time        `json:"since"`
	Rejected  *store.Rejection `json:"rejected,omitempty"`
}

// clusterStatus is a cluster of which not everything is known.
type clusterStatus struct {
	Cluster string       `json:"cluster"`
	Survey  store.Survey `json:"survey,omitempty"`
	Unknown string       `json:"unknown,omitempty"` // kinds that could not be listed
}

// ails says whether something keeps the daemon from its work.
func (f *fleetStatus) ails() bool {
	return slices.ContainsFunc(f.Conditions, func(t store.Condition) bool { return t.About != store.AboutConfiguration })
}

func (f *fleetStatus) write(w io.Writer) error {
	var lines []string
	for _, t := range f.Conditions {
		lines = append(lines, fmt.Sprintf("%s: %s (since %s)", t.About, strings.TrimPrefix(t.Text, t.About+": "), t.Since.Format(time.RFC3339)))
	}
	for _, line := range append(lines, f.notes...) {
		if _, err := fmt.Fprintln(w, visible(line)); err != nil {
			return err
		}
	}
	return nil
}

// readStatus reads the units below a folder, and how the fleet is.
func readStatus(file, below string) (units []status.Unit, fleet fleetStatus, err error) {
	s, err := openState(file)
	if err != nil {
		return nil, fleet, err
	}
	defer s.Close()
	if fleet.Running, err = s.InUse(); err != nil {
		return nil, fleet, err
	}
	conditions, err := s.Conditions()
	if err != nil {
		return nil, fleet, err
	}
	fleet.Conditions = slices.DeleteFunc(conditions, func(t store.Condition) bool {
		unit, isUnits := strings.CutPrefix(t.About, "unit ")
		return isUnits && !config.Within(unit, below)
	})
	told := below == "" && len(fleet.Conditions) > 0 ||
		slices.ContainsFunc(fleet.Conditions, func(t store.Condition) bool { return strings.HasPrefix(t.About, "unit ") })
	units, err = statusesBelow(s, below)
	if err != nil && !told { // why nothing is there
		return nil, fleet, err
	}
	return units, fleet, fleet.readNotes(s, below)
}

// statusesBelow are the units below a folder, sorted by path; at least one.
func statusesBelow(s *store.Store, below string) ([]status.Unit, error) {
	found, err := unitsBelow(s, below)
	if err != nil {
		return nil, err
	}
	drifts, err := s.Drifts()
	if err != nil {
		return nil, err
	}
	units := make([]status.Unit, len(found))
	for i, u := range found {
		units[i] = status.Of(u, drifts)
	}
	return units, nil
}

// readNotes notes which deletions wait for approval, and which clusters'
// objects are not all known.
func (f *fleetStatus) readNotes(s *store.Store, below string) error {
	plans, err := s.Plans()
	if err != nil {
		return err
	}
	for _, p := range plans {
		if p.Unit != "" && !config.Within(string(p.Unit), below) {
			continue
		}
		f.Plans = append(f.Plans, planSummary{p.Digest.Short(), p.Unit, len(p.Deletions), p.At.UTC(), p.Rejected})
		f.notes = append(f.notes, fmt.Sprintf("plan %s: %s of %s pending since %s: %s",
			p.Digest.Short(), diff.Count(len(p.Deletions), "deletion"), planOf(p), p.At.UTC().Format(time.RFC3339), p.Ask()))
	}
	clusters, err := s.Clusters()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		c := clusters[name]
		if c.Survey != store.Rebuilding && c.Unknown == "" {
			continue
		}
		f.Clusters = append(f.Clusters, clusterStatus{name, c.Survey, c.Unknown})
		if c.Survey == store.Rebuilding {
			f.notes = append(f.notes, fmt.Sprintf("cluster %s: rebuilding its inventory: nothing is deleted until every unit there is applied and healthy", name))
		}
		if c.Unknown != "" {
			f.notes = append(f.notes, fmt.Sprintf("cluster %s: %s could not be listed, so it is not known what swell has of them", name, c.Unknown))
		}
	}
	return nil
}

// writeStatus writes units and fleet.
func writeStatus(w io.Writer, format string, units []status.Unit, fleet fleetStatus) error {
	switch format {
	case formatJSON, formatYAML:
		return writeData(w, format, struct {
			list[status.Unit]
			fleetStatus
		}{listOf("UnitStatusList", units), fleet})
	case formatWide:
		if err := targetListing(units).table(true).write(w); err != nil {
			return err
		}
		return fleet.write(w)
	}
	if err := unitListing(units).write(w, format); err != nil || format == formatName {
		return err
	}
	return fleet.write(w)
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
