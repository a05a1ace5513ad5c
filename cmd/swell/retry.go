// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

func retryCommand() *cobra.Command {
	var file, output, reason string
	var all bool
	cmd := &cobra.Command{
		Use:   "retry [UNIT | TARGET | CLUSTER | --all] --config FILE",
		Short: "Try failed or waiting releases again, without a new commit",
		Long: `Without an argument, list what can be tried again: rollouts that are held or were
rolled back, bundles in quarantine, and unreachable or unavailable targets.

With a unit (or a folder of units), a target, a cluster or --all, tell the daemon to
try again. The quarantine of the units is cleared, a failed rollout starts again at
its first wave, and a waiting attempt is due at once. A target or a cluster selects
the units that are there. The daemon also fetches from Git and asks the clusters
again.

The order is stored. A running daemon carries it out within a second; otherwise the
next daemon does when it starts. swell history shows who gave the order, when and why.

Exit codes: 0 ordered, or listed; 2 there is no such unit or target, or the state
could not be read or written.`,
		Example: `  swell retry
  swell retry services/shop/cart --reason "the registry is back"
  swell retry sas-1/rz00a
  swell retry --all`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return errors.New("--all and a name: want one of them")
			}
			if err := oneLineReason(reason); err != nil {
				return err
			}
			s, err := openState(file)
			if err != nil {
				return err
			}
			defer s.Close()
			state, err := sync.LoadState(s)
			if err != nil {
				return err
			}
			if len(args) == 0 && !all {
				return retryListing(state).write(cmd.OutOrStdout(), output)
			}
			order := store.Order{At: time.Now(), By: whoami(), Verb: store.OrderRetry, Reason: reason}
			what := "everything"
			if len(args) > 0 {
				what = args[0]
				if order.Unit, order.Target, err = unitOrTarget(state, args[0]); err != nil {
					return err
				}
			}
			settings, err := readDaemonConfig(file)
			if err != nil {
				return err
			}
			if err := store.Give(cmd.Context(), settings.State, order); err != nil {
				return err
			}
			running, err := s.InUse()
			if err != nil {
				return err
			}
			when := "the daemon takes it up within a second"
			if !running {
				when = "the daemon does not run: it takes it up when it starts"
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "swell: retry of %s ordered: %s\n", what, when)
			return nil
		},
	}
	configFlag(cmd, &file)
	outputFlag(cmd, &output, listingFormats...)
	cmd.Flags().BoolVar(&all, "all", false, "everything that can be tried again")
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the history")
	return cmd
}

// oneLineReason refuses what would not stand in one line of the history.
func oneLineReason(reason string) error {
	if strings.ContainsFunc(reason, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("--reason: want one line without control characters")
	}
	return nil
}

// unitOrTarget finds what a name is: a unit or a folder of units, or else a target
// or a cluster that some unit is on.
func unitOrTarget(state *rollout.State, name string) (config.UnitPath, config.TargetName, error) {
	given := name
	if name = path.Clean(name); name == "." || name == "/" {
		return "", "", hinted{fmt.Errorf("%q: want a unit, a target or a cluster", given), "--all retries everything"}
	}
	places := map[config.TargetName]bool{}
	for path, u := range state.Units {
		if config.Within(string(path), name) {
			return config.UnitPath(name), "", nil
		}
		for target := range u.Targets {
			places[target], places[config.TargetName(target.Cluster())] = true, true
		}
	}
	if places[config.TargetName(name)] {
		return "", config.TargetName(name), nil
	}
	return "", "", hinted{fmt.Errorf("%q: no such unit, target or cluster%s", name, didYouMean(name, slices.Collect(maps.Keys(state.Units)))),
		"swell retry lists what could be tried again"}
}

func retryListing(state *rollout.State) *listing {
	l := &listing{kind: "RetriableList", columns: heads("UNIT", "TARGET", "STATE", "REASON"), nothing: "nothing failed or waits"}
	for _, path := range slices.Sorted(maps.Keys(state.Units)) {
		for _, item := range state.Units[path].Retriable() {
			l.add(item, string(item.Unit), string(item.Unit), orDash(string(item.Target)), item.State, orDash(item.Reason))
		}
	}
	return l
}
