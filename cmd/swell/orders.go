// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/status"
)

func ordersCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var output string
	cmd := &cobra.Command{
		Use:   "orders --config FILE",
		Short: "List the orders in force, and those that wait to be carried out",
		Long: `List the orders in force (pauses, freezes, masks, retired targets, approvals of gates) and
those that the daemon has not taken up yet. Orders that were carried out are in swell history.

Exit codes: 0 listed, 2 the state could not be read.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return asking(cmd, file, func(t teller) error {
				is, err := t.Orders(cmd.Context())
				if err != nil {
					return err
				}
				return orderListing(is).write(cmd.OutOrStdout(), output)
			})
		},
	}
	configFlag(cmd, &file)
	outputFlag(cmd, &output, listingFormats...)
	return cmd
}

func orderListing(is serve.Orders) *listing {
	l := &listing{kind: "OrderList", columns: heads("ORDER", "VERB", "OF", "STATE", "SINCE", "UNTIL", "BY", "REASON"), nothing: "nothing is in force, and nothing waits"}
	add := func(orders []order.Order, state string) {
		for i := range orders {
			o, until := &orders[i], "-"
			if !o.Until.IsZero() {
				until = fullTime(o.Until)
			}
			item := struct {
				*order.Order
				State string `json:"state"`
			}{o, state}
			number := strconv.FormatInt(o.Seq, 10)
			l.add(item, number, number, string(o.Verb), o.Scope.Text(), state, fullTime(o.At), until, o.By, orDash(o.Reason))
		}
	}
	add(is.Standing, "in force")
	add(is.Waiting, "waiting")
	return l
}

func quarantineCommand(in *invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quarantine list|clear",
		Short: "List the bundles that failed before, or let them be released again",
		Long: `A bundle that failed is not released again until another commit brings another one, or
its quarantine is cleared.

Exit codes: 0 listed or ordered, 2 it could not be.`,
		RunE: oneOfItsVerbs,
	}
	cmd.AddCommand(
		getVerb(in, "list [UNIT]", "List the bundles in quarantine", getQuarantine),
		orderCommand(in, orderVerb{verb: order.Clear, command: "clear", about: whatUnits, short: "End the quarantine of bundles",
			long:    `End the quarantine of bundles: the next pass releases them again if Git still wants them.`,
			example: "  swell quarantine clear services/shop/cart --reason \"the registry is back\""}))
	return cmd
}

func getQuarantine(ctx context.Context, t teller, below string) (*listing, error) {
	units, err := t.Units(ctx, below)
	if err != nil {
		return nil, err
	}
	l := &listing{kind: "QuarantineList", columns: heads("UNIT", "BUNDLE", "COMMIT", "TARGET", "SINCE", "REASON"), nothing: "no bundle is in quarantine"}
	for _, u := range units {
		for _, q := range u.Quarantine {
			item := struct {
				Unit string `json:"unit"`
				status.QuarantinedBundle
			}{string(u.Path), q}
			l.add(item, string(u.Path), string(u.Path), q.Bundle.Short(), q.Commit.Short(), string(q.Target), fullTime(q.At), q.Why)
		}
	}
	return l, nil
}

func targetCommand(in *invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "target list|retire|restore",
		Short: "List targets, empty one for good, or take it back",
		Long: `A retired target is emptied, whatever Git wants there, and stays empty until it is
restored.

Exit codes: 0 listed or ordered, 2 it could not be.`,
		RunE: oneOfItsVerbs,
	}
	cmd.AddCommand(
		getVerb(in, "list [UNIT]", "List targets with the number of their units and of the healthy ones", getTargets),
		orderCommand(in, orderVerb{verb: order.Retire, command: "retire", about: "TARGET | CLUSTER", short: "Empty a target or a cluster",
			long: `Remove all that swell has on a target or in a cluster, whatever Git wants there. Deletions
above the guard wait for swell approve. swell target restore ends it. --reason is
required.`,
			example: "  swell target retire sas-1/rz00a --reason \"the hall is closed\""}),
		orderCommand(in, orderVerb{verb: order.Restore, command: "restore", about: "TARGET | CLUSTER | --all", short: "Take retired targets back",
			long:    `Bring what Git wants to a retired target again, through the waves.`,
			example: "  swell target restore sas-1/rz00a"}))
	return cmd
}
