// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync/apply"
)

func adoptCommand(in *invocation) *cobra.Command {
	o := adoptOptions{where: repoFlags{in: in}, config: configPath{in: in}}
	cmd := &cobra.Command{
		Use:   "adopt [HEAD]",
		Short: "Show what taking live objects over from another tool would change",
		Long: `Ask the clusters, by a dry run for each object, what would change if swell took over the
objects of the current folder, or of a folder or Git revision HEAD. Nothing is written. A
faithful import changes nothing but the marks of ownership: those of swell come, those of
the other tool go.

It shows to whom the objects belong (Flux, Argo CD, Helm, kapp, Config Sync, or who made
them), the changes field by field, fields that stay although Git does not say them, and
objects that a release of the other tool has and no unit. At the end stand the steps of
the take-over. The values of Secrets are neither read nor shown.

The clusters and the credentials are those of the daemon's configuration.

Exit codes: 0 nothing but ownership, 1 it would change or leave something, 2 an error or a problem.`,
		Example: `  swell adopt
  swell adopt --unit apps/web --target production`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.show(cmd, o.where.argument(args, 0)) },
	}
	o.where.flags(cmd)
	o.where.cacheFlag(cmd)
	outputFlag(cmd, &o.output, formatText, formatName, formatJSON, formatYAML)
	configFlag(cmd, &o.config)
	cmd.Flags().StringVar(&o.unit, "unit", "", "only this unit, or the units below this folder")
	targetFlag(cmd, &o.target)
	return cmd
}

// adoptOptions are the flags of swell adopt.
type adoptOptions struct {
	where                repoFlags
	config               configPath
	output, unit, target string
}

// adoption is what taking over would come to.
type adoption struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	*diff.Report
	// Owners has a row for each unit, target and owner, sorted.
	Owners []ownerRow `json:"owners"`
	// Stays are fields that owners set and Git does not say, sorted.
	Stays []stayingFields `json:"stays,omitempty"`
	// Left are objects of the owners that no unit has, sorted.
	Left []leftObject `json:"left,omitempty"`

	releases map[string]map[string]bool // by cluster
	contexts map[string]config.ClusterAccess
}

// ownerRow counts the objects of a unit on a target that belong to somebody.
type ownerRow struct {
	Unit   config.UnitPath   `json:"unit"`
	Target config.TargetName `json:"target"`
	// Owner is a release of a tool or who made them, "swell" for what is ours already,
	// and empty for what is not there yet.
	Owner   string `json:"owner"`
	Objects int    `json:"objects"`
	Changed int    `json:"changed"`
}

type stayingFields struct {
	Target config.TargetName `json:"target"`
	Object string            `json:"object"`
	Owner  string            `json:"owner"`
	Fields []string          `json:"fields"`
}

type leftObject struct {
	Cluster string `json:"cluster"`
	Object  string `json:"object"`
	Owner   string `json:"owner"`
}

func (o *adoptOptions) show(cmd *cobra.Command, name string) error {
	l, done, err := compareLive(cmd, &o.where, o.config, name, o.unit, o.target)
	if err != nil {
		return err
	}
	defer done()
	a := &adoption{APIVersion: config.APIVersion, Kind: "Adoption", releases: map[string]map[string]bool{}, contexts: l.settings.Clusters}
	l.ask, l.met = (*apply.Cluster).TakeOver, a.meet
	l.done = func(ctx context.Context, cluster string, conn *apply.Cluster) {
		left, err := a.leftIn(ctx, l, cluster, conn)
		if err != nil {
			l.failed(fmt.Errorf("%s: %w", cluster, err))
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		a.Left = append(a.Left, left...)
	}
	var errs []error
	a.Report, errs = l.compare(cmd.Context())
	a.sort()
	if err := a.write(cmd.OutOrStdout(), o.output); err != nil {
		return err
	}
	err = l.end(cmd.ErrOrStderr(), a.Report, errs, a.summary())
	if err == nil && len(a.Left)+len(a.Stays) > 0 {
		return exit(exitProblems)
	}
	return err
}

// meet takes in what a cluster says of one object.
func (a *adoption) meet(u unitTarget, p apply.Preview) {
	if p.Err != nil {
		return
	}
	owner := p.Owner
	switch {
	case p.Action == apply.Created:
		owner = ""
	case owner == "":
		owner = config.ManagedBy
	}
	at := slices.IndexFunc(a.Owners, func(r ownerRow) bool { return r.Unit == u.unit && r.Target == u.bundle.Target && r.Owner == owner })
	if at < 0 {
		at = len(a.Owners)
		a.Owners = append(a.Owners, ownerRow{Unit: u.unit, Target: u.bundle.Target, Owner: owner})
	}
	a.Owners[at].Objects++
	if p.Action != apply.Unchanged {
		a.Owners[at].Changed++
	}
	if len(p.Stays) > 0 {
		a.Stays = append(a.Stays, stayingFields{u.bundle.Target, p.ID.String(), owner, p.Stays})
	}
	if p.Owner != "" {
		cluster := u.bundle.Target.Cluster()
		if a.releases[cluster] == nil {
			a.releases[cluster] = map[string]bool{}
		}
		a.releases[cluster][p.Owner] = true
	}
}

// leftIn finds what the owners have in a cluster and no unit wants there.
func (a *adoption) leftIn(ctx context.Context, l *liveDiff, cluster string, conn *apply.Cluster) (left []leftObject, err error) {
	l.mu.Lock()
	releases := a.releases[cluster]
	l.mu.Unlock()
	if !slices.ContainsFunc(releaseNames(releases), isTool) {
		return nil, nil
	}
	claims, unknown, err := conn.Claims(ctx, releases)
	if err != nil {
		return nil, err
	}
	for _, c := range claims {
		if len(l.compiler.Wants(cluster, c.ID)) == 0 {
			left = append(left, leftObject{cluster, c.ID.String(), c.Release})
		}
	}
	if len(unknown) > 0 {
		err = fmt.Errorf("what else belongs to %s is not known of %s", document.Some(releaseNames(releases), 3), document.Some(unknown, 5))
	}
	return left, err
}

func (a *adoption) sort() {
	slices.SortFunc(a.Owners, func(x, y ownerRow) int {
		return cmp.Or(cmp.Compare(x.Unit, y.Unit), cmp.Compare(x.Target, y.Target), cmp.Compare(x.Owner, y.Owner))
	})
	slices.SortFunc(a.Stays, func(x, y stayingFields) int {
		return cmp.Or(cmp.Compare(x.Target, y.Target), cmp.Compare(x.Object, y.Object))
	})
	slices.SortFunc(a.Left, func(x, y leftObject) int {
		return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Object, y.Object))
	})
}

func (a *adoption) write(w io.Writer, format string) error {
	switch format {
	case formatJSON, formatYAML:
		return writeData(w, format, a)
	case formatName:
		for _, row := range a.Owners {
			if _, err := fmt.Fprintln(w, strings.TrimSpace(fmt.Sprintf("%s %s %s", row.Unit, row.Target, row.Owner))); err != nil {
				return err
			}
		}
		return nil
	}
	return a.writeText(w)
}

func (a *adoption) writeText(w io.Writer) error {
	t := newTable()
	t.row("UNIT", "TARGET", "OBJECTS", "BELONG TO", "CHANGES")
	for _, row := range a.Owners {
		t.row(string(row.Unit), string(row.Target), fmt.Sprint(row.Objects), cmp.Or(row.Owner, "-"), row.changes())
	}
	if err := t.write(w); err != nil {
		return err
	}
	if len(a.Changes) > 0 {
		fmt.Fprint(w, "\nchanges besides ownership\n")
		if err := a.Report.Write(w); err != nil {
			return err
		}
	}
	if len(a.Stays) > 0 {
		fmt.Fprint(w, "\nstays as it is, because Git does not say\n")
		for _, s := range a.Stays {
			fmt.Fprintf(w, "  %s on %s: %s\n", s.Object, s.Target, document.Some(s.Fields, 10))
		}
	}
	if len(a.Left) > 0 {
		fmt.Fprint(w, "\nno unit has these, so that they stay with their owner\n")
		for _, l := range a.Left {
			fmt.Fprintf(w, "  %s on %s: %s\n", l.Object, l.Cluster, l.Owner)
		}
	}
	return a.writeSteps(w)
}

func (r ownerRow) changes() string {
	switch {
	case r.Owner == "":
		return "created"
	case r.Changed > 0:
		return fmt.Sprintf("%d of %d", r.Changed, r.Objects)
	case r.Owner == config.ManagedBy:
		return "none"
	}
	return "nothing but ownership"
}

func (a *adoption) summary() string {
	objects, taken := 0, 0
	for _, row := range a.Owners {
		objects += row.Objects
		if row.Owner != "" && row.Owner != config.ManagedBy {
			taken += row.Objects
		}
	}
	text := fmt.Sprintf("%s, %d to take over, ", document.Count(objects, "object"), taken)
	if taken == 0 && len(a.Changes)+len(a.Left) == 0 {
		return document.Count(objects, "object") + ", nothing to take over"
	}
	if len(a.Changes)+len(a.Stays)+len(a.Left) == 0 {
		return text + "nothing but ownership would change"
	}
	return text + a.Report.Summary()
}
