// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/store"
)

func approveCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var output, reason, plan string
	var yes, reject bool
	cmd := &cobra.Command{
		Use:   "approve [PLAN | --plan PLAN [REV]] --config FILE",
		Short: "Approve deletions that the daemon holds back, and gates",
		Long: `Deletions wait for approval when they are more than the guard of the daemon's
configuration allows, when they delete other objects or data too (namespaces,
volumes, StatefulSets, definitions, classes, API services, webhooks, admission
policies), or when the objects were found after the state was lost.

Without an argument, list the plans that wait. With the digest of a plan, or a unique
prefix of it, print every deletion of the plan, ask, and approve the plan: these
objects, by their UIDs, and no others. The daemon may be running or not. It checks
each object again before it deletes it. Gates of waves that wait for approval are listed
and approved in the same way.

With --plan and the digest that swell plan printed, approve all that the plan of a commit
names, gates and deletions, before the waves come to them. It is refused when the plan has
become another one since. REV is as for swell plan.

With --reject, record that the plan is rejected, and why. Its deletions wait as
before, and every verb that shows the plan says who rejected it. To end the plan,
revert the change in Git. A later approval overrides a rejection. A plan that changes
is a new plan, without approval or rejection.

To keep an object instead, bring it back in the monorepo, or annotate the live one
with swell.sh/prune: disabled or client.lifecycle.config.k8s.io/deletion: detach,
which orphans it.

Exit codes: 0 approved, rejected or listed; 1 the answer was no; 2 there is no such
plan, there is no terminal to ask on, or the state could not be read or written.`,
		Example: `  swell approve
  swell approve 3fa9c1d2
  swell approve 3fa9c1d2 --yes
  swell approve --plan 8c1d2e3f
  swell approve 3fa9c1d2 --reject --reason "the database is still read"`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case reject && plan != "":
				return errors.New("--plan and --reject: want one of them")
			case reject && yes:
				return errors.New("--reject and --yes: want one of them")
			case (reject || yes) && plan == "" && len(args) == 0:
				flag := map[bool]string{true: "--reject", false: "--yes"}[reject]
				return hinted{fmt.Errorf("%s: want a plan", flag), "swell approve lists them"}
			case reason != "" && !reject:
				return errors.New("--reason: want --reject with it")
			}
			if err := oneLineReason(reason); err != nil {
				return err
			}
			if plan != "" {
				return approveWholePlan(cmd, file, plan, args, yes)
			}
			return asking(cmd, file, func(t teller) error {
				is, err := t.Approvals(cmd.Context())
				if err != nil {
					return err
				}
				if len(args) == 0 {
					return planListing(is).write(cmd.OutOrStdout(), output)
				}
				picked, err := pickPlan(is, args[0])
				if err != nil {
					return err
				}
				if reject {
					return rejectPlan(cmd, file, picked, reason)
				}
				return approvePlan(cmd, file, output, picked, yes)
			})
		},
	}
	configFlag(cmd, &file)
	outputFlag(cmd, &output, listingFormats...)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask; required where there is no terminal to ask on")
	cmd.Flags().StringVar(&plan, "plan", "", "approve all that the plan with this digest names, see swell plan")
	cmd.Flags().BoolVar(&reject, "reject", false, "record that the plan is rejected")
	cmd.Flags().StringVar(&reason, "reason", "", "with --reject: why")
	return cmd
}

func approvePlan(cmd *cobra.Command, file configPath, output string, plan planStatus, yes bool) error {
	if gate := plan.Gate; gate != nil {
		fmt.Fprintf(cmd.OutOrStdout(), "wave %s of %s, commit %s by %s\n", gate.Wave, gate.Unit, gate.Commit.Short(), orDash(strings.Join(gate.Authors, ", ")))
		if err := confirm(cmd, yes, "Let it go on?"); err != nil {
			return err
		}
		if err := judge(cmd, file, serve.Judge{Digest: plan.Plan}); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "swell: approval of gate %s ordered\n", plan.Plan.Short())
		return nil
	}
	if err := deletionListing(plan).write(cmd.OutOrStdout(), output); err != nil {
		return err
	}
	if plan.Rejected != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "swell: plan %s: %s\n", plan.Plan.Short(), plan.Rejected.Text())
	}
	if err := confirm(cmd, yes, fmt.Sprintf("Delete these %s?", document.Count(len(plan.Deletions), "object"))); err != nil {
		return err
	}
	if err := judge(cmd, file, serve.Judge{Digest: plan.Plan}); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "swell: approved: plan %s, %s\n", plan.Plan.Short(), document.Count(len(plan.Deletions), "deletion"))
	return nil
}

func rejectPlan(cmd *cobra.Command, file configPath, plan planStatus, reason string) error {
	if err := judge(cmd, file, serve.Judge{Digest: plan.Plan, Reject: true, Reason: reason}); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "swell: rejected: plan %s, %s: they wait until the change is reverted in Git or the plan is approved\n",
		plan.Plan.Short(), document.Count(len(plan.Deletions), "deletion"))
	return nil
}

// fewestDigits is how short an abbreviation may be, as in git.
const fewestDigits = 4

// pickPlan finds the one plan or gate whose digest begins with the digits.
func pickPlan(is serve.Approvals, digits string) (planStatus, error) {
	plans := plansOf(is)
	var present, fit []string
	var found planStatus
	for _, p := range plans {
		present = append(present, p.Plan.Short())
		if len(digits) >= fewestDigits && strings.HasPrefix(string(p.Plan), strings.ToLower(digits)) {
			fit = append(fit, string(p.Plan))
			found = p
		}
	}
	switch {
	case len(fit) == 1:
		return found, nil
	case len(fit) > 1:
		return planStatus{}, fmt.Errorf("plan %q: there are several: %s", digits, strings.Join(fit, ", "))
	case len(plans) == 0:
		return planStatus{}, fmt.Errorf("plan %q: no such plan: nothing waits for approval", digits)
	case len(digits) < fewestDigits:
		return planStatus{}, fmt.Errorf("plan %q: want a unique prefix of at least %d digits of one of %s", digits, fewestDigits, strings.Join(present, ", "))
	}
	return planStatus{}, hinted{fmt.Errorf("plan %q: no such plan, want one of %s", digits, strings.Join(present, ", ")),
		"a plan that changed has another digest; swell approve lists them"}
}

func wholeFleet(unit config.UnitPath) string {
	if unit == "" {
		return "the whole fleet"
	}
	return string(unit)
}

// planStatus is a plan of deletions, or a gate, as programs are told of it.
type planStatus struct {
	Plan      object.Digest    `json:"plan"`
	Unit      config.UnitPath  `json:"unit,omitempty"` // empty: the whole fleet
	Since     time.Time        `json:"since"`
	Deletions []store.Deletion `json:"deletions"`
	Rejected  *store.Rejection `json:"rejected,omitempty"`
	Gate      *order.Ask       `json:"gate,omitempty"` // nil for a plan
}

func plansOf(is serve.Approvals) []planStatus {
	var plans []planStatus
	for _, p := range is.Plans {
		plans = append(plans, planStatus{Plan: p.Digest, Unit: p.Unit, Since: p.At.UTC(), Deletions: p.Deletions, Rejected: p.Rejected})
	}
	for _, ask := range is.Asks {
		plans = append(plans, planStatus{Plan: ask.Digest, Unit: ask.Unit, Since: ask.Since.UTC(), Deletions: []store.Deletion{}, Gate: &ask})
	}
	return plans
}

func planListing(is serve.Approvals) *listing {
	l := &listing{kind: "DeletionPlanList", columns: heads("PLAN", "DELETIONS", "OF", "SINCE", "WHY"), nothing: "nothing waits for approval"}
	for _, p := range plansOf(is) {
		l.add(p, p.Plan.Short(), p.Plan.Short(), strconv.Itoa(len(p.Deletions)), wholeFleet(p.Unit), fullTime(p.Since), planWhy(p))
	}
	return l
}

// planWhy is the first reason in a plan, how many others there are, and who
// rejected it.
func planWhy(p planStatus) string {
	if p.Gate != nil {
		return "the start of wave " + p.Gate.Wave
	}
	reasons := map[string]bool{}
	for _, d := range p.Deletions {
		reasons[d.Why] = true
	}
	text := p.Deletions[0].Why
	if more := len(reasons) - 1; more > 0 {
		text += fmt.Sprintf(" (and %s)", document.Count(more, "other reason"))
	}
	if p.Rejected != nil {
		text += "; " + p.Rejected.Text()
	}
	return text
}

// deletionListing has a row for every deletion of a plan.
func deletionListing(p planStatus) *listing {
	l := &listing{kind: "DeletionList", columns: []column{{head: "TARGET"}, {head: "UNIT"}, {head: "OBJECT"}, {head: "UID", wide: true}, {head: "WHY"}}}
	for _, d := range p.Deletions {
		l.add(d, string(d.Target)+" "+d.ID.String(), string(d.Target), string(d.Unit), d.ID.String(), orDash(d.UID), d.Why)
	}
	return l
}
