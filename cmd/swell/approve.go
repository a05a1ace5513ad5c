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
	"github.com/swell-sh/swell/sync/approval"
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
policies), when a Service gets another name, or when the objects were found after
the state was lost. What swell knows of a cluster that left the fleet is forgotten
after approval only; the objects stay there.

Without an argument, list the plans that wait. With the digest of a plan, or a unique
prefix of it, print every deletion of the plan and what a Namespace or a definition takes
along of others, ask, and approve the plan: these objects, by their UIDs, and no others.
The clusters are asked for what is of others; where they do not say, it is unknown. The
daemon may be running or not. It checks each object again before it deletes it. Gates of
waves that wait for approval are listed and approved in the same way.

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

Where somebody approved it before, say who and when, and do nothing.

Exit codes: 0 approved, now or before, rejected or listed; 1 the answer was no; 2 there
is no such plan, there is no terminal to ask on, or the state could not be read or
written.`,
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
				if picked.Approved != nil {
					return tellApproved(cmd, picked.Approved, picked.Plan, reject)
				}
				if reject {
					return rejectPlan(cmd, file, picked, reason)
				}
				return approvePlan(cmd, file, output, picked, yes)
			})
		},
	}
	daemonFlags(cmd, &file)
	outputFlag(cmd, &output, listingFormats...)
	yesFlag(cmd, &yes)
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
		if fresh, err := approveDigest(cmd, file, plan.Plan); !fresh {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "swell: approval of gate %s ordered\n", plan.Plan.Short())
		return nil
	}
	if err := deletionListing(plan).write(cmd.OutOrStdout(), output); err != nil {
		return err
	}
	writeOthers(cmd.Context(), cmd.ErrOrStderr(), file, plan.Deletions)
	if plan.Rejected != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "swell: plan %s: %s\n", plan.Plan.Short(), plan.Rejected.Text())
	}
	if err := confirm(cmd, yes, plan.question()); err != nil {
		return err
	}
	if fresh, err := approveDigest(cmd, file, plan.Plan); !fresh {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "swell: approved: plan %s, %s\n", plan.Plan.Short(), plan.effect())
	return nil
}

// effect says what the plan would do, in a few words.
func (p *planStatus) effect() string {
	if cluster := store.Forgets(p.Deletions); cluster != "" {
		return fmt.Sprintf("forgetting %s in cluster %s", document.Count(len(p.Deletions), "object"), cluster)
	}
	return document.Count(len(p.Deletions), "deletion")
}

// question asks for the approval of the plan.
func (p *planStatus) question() string {
	objects := document.Count(len(p.Deletions), "object")
	if cluster := store.Forgets(p.Deletions); cluster != "" {
		return fmt.Sprintf("Forget these %s of cluster %s, and leave them as they are?", objects, cluster)
	}
	return fmt.Sprintf("Delete these %s?", objects)
}

// approveDigest approves a plan or a gate. fresh says that nobody did before.
func approveDigest(cmd *cobra.Command, file configPath, digest object.Digest) (fresh bool, err error) {
	done, err := judge(cmd, file, serve.Judge{Digest: digest})
	if err == nil && done.Already != nil {
		return false, tellApproved(cmd, done.Already, digest, false)
	}
	return err == nil, err
}

func rejectPlan(cmd *cobra.Command, file configPath, plan planStatus, reason string) error {
	if _, err := judge(cmd, file, serve.Judge{Digest: plan.Plan, Reject: true, Reason: reason}); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "swell: rejected: plan %s, %s: they wait until the change is reverted in Git or the plan is approved\n",
		plan.Plan.Short(), plan.effect())
	return nil
}

// tellApproved says who approved a plan or a gate before. It is an error to reject it then.
func tellApproved(cmd *cobra.Command, a *serve.Approved, digest object.Digest, reject bool) error {
	if reject {
		return fmt.Errorf("%s %s: %w: %s", a.Word(), digest.Short(), store.ErrApproved, a.Text())
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "swell: %s %s is already %s\n", a.Word(), digest.Short(), visible(a.Text()))
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
	case len(digits) >= fewestDigits && is.Already(strings.ToLower(digits)) != nil:
		a := is.Already(strings.ToLower(digits))
		return planStatus{Plan: a.Digest, Unit: a.Unit, Approved: a}, nil
	case len(plans) == 0:
		return planStatus{}, fmt.Errorf("plan %q: no such plan: nothing waits for approval", digits)
	case len(digits) < fewestDigits:
		return planStatus{}, fmt.Errorf("plan %q: want a unique prefix of at least %d digits of one of %s", digits, fewestDigits, strings.Join(present, ", "))
	}
	return planStatus{}, hinted{fmt.Errorf("plan %q: no such plan, want one of %s", digits, strings.Join(present, ", ")),
		"a plan that changed has another digest; swell approve lists them"}
}

// planText says what a plan would do: of a unit, or of the whole fleet; cluster is the one
// whose objects it forgets.
func planText(objects int, unit config.UnitPath, cluster string) string {
	if cluster != "" {
		return fmt.Sprintf("forgetting %s in cluster %s that left the fleet", document.Count(objects, "object"), cluster)
	}
	return document.Count(objects, "deletion") + " of " + wholeFleet(unit)
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
	Approved  *serve.Approved  `json:"approved,omitempty"`
}

func plansOf(is serve.Approvals) []planStatus {
	var plans []planStatus
	for _, p := range is.Plans {
		plans = append(plans, planStatus{Plan: p.Digest, Unit: p.Unit, Since: p.At.UTC(), Deletions: p.Deletions,
			Rejected: p.Rejected, Approved: is.Already(string(p.Digest))})
	}
	for _, ask := range is.Asks {
		plans = append(plans, planStatus{Plan: ask.Digest, Unit: ask.Unit, Since: ask.Since.UTC(), Deletions: []store.Deletion{},
			Gate: &ask, Approved: is.Already(string(ask.Digest))})
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
		return "the start of wave " + p.Gate.Wave + approvedBefore(p)
	}
	reasons := map[string]map[config.TargetName]bool{}
	for _, d := range p.Deletions {
		if reasons[d.Why] == nil {
			reasons[d.Why] = map[config.TargetName]bool{}
		}
		reasons[d.Why][d.Target] = true
	}
	first := p.Deletions[0]
	text := onTargets(first.Why, first.Target, len(reasons[first.Why]))
	if more := len(reasons) - 1; more > 0 {
		text += fmt.Sprintf(" (and %s)", document.Count(more, "other reason"))
	}
	if p.Rejected != nil {
		text += "; " + p.Rejected.Text()
	}
	return text + approvedBefore(p)
}

// onTargets says on how many targets a reason holds that is about the target of a row.
func onTargets(why string, target config.TargetName, n int) string {
	where := "on target " + string(target)
	if n > 1 {
		where = fmt.Sprintf("on each of %d targets", n)
	}
	return strings.Replace(why, approval.OnTarget, where, 1)
}

// approvedBefore continues a row of what was approved and not taken up yet.
func approvedBefore(p planStatus) string {
	if p.Approved == nil {
		return ""
	}
	return "; " + p.Approved.Text()
}

// deletionListing has a row for every deletion of a plan.
func deletionListing(p planStatus) *listing {
	l := &listing{kind: "DeletionList", columns: []column{{head: "TARGET"}, {head: "UNIT"}, {head: "OBJECT"}, {head: "UID", wide: true}, {head: "WHY"}}}
	for _, d := range p.Deletions {
		l.add(d, string(d.Target)+" "+d.ID.String(), string(d.Target), string(d.Unit), d.ID.String(), orDash(d.UID), d.Why)
	}
	return l
}
