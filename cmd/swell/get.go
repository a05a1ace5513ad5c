// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/status"
	"github.com/swell-sh/swell/sync/store"
)

func getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get units|objects|drift|targets",
		Short: "List units, objects, drift or targets from the daemon's state",
		Long: `List units, applied objects, drifted objects or targets from the daemon's state. It
asks no cluster, and may be used while the daemon runs.

Exit codes: 0 listed, 2 the state could not be read.`,
		RunE: oneOfItsVerbs,
	}
	cmd.AddCommand(
		getVerb("units [UNIT]", "List units with their state and its reason", getUnits),
		getVerb("objects [UNIT]", "List applied objects, and those that may have been applied", getObjects),
		getVerb("drift [UNIT]", "List drifted objects: who changed which field, and what swell does about it", getDrift),
		getVerb("targets [UNIT]", "List targets with the number of their units and of the healthy ones", getTargets),
	)
	return cmd
}

func getVerb(use, short string, find func(s *store.Store, below string) (*listing, error)) *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   use + " --config FILE",
		Short: short,
		Args:  arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := openState(file)
			if err != nil {
				return err
			}
			defer s.Close()
			found, err := find(s, unitArgument(args))
			if err != nil {
				return err
			}
			return found.write(cmd.OutOrStdout(), output)
		},
	}
	configFlag(cmd, &file)
	outputFlag(cmd, &output, listingFormats...)
	return cmd
}

func getUnits(s *store.Store, below string) (*listing, error) {
	units, err := statusesBelow(s, below)
	if err != nil {
		return nil, err
	}
	return unitListing(units), nil
}

// State of an object as far as the inventory tells.
const (
	objectApplied  = "applied"
	objectDoubtful = "to be applied again" // what the cluster has is not known
	objectIntended = "intended"            // and perhaps never made
)

func getObjects(s *store.Store, below string) (*listing, error) {
	entries, err := s.Inventories(config.UnitPath(below))
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		if err := noUnits(s, below); err != nil {
			return nil, err
		}
	}
	l := &listing{kind: "ObjectList", columns: append(heads("OBJECT", "TARGET", "UNIT", "STATE"), column{head: "UID", wide: true})}
	for _, e := range entries {
		state := objectApplied
		switch {
		case e.UID == "":
			state = objectIntended
		case e.Digest == "":
			state = objectDoubtful
		}
		item := struct {
			Target    config.TargetName `json:"target"`
			Unit      config.UnitPath   `json:"unit"`
			Group     string            `json:"group,omitempty"`
			Version   string            `json:"version"`
			Kind      string            `json:"kind"`
			Namespace string            `json:"namespace,omitempty"`
			Name      string            `json:"name"`
			UID       string            `json:"uid,omitempty"`
			State     string            `json:"state"`
		}{e.Target, e.Unit, e.ID.Group, e.Version, e.ID.Kind, e.ID.Namespace, e.ID.Name, e.UID, state}
		l.add(item, string(e.Target)+" "+e.ID.String(), e.ID.String(), string(e.Target), string(e.Unit), state, orDash(e.UID))
	}
	return l, nil
}

func getDrift(s *store.Store, below string) (*listing, error) {
	units, err := statusesBelow(s, below)
	if err != nil {
		return nil, err
	}
	l := &listing{kind: "DriftList", columns: heads("OBJECT", "TARGET", "UNIT", "MODE", "FOUND", "WHAT"), nothing: "no drift is known"}
	for _, u := range units {
		for _, d := range u.Drift {
			item := struct {
				Unit config.UnitPath `json:"unit"`
				status.Drift
			}{u.Path, d}
			l.add(item, string(d.Target)+" "+d.Object, d.Object, string(d.Target), string(u.Path), d.Mode, d.Found.Local().Format(time.DateTime), d.Text)
		}
	}
	return l, nil
}
