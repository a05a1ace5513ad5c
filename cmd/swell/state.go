// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// configFlag is for commands that look at what a daemon does.
func configFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "config", "c", "daemon.yaml", "configuration of the daemon (kind: Daemon)")
}

// openState opens the state of the daemon with that configuration for reading.
func openState(file string) (*store.Store, error) {
	settings, err := readDaemonConfig(file)
	if err != nil {
		return nil, err
	}
	s, err := store.OpenReadOnly(settings.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hinted{fmt.Errorf("%s: no state yet", settings.State), "swell run creates it"}
	}
	return s, err
}

// unitsBelow are the states of the unit with that path and of those below it,
// sorted by path; of all when it is empty. There is at least one.
func unitsBelow(s *store.Store, below string) ([]*rollout.Unit, error) {
	state, err := sync.LoadState(s)
	if err != nil {
		return nil, err
	}
	var units []*rollout.Unit
	for _, path := range slices.Sorted(maps.Keys(state.Units)) {
		if config.Within(string(path), below) {
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

// noUnits is why nothing was found below a path: nil when there are units, and
// nothing was to be found.
func noUnits(s *store.Store, below string) error {
	_, err := unitsBelow(s, below)
	return err
}
