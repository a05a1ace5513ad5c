// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/render/impact"
	"github.com/swell-sh/swell/render/report"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/rollout"
)

// diffOptions are the flags of swell diff.
type diffOptions struct {
	where        repoFlags
	output       string
	asks         bool // --live
	comment      bool
	fork         bool // what is compared is of another repository
	config       configPath
	unit, target string // with --live
}

func diffCommand(in *invocation) *cobra.Command {
	o := diffOptions{where: repoFlags{in: in}, config: configPath{in: in}}
	where := &o.where
	cmd := &cobra.Command{
		Use:   "diff BASE [HEAD] | diff --live [HEAD]",
		Short: "Show what a change does to the objects of the fleet",
		Long: `Render two states of a monorepo, folders or Git revisions, and show which objects
differ, field by field, with equal changes on several targets shown once. This
is the preview of a pull request: BASE is compared with what a merge of HEAD into it
would give, so that newer changes of BASE are not shown as taken back. Without HEAD, BASE
is compared with the current folder. No cluster is needed.

It shows what the daemon would do in a fleet that has BASE, by the daemon's own
code: the deletions that wait for approval and why, the units that are not released
before that, and the objects that are orphaned, left, or forgotten with their cluster.
The bounds on deletions are the defaults, or those of the daemon's configuration with
-c. Facts that only the clusters know, such as a field that cannot be changed, are
missing: see --live. Below the changes stands how they are released, as swell plan shows
it: the waves with their soaks and gates, who may approve them, masked targets and closed
windows, by the documents of HEAD and without the orders of operators. The Tenants of BASE
judge the units of HEAD too, so a change cannot allow itself anything.

With --live, ask the clusters for the changes that an apply of HEAD would make now, by
a dry run for each object, which writes nothing. The clusters and the credentials are
those of the daemon's configuration. Deletions are shown only where the daemon's state
is. The values of Secrets are neither read nor shown.

Where a kind or a definition of custom resources changed, its breaking changes are
problems, as swell schema compat finds them.

With --comment, in a job of GitHub Actions, Gitea Actions or GitLab CI, post the preview
on the pull request that the job runs for: one comment, which each run brings up to date,
and a commit status. The token is taken from SWELL_FORGE_TOKEN, or from GITHUB_TOKEN, GITLAB_TOKEN
or GITEA_TOKEN, whichever is the forge's. For a pull request of another repository Checkers run
no program. swell ci init writes such a job.

Problems that BASE has, too, are listed, and are nobody's fault here.

Exit codes: 0 no changes, 1 changes, 2 an error, or a problem that BASE does not have; or API
servers would refuse a change, or units are no longer units and keep their objects, or the
daemon would refuse HEAD as a whole. With --comment, changes are 0, too.`,
		Example: `  swell diff main                     # what my working tree changes
  swell diff main my-branch -o markdown
  swell diff HEAD~1 HEAD --path testdata/monorepo
  swell diff origin/main --comment    # in a job
  swell diff --live -c daemon.yaml --unit services/shop`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.asks {
				return arguments(0, 1)(cmd, args)
			}
			return arguments(1, 2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.asks {
				return o.live(cmd, where.argument(args, 0))
			}
			for _, name := range []string{"unit", "target"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s: only with --live", name)
				}
			}
			var j *job
			to := where.argument(args, 1)
			if o.comment {
				var err error
				if j, err = openJob(cmd.Context(), in); err != nil {
					return err
				}
				if j.Unnamed && j.pull.Number == 0 { // it may be a stranger's, so nothing of it is rendered
					fmt.Fprintln(cmd.ErrOrStderr(), "swell: note: nothing is posted: no open pull request has commit "+j.Head.Short())
					return nil
				}
				if j.pull.Number != 0 && in.isFolder(to) {
					isHead, err := j.checkedOut(in.path(to))
					if err != nil {
						return err
					}
					if isHead && len(args) == 1 { // what the job wrote into the working tree is in no commit
						to = string(j.pull.Head)
					}
				}
				o.fork = o.fork || j.pull.Fork
			}
			compiler, done, err := where.compiler(cmd)
			if err != nil {
				return err
			}
			defer done()
			c, err := o.compare(cmd, compiler, args[0], to)
			if err != nil {
				return err
			}
			err = o.tell(cmd, c)
			var code exit
			if j == nil || err != nil && !errors.As(err, &code) {
				return err
			}
			return j.post(cmd, where, c)
		},
	}
	where.flags(cmd)
	where.cacheFlag(cmd)
	outputFlag(cmd, &o.output, formatText, formatName, formatJSON, formatYAML, formatMarkdown)
	cmd.Flags().BoolVar(&o.comment, "comment", false, "in a job of GitHub Actions, Gitea Actions or GitLab CI: post the changes on the pull request, as a comment that is kept up to date and a commit status")
	cmd.Flags().BoolVar(&o.fork, "fork", false, "HEAD is of another repository: Checkers run no programs for it; with --comment, this is told from the pull request")
	cmd.Flags().BoolVar(&o.asks, "live", false, "compare with what the clusters hold")
	configFlag(cmd, &o.config)
	cmd.Flags().StringVar(&o.unit, "unit", "", "with --live: only this unit, or the units below this folder")
	cmd.Flags().StringVar(&o.target, "target", "", "with --live: only this target (cluster/cell), or the targets of this cluster")
	return cmd
}

// comparison is two states of a monorepo, and what the daemon would make of the second.
type comparison struct {
	states
	from, to string            // as the user names them
	fork     bool              // the second is of another repository
	both     []string          // paths that changed in both since they parted
	earlier  bool              // the second is an earlier state of the first
	problems document.Problems // of the second that the first does not have
	before   document.Problems // of both
	impact   *impact.Report
	rules    []string // that the second changes, a line each
	// report and plan are nil where nothing can be taken from the second.
	report *diff.Report
	plan   *sync.Forecast
}

// compare renders both states. The error is that there is nothing to compare with.
func (o *diffOptions) compare(cmd *cobra.Command, compiler *render.Compiler, from, to string) (*comparison, error) {
	where := &o.where
	base, err := where.accepted(cmd.Context(), compiler, from)
	if err != nil {
		return nil, err
	}
	if base.Held && !o.comment {
		printProblems(cmd.ErrOrStderr(), base.Problems)
		return nil, fmt.Errorf("%s: the fleet's documents have problems, so there is nothing to compare with", from)
	}
	compiler.Base = base.Repository
	if o.fork {
		compiler.Checkers = where.judges.Known(noProgramsForForks)
	}
	c := &comparison{states: states{base: base}, from: from, to: to, fork: o.fork}
	m, err := where.merged(from, to)
	if err != nil {
		return nil, err
	}
	c.both, c.earlier = m.both, m.earlier
	if err := c.with(cmd.Context(), where, compiler, m.tree, m.commit); err != nil {
		return nil, err
	}
	if err := c.findProblems(); err != nil || c.head.Held || c.base.Held {
		return c, err
	}
	guard, live := config.DefaultGuard, rollout.Now{}
	if cmd.Flags().Changed("config") {
		settings, err := readDaemonConfig(o.config)
		if err != nil {
			return nil, err
		}
		guard = settings.Guard
		names, err := fleet.Named(settings)
		if err != nil {
			return nil, err
		}
		live.Clusters = append([]string{}, names...)
	}
	if c.report, c.plan, err = sync.PreviewPlan(c.base, c.head, compiler, guard, live, time.Now()); err != nil {
		return nil, err
	}
	return c, c.findLater(compiler, m.tree, guard)
}

// findLater finds what the second state changes in units that the rules of the first alone hold: the next
// commit releases it, whatever it is about, and nothing would show it then. The compiler renders once more
// for it, where rules change and units have problems.
func (c *comparison) findLater(compiler *render.Compiler, tree config.Tree, guard config.Guard) (err error) {
	if c.head.Base == nil || len(c.rules) == 0 || len(c.report.Unknown) == 0 {
		return nil
	}
	compiler.Base = nil
	defer func() { compiler.Base = c.head.Base }()
	c.report.Later, err = sync.PreviewLater(c.base, c.head, compiler.Accepted(c.head.Commit, tree), compiler, guard)
	return err
}

// findProblems finds the problems of the second state, with what a change of kinds breaks, and the
// rules that it changes.
func (c *comparison) findProblems() (err error) {
	c.problems, c.before = sinceThen(c.base.Problems, c.head.Problems)
	if !c.base.Held {
		c.rules = config.RuleLines(config.RuleChanges(c.base.Repository, c.head.Repository))
	}
	if c.head.Held || c.base.Held {
		return nil
	}
	if c.impact, err = c.judge(); err != nil {
		return err
	}
	c.problems = append(c.impact.Problems(), c.problems...).Sorted()
	return nil
}

// sinceThen tells problems that are new from those that there were before, on whatever line.
func sinceThen(was, is document.Problems) (since, before document.Problems) {
	key := func(p document.Problem) string {
		return fmt.Sprintf("%s %s %s %s", p.File, p.Unit, p.Code, p.Message)
	}
	known := map[string]bool{}
	for _, p := range was {
		known[key(p)] = true
	}
	for _, p := range is {
		if known[key(p)] {
			before = append(before, p)
		} else {
			since = append(since, p)
		}
	}
	return since, before
}

// tell writes what was found. Its error is the exit code.
func (o *diffOptions) tell(cmd *cobra.Command, c *comparison) error {
	notes := cmd.ErrOrStderr()
	if c.earlier {
		const text = "%[1]s has all of %[2]s, so a merge changes nothing; shown is the way back from %[1]s to %[2]s"
		fmt.Fprintf(notes, "swell: note: "+text+"\n", c.from, c.to)
	}
	if len(c.both) > 0 {
		fmt.Fprintf(notes, "swell: note: changed in %s, too, and shown as %s has them: %s\n", c.from, c.to, document.Some(c.both, 5))
	}
	printRuleChanges(notes, c.from, c.rules, c.head)
	printProblems(notes, c.problems)
	for _, problem := range c.before {
		fmt.Fprintf(notes, "in %s, too: %s\n", c.from, problem)
	}
	if c.report != nil {
		printBaseProblems(notes, c.from, c.base, c.report)
	}
	var err error
	switch {
	case o.output == formatMarkdown:
		err = writeMarkdown(cmd.OutOrStdout(), c.change())
	case c.report != nil:
		err = writeReport(cmd.OutOrStdout(), o.output, c.report, c.plan)
	}
	if err != nil {
		return err
	}
	if c.report == nil {
		if verdict, text := c.verdict(); verdict == report.Good {
			fmt.Fprintf(notes, "swell: %s\n", text)
			return nil
		}
		return exit(exitError)
	}
	fmt.Fprintf(notes, "swell: %s\n", c.change().Summary())
	switch verdict, _ := c.verdict(); {
	case verdict == report.Bad:
		return exit(exitError)
	case len(c.report.Changes) > 0:
		return exit(exitProblems)
	}
	return nil
}

// change is the comparison for a reviewer.
func (c *comparison) change() *report.Change {
	return &report.Change{
		Base: revisionText(c.from, c.base.Commit), Head: revisionText(c.to, c.head.Commit),
		Report: c.report, Problems: c.problems, Before: c.before, BaseHeld: c.mends(), Impact: c.impact, Rules: c.rules, Alone: c.head.Base == nil, Both: c.both, Fork: c.fork,
		Releases: releasesText(c.plan), More: c.command(),
	}
}

// mends says that the fleet's documents have problems in the first state, and none in the second.
func (c *comparison) mends() bool { return c.base.Held && !c.head.Held }

// command shows the whole comparison; empty where one of the two is a folder, which others do
// not have. It names commits: a branch may have any name, and somebody pastes this.
func (c *comparison) command() string {
	if c.base.Commit == "" || c.head.Commit == "" {
		return ""
	}
	return fmt.Sprintf("swell diff %s %s", c.base.Commit.Short(), c.head.Commit.Short())
}

// revisionText names a state, with its commit where it has one.
func revisionText(name string, commit config.Commit) string {
	if commit == "" || strings.HasPrefix(string(commit), name) {
		return name
	}
	return name + " " + commit.Short()
}

// releasesText says how changes are released; empty where none are.
func releasesText(plan *sync.Forecast) string {
	if plan == nil || len(plan.Units) == 0 {
		return ""
	}
	var b strings.Builder
	_ = (&planWriter{f: plan, brief: true, width: pipeWidth}).write(&b) // to memory
	return b.String()
}

// printBaseProblems says why units of BASE could not be compared.
func printBaseProblems(w io.Writer, name string, base *render.Snapshot, r *diff.Report) {
	for _, path := range r.Mended {
		if unit := base.Units.Get(path); unit != nil && len(unit.Problems) > 0 {
			fmt.Fprintf(w, "in %s: %s\n", name, unit.Problems[0])
		}
	}
}

func writeMarkdown(w io.Writer, c *report.Change) error {
	_, err := io.WriteString(w, c.Markdown(report.MaxBytes))
	return err
}

func writeReport(w io.Writer, format string, r *diff.Report, plan *sync.Forecast) error {
	switch format {
	case formatJSON, formatYAML:
		is := struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			*diff.Report
			Releases []sync.UnitForecast `json:"releases,omitempty"`
		}{config.APIVersion, "Diff", r, nil}
		if plan != nil {
			is.Releases = plan.Units
		}
		return writeData(w, format, is)
	case formatName:
		for _, c := range r.Changes {
			if _, err := fmt.Fprintf(w, "%s %s %s\n", c.Action, c.Unit, c.Object); err != nil {
				return err
			}
		}
		return nil
	}
	return writeReportText(w, r, plan, widthOf(w))
}

// writeReportText writes the changes, then how they are released.
func writeReportText(w io.Writer, r *diff.Report, plan *sync.Forecast, width int) error {
	if err := r.Write(w); err != nil || plan == nil || len(plan.Units) == 0 {
		return err
	}
	if _, err := fmt.Fprint(w, "\nreleases, if all goes well\n"); err != nil {
		return err
	}
	return (&planWriter{f: plan, brief: true, indent: 2, width: width}).write(w)
}
