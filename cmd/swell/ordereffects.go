// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/store"
)

const (
	// fewUnits is how many units an order may be about without a question.
	fewUnits = 10
	// shownEffects is how many units an outcome names.
	shownEffects = 10
	// outcomePatience is how long a daemon may take to carry an order out while the command
	// waits for that. It takes a second, but for passes that store much.
	outcomePatience = 5 * time.Second
	outcomePause    = 100 * time.Millisecond
	// outcomeEvents is how many events are read for the outcome of an order.
	outcomeEvents = 1000
)

// yesFlag adds the one of commands that ask before they do something.
func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do not ask; required where there is no terminal to ask on")
}

// listEffects lists what an order would do, where that is much, and asks. The digest is that of
// the list; it is empty where nothing was asked.
func listEffects(cmd *cobra.Command, file configPath, r serve.Request) (object.Digest, error) {
	r.DryRun = true
	given, _, err := giveOrder(cmd, file, r)
	if err != nil || !r.All && len(given.Effects) <= fewUnits || len(given.Effects) == 0 {
		return "", err
	}
	if err := effectListing(given.Effects).write(cmd.OutOrStdout(), formatTable); err != nil {
		return "", err
	}
	units := document.Count(len(given.Effects), "unit")
	question := fmt.Sprintf("%s of %s, %s, list %s?", given.Order.Verb, given.Order.Scope.Text(), units, given.Digest.Short())
	return given.Digest, confirm(cmd, false, question)
}

func effectListing(effects []rollout.Effect) *listing {
	l := &listing{kind: "EffectList", columns: heads("UNIT", "EFFECT")}
	for _, e := range effects {
		l.add(e, string(e.Unit), string(e.Unit), e.Text)
	}
	return l
}

// lastEvent is the number of the newest event; -1 where no daemon answers.
func lastEvent(ctx context.Context, file configPath) int64 {
	client, err := dialDaemon(ctx, file)
	if err != nil {
		return -1
	}
	defer client.Close()
	events, err := client.History(ctx, serve.Query{Since: -1, Limit: 1})
	if err != nil {
		return -1
	}
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].Seq
}

func dialDaemon(ctx context.Context, file configPath) (*serve.Client, error) {
	settings, err := readDaemonConfig(file)
	if err != nil {
		return nil, err
	}
	return serve.Dial(ctx, settings.API.Socket)
}

// reportOutcome waits for a moment until the daemon has carried an order out, and says what it
// did. Where it has not by then, the history will tell.
func reportOutcome(cmd *cobra.Command, file configPath, o *order.Order, last int64) {
	if last < 0 {
		return
	}
	client, err := dialDaemon(cmd.Context(), file)
	if err != nil {
		return
	}
	defer client.Close()
	for began := time.Now(); time.Since(began) < outcomePatience; {
		events, err := client.History(cmd.Context(), serve.Query{Since: last, Limit: outcomeEvents})
		if err != nil {
			return
		}
		if lines := outcome(events, o); len(lines) > 0 {
			for _, line := range lines[:min(len(lines), shownEffects)] {
				fmt.Fprintln(cmd.ErrOrStderr(), "swell: "+visible(line))
			}
			if more := len(lines) - shownEffects; more > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "swell: and %s: swell history\n", document.Count(more, "more unit"))
			}
			return
		}
		select {
		case <-cmd.Context().Done():
			return
		case <-time.After(outcomePause):
		}
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "swell: the daemon has not carried it out yet: swell history says when it has")
}

// outcome is what an order did, by the history since it was given: a line for each unit.
func outcome(events []store.Recorded, o *order.Order) (lines []string) {
	for _, e := range events {
		if e.Kind != string(o.Verb) || !strings.Contains(e.Text, o.Text()) {
			continue
		}
		about := o.Scope.Text()
		if e.Unit != "" {
			about = string(e.Unit)
		}
		lines = append(lines, about+": "+strings.Trim(strings.Replace(e.Text, o.Text(), "", 1), "; "))
	}
	return lines
}
