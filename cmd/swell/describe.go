// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/status"
)

func describeCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:   "describe UNIT --config FILE",
		Short: "Show the rollout of a unit wave by wave, what each wave waits for, and what to do about it",
		Long: `Show the rollout of a unit: each wave with its targets, its gates and what they last
answered, its soak, what holds it, and what it waits for. An arrow marks a command that an
operator can type to go on. Then come targets that miss the release, bundles in
quarantine and orders in force.

Targets of a wave in the same state are shown together; --all shows every one.

Exit codes: 0 shown, 2 there is no such unit, or the state could not be read.`,
		Example: `  swell describe services/shop/cart
  swell describe services/shop/cart --all
  swell describe services/shop/cart -o json`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return asking(cmd, file, func(t teller) error {
				d, err := t.Describe(cmd.Context(), unitArgument(args))
				if err != nil {
					return err
				}
				if output != formatText {
					return writeData(cmd.OutOrStdout(), output, struct {
						APIVersion string `json:"apiVersion"`
						Kind       string `json:"kind"`
						status.Description
					}{config.APIVersion, "RolloutDescription", d})
				}
				return (&describer{d: &d, all: all, width: widthOf(cmd.OutOrStdout())}).write(cmd.OutOrStdout())
			})
		},
	}
	daemonFlags(cmd, &file)
	outputFlag(cmd, &output, formatText, formatJSON, formatYAML)
	cmd.Flags().BoolVar(&all, "all", false, "show every target")
	return cmd
}

// describer writes a description for people.
type describer struct {
	d     *status.Description
	all   bool
	width int
	text  strings.Builder
}

func (w *describer) write(out io.Writer) error {
	w.head()
	for i := range w.d.WaveList {
		w.wave(i)
	}
	w.rest()
	_, err := io.WriteString(out, w.text.String())
	return err
}

// line adds a line, folded, with a deeper indent where it goes on.
func (w *describer) line(indent int, format string, args ...any) {
	text := visible(fmt.Sprintf(format, args...))
	for i, part := range fold(text, w.width-indent-2) {
		if i == 1 {
			indent += 2
		}
		w.text.WriteString(strings.Repeat(" ", indent) + part + "\n")
	}
}

func (w *describer) commands(indent int, all []status.Command) {
	for _, c := range all {
		w.line(indent, "-> %s: %s", c.Command, c.Does)
	}
}

func (w *describer) head() {
	d := w.d
	w.line(0, "%s: %s%s", d.Unit, d.Status, sinceText(d.Since, d.Now))
	by := ""
	if len(d.Authors) > 0 {
		by = " by " + strings.Join(d.Authors, ", ")
	}
	w.line(2, "rollout %d of commit %s%s, waves of %s, %d of %s done", d.Rollout.ID, orDash(d.Commit.Short()), by, orDash(d.Rollout.Name), d.Done, document.Count(d.Targets, "target"))
	if d.Blocked != "" {
		w.line(2, "not released: %s", d.Blocked)
	}
	if d.Deletions != "" {
		w.line(2, "deletions: %s", d.Deletions)
	}
	w.commands(2, d.Commands)
}

func (w *describer) wave(i int) {
	wave := &w.d.WaveList[i]
	w.line(0, "wave %d/%d %s: %s, %s", i+1, len(w.d.WaveList), wave.Name, wave.Phase, document.Count(len(wave.Targets), "target"))
	w.targets(wave.Targets)
	if s := wave.Soak; s != nil {
		w.line(2, "soak %s", w.soak(s))
	}
	for j := range wave.Gates {
		w.line(2, "gate %s", w.gate(&wave.Gates[j]))
	}
	for j := range wave.Holds {
		h := &wave.Holds[j]
		until := ""
		if !h.Until.IsZero() && h.Kind != rollout.HeldByWindow { // whose text has it
			until = ", until " + shortTime(h.Until, w.d.Now)
		}
		w.line(2, "%s: %s%s (%s)", h.Kind, h.Text, until, someTargets(h.Targets, w.all))
	}
	if wave.Waits != "" {
		w.line(2, "waits: %s", wave.Waits)
	}
	w.commands(2, wave.Commands)
}

func (w *describer) soak(s *status.Soak) string {
	whole, _ := time.ParseDuration(s.For) // we wrote it
	if s.Ends.IsZero() {
		return roundly(whole)
	}
	return fmt.Sprintf("%s of %s, ends %s", roundly(whole-s.Ends.Sub(w.d.Now)), roundly(whole), shortTime(s.Ends, w.d.Now))
}

func (w *describer) gate(g *rollout.GateLook) string {
	text := fmt.Sprintf("%s at the %s: %s", g.Gate, g.At, g.State)
	if g.Text != "" {
		text += ": " + g.Text
	}
	if !g.AskedAt.IsZero() {
		text += ", asked " + shortTime(g.AskedAt, w.d.Now)
	} else if !g.Since.IsZero() && g.State == rollout.GateWaits {
		text += " since " + shortTime(g.Since, w.d.Now)
	}
	if g.Digest != "" && g.State != rollout.GatePassed && g.State != rollout.GateWaived {
		text += "; " + mayApprove(g.By, g.Not)
	}
	return text
}

// mayApprove says who may approve a gate.
func mayApprove(by, not []string) string {
	who := "any operator may approve"
	if len(by) > 0 {
		who = strings.Join(by, ", ") + " may approve"
	}
	if len(not) > 0 {
		who += ", not " + strings.Join(not, ", ") + " who wrote it"
	}
	return who
}

// targetGroup is targets in the same state.
type targetGroup struct {
	first *status.Target
	names []config.TargetName
	fails time.Time // the first of them, if nothing changes; zero: none does
}

// groups are targets by their state, in the order of the first of each.
func groups(targets []status.Target, each bool) (all []targetGroup) {
	type state struct {
		is     status.Standing
		commit config.Commit
		why    string
	}
	at := map[state]int{}
	for i := range targets {
		t := &targets[i]
		key := state{t.Status, t.Commit, t.Reason}
		n, known := at[key]
		if !known || each {
			n = len(all)
			at[key] = n
			all = append(all, targetGroup{first: t})
		}
		all[n].names = append(all[n].names, t.Target)
		if fails := &all[n].fails; !t.FailsAt.IsZero() && (fails.IsZero() || t.FailsAt.Before(*fails)) {
			*fails = t.FailsAt
		}
	}
	return all
}

func (w *describer) targets(targets []status.Target) {
	for _, g := range groups(targets, w.all) {
		t := g.first
		text := fmt.Sprintf("%s: %s", someTargets(g.names, w.all), t.Status)
		if t.Commit != "" {
			text += ", commit " + t.Commit.Short()
		}
		if t.Applied != "" && len(g.names) == 1 {
			text += ", bundle " + t.Applied.Short()
		}
		if t.Health == rollout.HealthGood && !t.Since.IsZero() && len(g.names) == 1 {
			text += ", healthy since " + shortTime(t.Since, w.d.Now)
		}
		if t.Reason != "" {
			text += ": " + t.Reason
		}
		if !g.fails.IsZero() {
			text += "; it fails at " + shortTime(g.fails, w.d.Now) + " unless that changes"
		}
		w.line(2, "%s", text)
	}
}

// namedTargets is how many names of targets stand for all of them.
const namedTargets = 3

func someTargets(names []config.TargetName, all bool) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	if len(names) <= namedTargets {
		return strings.Join(texts, ", ")
	}
	if all {
		return fmt.Sprintf("%d targets: %s", len(names), strings.Join(texts, ", "))
	}
	return fmt.Sprintf("%d targets, %s", len(names), document.Some(texts, namedTargets))
}

func (w *describer) rest() {
	d := w.d
	if len(d.Unpicked) > 0 {
		w.line(0, "in no wave:")
		w.targets(d.Unpicked)
	}
	if len(d.Debts) > 0 {
		w.line(0, "owed:")
	}
	for _, debt := range d.Debts {
		since := ""
		if !debt.Since.IsZero() {
			since = " since " + shortTime(debt.Since, d.Now)
		}
		w.line(2, "%s misses commit %s and has %s%s: %s", debt.Target, orDash(debt.Misses.Short()), orDash(debt.Has.Short()), since, debt.Why)
	}
	if len(d.Quarantine) > 0 {
		w.line(0, "in quarantine:")
	}
	for _, q := range d.Quarantine {
		w.line(2, "bundle %s of commit %s since %s: %s", q.Bundle.Short(), q.Commit.Short(), shortTime(q.At, d.Now), q.Why)
	}
	if len(d.Past) > 0 {
		w.line(0, "can be put back to rollout %s", rollout.PastText(d.Past))
	}
	if len(d.Orders) > 0 {
		w.line(0, "orders in force:")
	}
	for i := range d.Orders {
		o := &d.Orders[i]
		w.line(2, "%s of %s %s", o.Verb, o.Scope.Text(), serve.SinceText(o))
		w.line(4, "-> %s", o.EndCommand())
	}
	if text := status.DriftText(d.Drift, ""); text != "" {
		w.line(0, "drift: %s", text)
	}
}
