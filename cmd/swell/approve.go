// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync/store"
)

func approveCommand() *cobra.Command {
	var file, output, reason string
	var yes, reject bool
	cmd := &cobra.Command{
		Use:   "approve [PLAN] --config FILE",
		Short: "Approve deletions that the daemon holds back",
		Long: `Deletions wait for approval when they are more than the guard of the daemon's
configuration allows, when they delete other objects or data too (namespaces,
volumes, StatefulSets, definitions, classes, API services, webhooks, admission
policies), or when the objects were found after the state was lost.

Without an argument, list the plans that wait. With the digest of a plan, or a unique
prefix of it, print every deletion of the plan, ask, and approve the plan: these
objects, by their UIDs, and no others. The daemon may be running or not. It checks
each object again before it deletes it.

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
  swell approve 3fa9c1d2 --reject --reason "the database is still read"`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case reject && len(args) == 0:
				return hinted{errors.New("--reject: want a plan"), "swell approve lists them"}
			case reject && yes:
				return errors.New("--reject and --yes: want one of them")
			case reason != "" && !reject:
				return errors.New("--reason: want --reject with it")
			}
			if err := oneLineReason(reason); err != nil {
				return err
			}
			settings, err := readDaemonConfig(file)
			if err != nil {
				return err
			}
			plans, err := readPlans(settings.State)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return planListing(plans).write(cmd.OutOrStdout(), output)
			}
			plan, err := pickPlan(plans, args[0])
			if err != nil {
				return err
			}
			if reject {
				return rejectPlan(cmd, settings.State, plan, reason)
			}
			if err := deletionListing(plan).write(cmd.OutOrStdout(), output); err != nil {
				return err
			}
			if plan.Rejected != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "swell: plan %s: %s\n", plan.Digest.Short(), plan.Rejected.Text())
			}
			if err := confirm(cmd, yes, fmt.Sprintf("Delete these %s?", diff.Count(len(plan.Deletions), "object"))); err != nil {
				return err
			}
			if err := store.Approve(cmd.Context(), settings.State, plan.Digest, whoami(), time.Now()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "swell: approved: plan %s, %s\n", plan.Digest.Short(), diff.Count(len(plan.Deletions), "deletion"))
			return nil
		},
	}
	configFlag(cmd, &file)
	outputFlag(cmd, &output, listingFormats...)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask; required where there is no terminal to ask on")
	cmd.Flags().BoolVar(&reject, "reject", false, "record that the plan is rejected")
	cmd.Flags().StringVar(&reason, "reason", "", "with --reject: why")
	return cmd
}

func rejectPlan(cmd *cobra.Command, dir string, plan store.Plan, reason string) error {
	r := store.Rejection{At: time.Now(), By: whoami(), Reason: reason}
	if err := store.Reject(cmd.Context(), dir, plan.Digest, r); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "swell: rejected: plan %s, %s: they wait until the change is reverted in Git or the plan is approved\n",
		plan.Digest.Short(), diff.Count(len(plan.Deletions), "deletion"))
	return nil
}

func readPlans(dir string) ([]store.Plan, error) {
	s, err := store.OpenReadOnly(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hinted{fmt.Errorf("%s: no state yet", dir), "swell run creates it"}
	}
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Plans()
}

// fewestDigits is how short an abbreviation may be, as in git.
const fewestDigits = 4

// pickPlan finds the one plan whose digest begins with the digits.
func pickPlan(plans []store.Plan, digits string) (store.Plan, error) {
	var present, fit []string
	var found store.Plan
	for _, p := range plans {
		present = append(present, p.Digest.Short())
		if len(digits) >= fewestDigits && strings.HasPrefix(string(p.Digest), strings.ToLower(digits)) {
			fit = append(fit, string(p.Digest))
			found = p
		}
	}
	switch {
	case len(fit) == 1:
		return found, nil
	case len(fit) > 1:
		return store.Plan{}, fmt.Errorf("plan %q: there are several: %s", digits, strings.Join(fit, ", "))
	case len(plans) == 0:
		return store.Plan{}, fmt.Errorf("plan %q: no such plan: nothing waits for approval", digits)
	case len(digits) < fewestDigits:
		return store.Plan{}, fmt.Errorf("plan %q: want a unique prefix of at least %d digits of one of %s", digits, fewestDigits, strings.Join(present, ", "))
	}
	return store.Plan{}, hinted{fmt.Errorf("plan %q: no such plan, want one of %s", digits, strings.Join(present, ", ")),
		"a plan that changed has another digest; swell approve lists them"}
}

func planOf(p store.Plan) string {
	if p.Unit == "" {
		return "the whole fleet"
	}
	return string(p.Unit)
}

// planStatus is a plan as programs are told of it.
type planStatus struct {
	Plan      render.Digest    `json:"plan"`
	Unit      config.UnitPath  `json:"unit,omitempty"` // empty: the whole fleet
	Since     time.Time        `json:"since"`
	Deletions []store.Deletion `json:"deletions"`
	Rejected  *store.Rejection `json:"rejected,omitempty"`
}

func planListing(plans []store.Plan) *listing {
	l := &listing{kind: "DeletionPlanList", columns: heads("PLAN", "DELETIONS", "OF", "SINCE", "WHY"), nothing: "nothing waits for approval"}
	for _, p := range plans {
		l.add(planStatus{p.Digest, p.Unit, p.At.UTC(), p.Deletions, p.Rejected}, p.Digest.Short(), p.Digest.Short(), strconv.Itoa(len(p.Deletions)), planOf(p),
			p.At.UTC().Format(time.RFC3339), planWhy(p))
	}
	return l
}

// planWhy is the first reason in a plan, how many others there are, and who
// rejected it.
func planWhy(p store.Plan) string {
	reasons := map[string]bool{}
	for _, d := range p.Deletions {
		reasons[d.Why] = true
	}
	text := p.Deletions[0].Why
	if more := len(reasons) - 1; more > 0 {
		text += fmt.Sprintf(" (and %s)", diff.Count(more, "other reason"))
	}
	if p.Rejected != nil {
		text += "; " + p.Rejected.Text()
	}
	return text
}

// deletionListing has a row for every deletion of a plan.
func deletionListing(p store.Plan) *listing {
	l := &listing{kind: "DeletionList", columns: []column{{head: "TARGET"}, {head: "UNIT"}, {head: "OBJECT"}, {head: "UID", wide: true}, {head: "WHY"}}}
	for _, d := range p.Deletions {
		l.add(d, string(d.Target)+" "+d.ObjectID.String(), string(d.Target), string(d.Unit), d.ObjectID.String(), orDash(d.UID), d.Why)
	}
	return l
}

// whoami is who approves, for the history: the user of this process, and who
// became that by sudo.
func whoami() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if real := os.Getenv("SUDO_USER"); real != "" && real != name {
		return real + " as " + name
	}
	return orDash(name)
}
