// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync/store"
)

func approveCommand() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "approve [PLAN] --config FILE",
		Short: "Approve deletions that the daemon holds back",
		Long: `Deletions wait for approval when they are too many for the guard of the daemon's
configuration, when they take other objects or data along (namespaces, volumes,
StatefulSets, definitions, classes, API services, webhooks, admission policies),
or when they are of objects that were found after the state was lost.

Without an argument, list the plans that wait. With the digest of one, or as many
of its digits as tell it apart, print every deletion of the plan and approve them:
these objects, by their UIDs, and no others. The daemon may be running or not; it
still looks at each object before it deletes it.

To keep an object instead, bring it back in the monorepo, or annotate the live one
with swell.sh/prune: disabled or client.lifecycle.config.k8s.io/deletion: detach,
which let go of it.

Exit codes: 0 approved, or the plans are listed; 2 there is no such plan, or the
state could not be read or written.`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := map[string]func(io.Writer, []store.Plan) error{"table": writePlans, "json": writePlansJSON}[output]
			if !ok {
				return fmt.Errorf("-o %q: want table or json", output)
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
				return write(cmd.OutOrStdout(), plans)
			}
			plan, err := pickPlan(plans, args[0])
			if err != nil {
				return err
			}
			if err := writePlan(cmd.OutOrStdout(), plan); err != nil {
				return err
			}
			if err := store.Approve(cmd.Context(), settings.State, plan.Digest, whoami(), time.Now()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "approved: plan %s, %s\n", plan.Digest.Short(), diff.Count(len(plan.Deletions), "deletion"))
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "swell-daemon.yaml", "configuration of the daemon (kind: Daemon)")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "how the list is written: table or json")
	return cmd
}

func readPlans(dir string) ([]store.Plan, error) {
	s, err := store.OpenReadOnly(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hinted{fmt.Errorf("%s: no state yet", dir), "swell run makes it"}
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
		return store.Plan{}, fmt.Errorf("plan %q: want at least %d digits of one of %s", digits, fewestDigits, strings.Join(present, ", "))
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

func writePlans(w io.Writer, plans []store.Plan) error {
	if len(plans) == 0 {
		_, err := fmt.Fprintln(w, "nothing waits for approval")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PLAN\tDELETIONS\tOF\tSINCE\tWHY")
	for _, p := range plans {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", p.Digest.Short(), len(p.Deletions), planOf(p), p.At.UTC().Format(time.RFC3339), planWhy(p))
	}
	return table.Flush()
}

// planWhy is the first reason in a plan and how many others there are.
func planWhy(p store.Plan) string {
	reasons := map[string]bool{}
	for _, d := range p.Deletions {
		reasons[d.Why] = true
	}
	text := p.Deletions[0].Why
	if more := len(reasons) - 1; more > 0 {
		text += fmt.Sprintf(" (and %s)", diff.Count(more, "other reason"))
	}
	return text
}

func writePlansJSON(w io.Writer, plans []store.Plan) error {
	return writeList(w, "DeletionPlanList", plans)
}

// writePlan writes every deletion of a plan.
func writePlan(w io.Writer, p store.Plan) error {
	fmt.Fprintf(w, "plan %s: %s of %s\n", p.Digest, diff.Count(len(p.Deletions), "deletion"), planOf(p))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TARGET\tUNIT\tOBJECT\tUID\tWHY")
	for _, d := range p.Deletions {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", d.Target, d.Unit, d.ObjectID, orDash(d.UID), d.Why)
	}
	return table.Flush()
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
