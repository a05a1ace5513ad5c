// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/render/object"
)

func getVerb(in *invocation, use, short string, find func(ctx context.Context, t teller, below string) (*listing, error)) *cobra.Command {
	file := configPath{in: in}
	var output string
	cmd := &cobra.Command{
		Use:   use + " --config FILE",
		Short: short,
		Args:  arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return asking(cmd, file, func(t teller) error {
				found, err := find(cmd.Context(), t, unitArgument(args))
				if err != nil {
					return err
				}
				return found.write(cmd.OutOrStdout(), output)
			})
		},
	}
	daemonFlags(cmd, &file)
	outputFlag(cmd, &output, listingFormats...)
	return cmd
}

func getUnits(ctx context.Context, t teller, below string) (*listing, error) {
	units, err := t.Units(ctx, below)
	if err != nil {
		return nil, err
	}
	return unitListing(units), nil
}

func getObjects(ctx context.Context, t teller, below string) (*listing, error) {
	objects, err := t.Objects(ctx, below)
	if err != nil {
		return nil, err
	}
	l := &listing{kind: "ObjectList", columns: append(heads("OBJECT", "TARGET", "UNIT", "STATE"), column{head: "UID", wide: true})}
	for _, o := range objects {
		id := object.ID{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.String()
		l.add(o, string(o.Target)+" "+id, id, string(o.Target), string(o.Unit), o.State, orDash(o.UID))
	}
	return l, nil
}

func getDrift(ctx context.Context, t teller, below string) (*listing, error) {
	drifted, err := t.Drift(ctx, below)
	if err != nil {
		return nil, err
	}
	l := &listing{kind: "DriftList", columns: heads("OBJECT", "TARGET", "UNIT", "MODE", "FOUND", "WHAT"), nothing: "no drift is known"}
	for _, d := range drifted {
		l.add(d, string(d.Target)+" "+d.Object, d.Object, string(d.Target), string(d.Unit), d.Mode, fullTime(d.Found), d.Text)
	}
	return l, nil
}

func getTargets(ctx context.Context, t teller, below string) (*listing, error) {
	targets, err := t.Targets(ctx, below)
	if err != nil {
		return nil, err
	}
	l := &listing{kind: "TargetList", columns: append(heads("TARGET", "UNITS", "READY", "FAILED", "WAITING", "DRIFTED", "SWEPT"), column{head: "ORDERS", wide: true}, column{head: "REASON"})}
	for _, c := range targets {
		at := "-"
		if !c.SweptAt.IsZero() {
			at = fullTime(c.SweptAt)
		}
		var orders []string
		for _, verb := range c.Orders {
			orders = append(orders, string(verb))
		}
		l.add(c, string(c.Target), string(c.Target), strconv.Itoa(c.Units), fmt.Sprintf("%d/%d", c.Ready, c.Units), strconv.Itoa(c.Failed), strconv.Itoa(c.Waiting),
			strconv.Itoa(c.Drifted), at, orDash(strings.Join(orders, ",")), c.Reason)
	}
	return l, nil
}
