// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/serve"
)

func retryCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var output string
	var yes bool
	r := serve.Request{Verb: order.Retry}
	cmd := &cobra.Command{
		Use:   "retry " + whatAbout + " --config FILE",
		Short: "Try failed or waiting releases again, without a new commit",
		Long: `Without saying what about, list what can be tried again: rollouts that are held or were
rolled back, bundles in quarantine, and unreachable or unavailable targets.

Else tell the daemon to try again. The quarantine of the units is cleared, a failed
rollout starts again at its first wave, and a waiting attempt is due at once. A target
or a cluster selects the units that are there. The daemon also fetches from Git and asks
the clusters again.` + (&orderVerb{lists: true}).help(),
		Example: `  swell retry
  swell retry services/shop/cart --reason "the registry is back"
  swell retry sas-1/rz00a
  swell retry --all`,
		Args: arguments(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.About = args; len(args) == 0 && !r.All && r.Tenant == "" && r.Wave == "" {
				return asking(cmd, file, func(t teller) error {
					all, err := t.Retriable(cmd.Context())
					if err != nil {
						return err
					}
					return retryListing(all).write(cmd.OutOrStdout(), output)
				})
			}
			return runOrder(cmd, file, r, yes)
		},
	}
	daemonFlags(cmd, &file)
	outputFlag(cmd, &output, listingFormats...)
	scopeFlags(cmd, &r)
	yesFlag(cmd, &yes)
	return cmd
}

// oneLineReason refuses what would not stand in one line of the history.
func oneLineReason(reason string) error {
	if strings.ContainsFunc(reason, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("--reason: want one line without control characters")
	}
	return nil
}

func retryListing(all []rollout.Retriable) *listing {
	l := &listing{kind: "RetriableList", columns: heads("UNIT", "TARGET", "STATE", "REASON"), nothing: "nothing failed or waits"}
	for _, item := range all {
		l.add(item, string(item.Unit), string(item.Unit), orDash(string(item.Target)), item.State, orDash(item.Reason))
	}
	return l
}
