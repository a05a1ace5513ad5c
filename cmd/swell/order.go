// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/serve"
)

// orderVerb is a command that gives an order.
type orderVerb struct {
	verb    order.Verb
	command string // empty: the verb
	about   string // what it takes; empty: whatAbout
	short   string
	long    string
	example string
	// lists says that what it would do is listed first, where that is much.
	lists bool
}

// whatAbout is what an order may be about.
const whatAbout = "[UNIT | FOLDER] [TARGET | CLUSTER] [--tenant NAME] [--wave NAME] | --all"

// whatUnits is what an order may be about that is about units as a whole.
const whatUnits = "[UNIT | FOLDER] [--tenant NAME] | --all"

const orderHelp = `

What it is about is a unit or a folder of units, a target or a cluster, or one of each,
and --tenant and --wave narrow it down; --all is everything. The order is stored before
it has any effect. A running daemon takes it up within a second; otherwise the next
daemon does when it starts. swell orders lists what is in force and what waits, and
swell history shows who gave the order, when and why.
`

// listHelp is about verbs that cannot be undone by another one.
const listHelp = `
With --all, or where it is about more than 10 units, it lists first what it would do, and
asks. The order does what was listed, or is refused. Scripts pass --yes.
`

const orderCodes = `
Exit codes: 0 ordered, or in force already; 1 there is nothing to do or to end, or it is
refused; 2 there is no such unit, target, tenant or wave, or the order could not be
given.`

func pauseCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Pause, short: "Hold releases where they are",
		long: `Hold releases, and their rollbacks: they write nothing more until swell resume. What was
written goes on to be looked at, and drift is corrected.`,
		example: "  swell pause services/shop\n  swell pause --all --for 2h --reason \"incident 42\""})
}

func resumeCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Resume, short: "End pauses",
		long:    `End the pauses of what is named and of what lies within it; with --all, every pause.`,
		example: "  swell resume services/shop\n  swell resume --all"})
}

func promoteCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Promote, lists: true, about: "[UNIT | FOLDER] [--tenant NAME] [--wave NAME] | --all",
		short: "Go on to the next wave now",
		long: `End the soak and the gates of the wave under way, and the gates at the start of the next
one. What is not applied and healthy is waited for all the same. Who may not approve a
gate may not promote past it, and a gate that measures is passed over with --reason only.
What somebody changed in a wave that was passed is let be. It is about units as a whole:
no target is named, and --wave is that of the wave under way.`,
		example: "  swell promote services/shop/cart --reason \"the fix has to get out\""})
}

func rollbackCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Rollback, lists: true, about: whatUnits, short: "Put back what ran before",
		long: `Put back the bundles that ran before the last rollout, and quarantine those that run, so
that the next look at Git does not bring them again. With --to, put back what was there when the
rollout of a commit was done, or the one with a number; swell describe UNIT lists them. Each
target remembers its last five. It is about units as a whole: no target and no wave is named.
--reason is required.`,
		example: "  swell rollback services/shop/cart --reason \"checkout fails since 14:00\"\n" +
			"  swell rollback services/shop/cart --to 4f9a1c22 --reason \"the last two are bad\"\n" +
			"  swell rollback services/shop/cart --to 12 --reason \"the last two are bad\""})
}

func maskCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Mask, short: "Write nothing at all, of any sort",
		long: `Write nothing of any sort: no release, no rollback, no correction of drift, no deletion,
no hook. What is under way is stopped. In a cluster that is masked as a whole the
daemon's Lease is not renewed either. swell unmask ends it. --reason is required.`,
		example: "  swell mask sas-1 --reason \"the cluster is being upgraded\" --for 3h\n  swell mask services/shop sas-1/rz00a --reason \"by hand for now\""})
}

func unmaskCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Unmask, lists: true, short: "End masks",
		long:    `End the masks of what is named and of what lies within it; with --all, every mask.`,
		example: "  swell unmask sas-1"})
}

func freezeCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Freeze, short: "Start no release",
		long: `Start no release on a target, as outside of a window. What has started goes on, also
back, and drift is corrected. swell thaw ends it. --reason is required.`,
		example: "  swell freeze --all --until \"2026-12-27 06:00\" --reason \"holidays\""})
}

func thawCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Thaw, short: "End freezes",
		long:    `End the freezes of what is named and of what lies within it; with --all, every freeze.`,
		example: "  swell thaw --all"})
}

func exemptCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Exempt, about: "UNIT | FOLDER [TARGET | CLUSTER] [--wave NAME]",
		short: "Let releases start in spite of freezes and Windows",
		long: `Let releases start in spite of freezes and Windows, of a unit or a folder. Gates and
pauses hold them as before. It ends by itself: --for or --until is required, and so is
--reason. swell unexempt ends it before.`,
		example: "  swell exempt services/shop/cart --for 2h --reason \"the fix of incident 42\""})
}

func unexemptCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Unexempt, short: "End exceptions from freezes and Windows",
		long:    `End the exceptions of what is named and of what lies within it; with --all, every one.`,
		example: "  swell unexempt services/shop/cart"})
}

func reconcileCommand(in *invocation) *cobra.Command {
	return orderCommand(in, orderVerb{verb: order.Reconcile, short: "Look at Git, at the clusters and for drift now",
		long:    `Look at Git, at kubeconfigs and clusters, and for drift now, and not when it is time.`,
		example: "  swell reconcile sas-1\n  swell reconcile --all"})
}

func orderCommand(in *invocation, v orderVerb) *cobra.Command {
	if v.command == "" {
		v.command = string(v.verb)
	}
	if v.about == "" {
		v.about = whatAbout
	}
	file := configPath{in: in}
	var yes bool
	r := serve.Request{Verb: v.verb}
	cmd := &cobra.Command{
		Use:     v.command + " " + v.about + " --config FILE",
		Short:   v.short,
		Long:    v.long + v.help(),
		Example: v.example,
		Args:    arguments(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("for") && cmd.Flags().Changed("until") {
				return errors.New("--for and --until: want one of them")
			}
			r.About = args
			return runOrder(cmd, file, r, yes || !v.lists)
		},
	}
	daemonFlags(cmd, &file)
	scopeFlags(cmd, &r)
	if v.lists {
		yesFlag(cmd, &yes)
	}
	if v.verb == order.Accept {
		cmd.Flags().StringVar(&r.To, "uid", "", "the UID that its namespace kube-system has by now, as swell status shows it")
	}
	if v.verb == order.Rollback {
		cmd.Flags().StringVar(&r.To, "to", "", "the commit, or the beginning of its hash, or the number of the rollout that is put back")
	}
	if v.verb.Stands() {
		endless := "; without an end, until it is ended"
		if v.verb == order.Exempt {
			endless = ""
		}
		cmd.Flags().Var(&amountFlag{&r.For}, "for", "how long it is in force, like 90m or 7d"+endless)
		cmd.Flags().Var(&endFlag{&r.Until}, "until", "when it ends by itself: RFC 3339, or local time like \"2026-12-27 06:00\"")
	}
	return cmd
}

// help returns the text that all verbs have in common.
func (v *orderVerb) help() string {
	if v.lists {
		return orderHelp + listHelp + orderCodes
	}
	return orderHelp + orderCodes
}

// runOrder gives an order, and says its outcome. Unless yes is set, one that does much
// is listed first.
func runOrder(cmd *cobra.Command, file configPath, r serve.Request, yes bool) (err error) {
	if !yes {
		if r.Expect, err = listEffects(cmd, file, r); err != nil {
			return err
		}
	}
	r.IdempotencyKey = rand.Text()
	once, last := !r.Verb.Stands() && r.Verb.Ends() == "", int64(-1)
	if once { // so that there is an outcome to wait for
		last = lastEvent(cmd.Context(), file)
	}
	given, running, err := giveOrder(cmd, file, r)
	if err != nil {
		return err
	}
	told(cmd.ErrOrStderr(), &given, running)
	if running && once {
		reportOutcome(cmd, file, &given.Order, last)
	}
	return nil
}

func told(w io.Writer, given *serve.Given, running bool) {
	o := &given.Order
	if is := given.Already; is != nil {
		fmt.Fprintf(w, "swell: %s is already %s %s\n", is.Scope.Text(), isCalled[is.Verb], visible(serve.SinceText(is)))
		return
	}
	when := "the daemon takes it up within a second"
	if !running {
		when = "the daemon does not run: it takes it up when it starts"
	}
	until := ""
	if !o.Until.IsZero() { // the operator may have said it in another zone
		until = " until " + fullTime(o.Until)
	}
	fmt.Fprintf(w, "swell: %s of %s%s ordered: %s\n", o.Verb, o.Scope.Text(), until, when)
	for i := range given.Besides {
		is := &given.Besides[i]
		fmt.Fprintf(w, "swell: besides, %s is %s %s\n", is.Scope.Text(), isCalled[is.Verb], visible(serve.SinceText(is)))
	}
	for i := range given.HeldBy {
		is := &given.HeldBy[i]
		fmt.Fprintf(w, "swell: %s is %s %s: %s there before %s\n", is.Scope.Text(), isCalled[is.Verb], visible(serve.SinceText(is)), heldBack[is.Verb], is.EndCommand())
	}
	for i := range given.Ends {
		is := &given.Ends[i]
		fmt.Fprintf(w, "swell: it ends %s of %s %s\n", is.Verb, is.Scope.Text(), visible(serve.SinceText(is)))
	}
	for _, note := range given.Notes {
		fmt.Fprintf(w, "swell: %s\n", visible(note))
	}
}

// isCalled is what something is called that an order is in force for.
var isCalled = map[order.Verb]string{
	order.Pause: "paused", order.Freeze: "frozen", order.Mask: "masked", order.Retire: "retired", order.Exempt: "exempt",
}

// heldBack is what does not happen while an order is in force.
var heldBack = map[order.Verb]string{order.Pause: "nothing is released or put back", order.Freeze: "no release starts", order.Mask: "nothing is written"}

// amountFlag is the value of --for.
type amountFlag struct{ text *string }

func (f *amountFlag) String() string { return "" }
func (f *amountFlag) Type() string   { return "time" }

func (f *amountFlag) Set(text string) error {
	_, err := order.ParseAmount(text)
	*f.text = text
	return err
}

// endFlag is the value of --until.
type endFlag struct{ end *time.Time }

func (f *endFlag) String() string { return "" }
func (f *endFlag) Type() string   { return "time" }

func (f *endFlag) Set(text string) (err error) {
	*f.end, err = parseTime(text)
	if err == nil && f.end.IsZero() { // which would be no end
		err = errors.New("that is over")
	}
	return err
}

func parseTime(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), nil
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, errors.New("want a time like 2026-12-27T06:00:00Z, or \"2026-12-27 06:00\" in local time")
}
