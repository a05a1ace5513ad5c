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
	daemonFlags(cmd, &file)
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

func clearCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Clear, command: "clear", about: whatUnits, short: "End the quarantine of bundles",
		long:    `End the quarantine of bundles: the next pass releases them again if Git still wants them.`,
		example: "  swell quarantine clear services/shop/cart --reason \"the registry is back\""})
}

func retireCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Retire, lists: true, command: "retire", about: "TARGET | CLUSTER", short: "Empty a target or a cluster",
		long: `Remove all that swell has on a target or in a cluster, whatever Git wants there. Deletions
above the guard wait for swell approve. swell target restore ends it. --reason is
required.`,
		example: "  swell target retire sas-1/rz00a --reason \"the hall is closed\""})
}

func restoreCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Restore, command: "restore", about: "TARGET | CLUSTER | --all", short: "Take retired targets back",
		long:    `Bring what Git wants to a retired target again, through the waves.`,
		example: "  swell target restore sas-1/rz00a"})
}

func acceptCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Accept, lists: true, command: "accept", about: "CLUSTER --uid UID",
		short: "Take a cluster that was made anew for a new one",
		long: `Take a cluster that was made anew under its name for a new one. Nothing is written to a
cluster that has another identity than before: a kubeconfig may have been swapped. swell
status shows both identities. Accepting the new one forgets what the old one had, and brings
the newest commit there through the waves, as to any new cluster. The same goes for a cluster
that the state knows nothing of and whose Lease has the name of another one. --uid and
--reason are required.`,
		example: "  swell cluster accept sas-1 --uid 1f6a8e04-9d43-4c1b-8b0e-6a4f5d2c7e11 --reason \"rebuilt after the fire\""})
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
