// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/migrate"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/source"
)

// beginFrom makes a monorepo of a repository that another tool reads.
func (o *initOptions) beginFrom(cmd *cobra.Command) error {
	if !o.in.isFolder(o.dir) {
		return hinted{fmt.Errorf("%s: no such folder", o.dir), "--from reads a repository that is there"}
	}
	f := &firstFleet{}
	var err error
	if f.Name, err = o.repositoryName(&questions{}); err != nil {
		return err
	}
	file, contexts, noContexts := o.contexts()
	if noContexts != nil {
		contexts = nil
	}
	f.Kubeconfig = file
	if err := f.add(o.clusters, contexts); err != nil {
		return err
	}
	if err := o.findGit(f); err != nil {
		return err
	}
	options := migrate.Options{Name: f.Name, URL: o.url}
	if options.URL == "" {
		options.URL = source.Origin(o.in.path(o.dir))
	}
	for _, c := range f.Clusters {
		options.Clusters = append(options.Clusters, c.Name)
	}
	proposal, err := migrate.From(o.from, config.Files(os.DirFS(o.in.path(o.dir))), options)
	if err != nil {
		return err
	}
	lacking := f.addFound(proposal.Clusters, contexts)
	daemon, err := f.daemon()
	if err != nil {
		return err
	}
	if err := o.write(cmd, slices.Concat(proposal.Files, daemon)); err != nil {
		return err
	}
	report := cmd.OutOrStdout()
	if o.dry {
		report = cmd.ErrOrStderr() // the files are an archive on their own
	}
	w := &importReport{Writer: report, Proposal: proposal, all: o.verbose}
	w.write()
	if len(lacking) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "swell: note: %s names contexts that %s does not have: %s\n", daemonFile, file, document.Some(lacking, 10))
	}
	o.next(cmd.OutOrStdout(), "swell check", "swell adopt    # what taking over from the other tool would change, by dry run")
	return nil
}

// addFound adds the clusters that the repository names. lacking are those that the
// kubeconfig has no context for.
func (f *firstFleet) addFound(names []string, contexts []fleet.Context) (lacking []string) {
	for _, name := range names {
		if slices.ContainsFunc(f.Clusters, func(c firstCluster) bool { return c.Name == name }) {
			continue
		}
		f.Clusters = append(f.Clusters, firstCluster{Name: name})
		at := slices.IndexFunc(contexts, func(c fleet.Context) bool { return c.Name == name })
		if at < 0 {
			lacking = append(lacking, name)
			continue
		}
		f.Allow = append(f.Allow, contexts[at].Needs...)
	}
	slices.Sort(f.Allow)
	f.Allow = slices.Compact(f.Allow)
	return lacking
}

// importReport says what became of another tool's repository.
type importReport struct {
	io.Writer
	*migrate.Proposal
	all bool // each note by itself
}

func (w *importReport) write() {
	on, off := 0, 0
	for _, u := range w.Units {
		if u.Off == "" {
			on++
		} else {
			off++
		}
	}
	fmt.Fprintf(w, "\nCarried over: %s on %s", document.Count(on, "unit"), document.Count(len(w.Clusters), "cluster"))
	if off > 0 {
		fmt.Fprintf(w, ", and %s that %s off", document.Count(off, "unit"), map[bool]string{true: "is", false: "are"}[off == 1])
	}
	fmt.Fprintln(w)
	t := newTable()
	t.row("UNIT", "CLUSTERS", "FROM")
	for _, u := range w.Units {
		clusters := strings.Join(u.Clusters, ",")
		if len(u.Clusters) == len(w.Clusters) && len(u.Clusters) > 1 {
			clusters = "all"
		}
		from := fmt.Sprintf("%s (%s)", document.SomeTexts(u.From, 2), u.At)
		if u.Off != "" {
			from += "; off: " + u.Off
		}
		t.row(u.Path, clusters, from)
	}
	_ = t.write(w.Writer)
	w.charts()
	w.notes("Not carried over", w.NotCarried, true)
	w.notes("Done in another way", w.Notes, w.all)
}

// charts lists the commands that bring charts into the tree.
func (w *importReport) charts() {
	if len(w.Charts) == 0 {
		return
	}
	fmt.Fprintln(w, "\nCharts to bring into the tree. Take `unit: false` out of their units' swell.yaml then:")
	for _, c := range w.Charts {
		fmt.Fprintf(w, "  %s\n", c.Command)
	}
}

// notes prints notes, those with the same text together. Without all, places after the
// first are counted only.
func (w *importReport) notes(title string, notes []migrate.Note, all bool) {
	if len(notes) == 0 {
		return
	}
	type key struct{ field, why, do string }
	var order []key
	at := map[key][]migrate.Note{}
	for _, n := range notes {
		k := key{n.Field, n.Why, n.Do}
		if at[k] == nil {
			order = append(order, k)
		}
		at[k] = append(at[k], n)
	}
	fmt.Fprintf(w, "\n%s: %d\n", title, len(notes))
	for _, k := range order {
		same := at[k]
		for i, n := range same {
			if !all && i > 0 {
				fmt.Fprintf(w, "  and %d more, with -v\n", len(same)-1)
				break
			}
			field := ""
			if n.Field != "" {
				field = ": " + n.Field
			}
			fmt.Fprintf(w, "  %s: %s%s\n", n.At, n.What, field)
		}
		fmt.Fprintf(w, "      %s\n", k.why)
		if k.do != "" {
			fmt.Fprintf(w, "      by hand: %s\n", k.do)
		}
	}
}
