// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/store"
)

func eventsCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var output string
	var follow bool
	f := &follower{since: -1}
	cmd := &cobra.Command{
		Use:   "events [UNIT] [-f] --config FILE",
		Short: "Show events as they happen",
		Long: `Show the events of a unit, of the units below a folder, or of all units, the newest last.
With -f, go on with those that happen, until interrupted: one line for each, with -o json
one JSON object a line. It connects again when the daemon starts again, and no event is
shown twice or left out; events that the history has dropped meanwhile are told of.

Exit codes: 0 shown; 2 the state could not be read; 130 interrupted.`,
		Example: `  swell events -f
  swell events services/shop -f -o json
  swell events --since 4711`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.unit = config.UnitPath(unitArgument(args))
			if follow {
				if output != formatTable && output != formatJSON {
					return fmt.Errorf("-f and -o %s: want -o json, or none", output)
				}
				f.json, f.out, f.log = output == formatJSON, cmd.OutOrStdout(), cmd.ErrOrStderr()
				return f.follow(cmd.Context(), file)
			}
			return asking(cmd, file, func(t teller) error {
				events, err := t.History(cmd.Context(), serve.Query{Below: f.unit, Since: f.since, Limit: f.limit})
				if err != nil {
					return err
				}
				return eventListing(events).write(cmd.OutOrStdout(), output)
			})
		},
	}
	daemonFlags(cmd, &file)
	outputFlag(cmd, &output, formatTable, formatWide, formatJSON, formatYAML)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with the events that happen")
	cmd.Flags().Var((*eventNumber)(&f.since), "since", "only events after the one with this number, the oldest first")
	limitFlag(cmd, &f.limit, 10, "number of events to show, or to begin with")
	return cmd
}

// follower prints events as they come, each one once.
type follower struct {
	unit  config.UnitPath
	since int64 // number of the last event that is known; negative: none is
	limit int
	json  bool
	out   io.Writer
	log   io.Writer
	said  string // about the daemon that does not answer
	met   bool   // it has answered once: a socket that was just made may be closed to others for a moment
}

// followPause is how long after a lost connection the daemon is looked for again.
const followPause = time.Second

func (f *follower) follow(ctx context.Context, file configPath) error {
	settings, err := readDaemonConfig(file)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := f.connected(ctx, settings.API.Socket); isProblem(err) || !f.met && errors.Is(err, fs.ErrPermission) {
			return err
		} else if why := waitsFor(err); why != "" && ctx.Err() == nil && f.said != why {
			f.said = why
			fmt.Fprintln(f.log, "swell: "+why)
		}
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
	return ctx.Err()
}

// waitsFor says why a client that follows has to wait; empty where it only comes again, as after
// the time of a connection.
func waitsFor(err error) string {
	var theirs *serve.Error
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return ""
	case errors.As(err, &theirs):
		return theirs.Detail + "; trying again"
	}
	return "the daemon does not answer; waiting for it"
}

// isProblem says whether trying again is of no use.
func isProblem(err error) bool {
	var theirs *serve.Error
	var write writeError
	return errors.As(err, &theirs) && theirs.Status < 500 || errors.As(err, &write)
}

// writeError is of our own output.
type writeError struct{ error }

// connected prints events for as long as the connection lasts.
func (f *follower) connected(ctx context.Context, socket string) error {
	c, err := serve.Dial(ctx, socket)
	if err != nil {
		return err
	}
	defer c.Close()
	f.met = true
	if f.since < 0 {
		if err := f.begin(ctx, c); err != nil {
			return err
		}
	}
	f.said = ""
	_, err = c.Watch(ctx, f.unit, f.since, f.take, func(r serve.Resync) error { return f.fill(ctx, c, r) })
	return err
}

// begin prints the newest events.
func (f *follower) begin(ctx context.Context, c *serve.Client) error {
	events, err := c.History(ctx, serve.Query{Since: -1, Limit: 1}) // of all units: where to go on
	if err != nil {
		return err
	}
	since := int64(0)
	if len(events) > 0 {
		since = events[0].Seq
	}
	if events, err = c.History(ctx, serve.Query{Below: f.unit, Since: -1, Limit: f.limit}); err != nil {
		return err
	}
	f.since = 0
	for _, e := range events {
		if err := f.take(e); err != nil {
			return err
		}
	}
	f.since = max(f.since, since)
	return nil
}

// take prints an event that was not printed yet.
func (f *follower) take(e store.Recorded) error {
	if e.Seq <= f.since {
		return nil
	}
	f.since = e.Seq
	if f.json {
		return f.printed(json.NewEncoder(f.out).Encode(e))
	}
	what := e.Kind
	if e.Text != "" {
		what += ": " + visible(e.Text)
	}
	_, err := fmt.Fprintf(f.out, "%s %s %s %s %s\n", fullTime(e.Time), orDash(string(e.Unit)), orDash(string(e.Target)), orDash(e.Wave), what)
	return f.printed(err)
}

func (f *follower) printed(err error) error {
	if err != nil {
		return writeError{err}
	}
	return nil
}

// fill prints what the connection left out, as far as the history still has it.
func (f *follower) fill(ctx context.Context, c *serve.Client, gap serve.Resync) error {
	if gap.Before < gap.After {
		fmt.Fprintf(f.log, "swell: the history has begun anew after event %d\n", gap.After)
		f.since = gap.Before
		return nil
	}
	for f.since < gap.Before {
		events, err := c.History(ctx, serve.Query{Below: f.unit, Since: f.since, Limit: fillAtOnce})
		if err != nil {
			return err
		}
		if len(events) == 0 || events[0].Seq > gap.Before {
			break
		}
		if first := events[0].Seq; f.unit == "" && first > f.since+1 {
			fmt.Fprintf(f.log, "swell: events %d to %d are not in the history any more\n", f.since+1, first-1)
		}
		for _, e := range events {
			if err := f.take(e); err != nil {
				return err
			}
		}
	}
	if f.unit == "" && f.since < gap.Before {
		fmt.Fprintf(f.log, "swell: events %d to %d are not in the history any more\n", f.since+1, gap.Before)
	}
	f.since = max(f.since, gap.Before)
	return nil
}

const fillAtOnce = 1000
