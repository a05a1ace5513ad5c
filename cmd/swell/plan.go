// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/source"
)

func planCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:   "plan [REV] --config FILE",
		Short: "Show what a commit would do if it were taken now, wave by wave, without doing it",
		Long: `Show what would become of the fleet if a commit were taken now: the units that start,
their waves with targets, soaks and gates, who may approve what, the earliest times, what
holds them now, the deletions that wait for approval, and the units that stay as they are,
and why. The daemon's own planner makes it, on a copy of the daemon's state. It supposes
that all goes well: objects are accepted and healthy at once, and gates say yes.

REV is a branch, a tag or a commit of the clone that the current folder is in, or of the
repository that the daemon follows, which must have the commit in both cases. Without REV
it is the branch that the daemon follows.

A plan has a digest, of the bundles of all units that change and of the deletions. swell
approve --plan DIGEST approves all that it names; it is refused when the plan has become
another one.

Exit codes: 0 nothing would change, 1 something would, 2 there is no such commit, nothing
would be taken from it, or the state could not be read.`,
		Example: `  swell plan
  swell plan my-branch -o json
  swell approve --plan 3fa9c1d2`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return asking(cmd, file, func(t teller) error {
				f, err := planOf(cmd.Context(), in, t, args)
				if err != nil {
					return err
				}
				if output != formatText {
					err = writeData(cmd.OutOrStdout(), output, struct {
						APIVersion string `json:"apiVersion"`
						Kind       string `json:"kind"`
						*sync.Forecast
					}{config.APIVersion, "Plan", f})
				} else {
					err = (&planWriter{f: f, all: all, width: widthOf(cmd.OutOrStdout())}).write(cmd.OutOrStdout())
				}
				switch {
				case err != nil:
					return err
				case f.Refused != "":
					return exit(exitError)
				case len(f.Units) > 0:
					return exit(exitProblems)
				}
				return nil
			})
		},
	}
	daemonFlags(cmd, &file)
	outputFlag(cmd, &output, formatText, formatJSON, formatYAML)
	cmd.Flags().BoolVar(&all, "all", false, "show every unit and every target by name")
	return cmd
}

// planOf asks for the plan of a revision: as the clone around the current folder knows it,
// or else as the daemon does.
func planOf(ctx context.Context, in *invocation, t teller, args []string) (*sync.Forecast, error) {
	if len(args) == 0 {
		return t.Plan(ctx, "")
	}
	if src, err := source.OpenLocal(in.path(".")); err == nil {
		commit, err := src.Resolve(args[0])
		_ = src.Close() // it was only read
		if err == nil {
			f, err := t.Plan(ctx, string(commit))
			if !isUnknown(err) {
				return f, err
			}
		}
	}
	return t.Plan(ctx, args[0])
}

func isUnknown(err error) bool {
	var theirs *serve.Error
	return errors.As(err, &theirs) && theirs.Status == http.StatusNotFound
}

// revisions finds the commits of a daemon's repository.
func revisions(src *source.Source, branch string) func(string) (config.Commit, error) {
	return func(rev string) (config.Commit, error) {
		switch {
		case rev != "":
			return src.Resolve(rev)
		case branch != "":
			return src.Resolve("refs/heads/" + branch)
		}
		return src.Resolve("HEAD")
	}
}

// planners opens what makes plans where no daemon does.
func planners(settings *config.Daemon) func() (*sync.Planner, func(), error) {
	return func() (*sync.Planner, func(), error) {
		src, kept, err := openCommits(settings, "")
		if err != nil {
			return nil, nil, err
		}
		done := func() {
			_ = kept.Close() // nothing is lost with it
			_ = src.Close()
		}
		return &sync.Planner{Resolve: revisions(src, settings.Repository.Branch), Commits: src, Authors: src.Authors, Operators: settings.API.Operators,
			Path: settings.Repository.Path, Guard: settings.Guard, Cache: kept, Version: buildID(), Now: time.Now}, done, nil
	}
}

// approveWholePlan approves all that the plan of a commit names.
func approveWholePlan(cmd *cobra.Command, file configPath, digits string, args []string, yes bool) error {
	if len(digits) < fewestDigits {
		return fmt.Errorf("--plan %q: want at least %d digits", digits, fewestDigits)
	}
	return asking(cmd, file, func(t teller) error {
		f, err := planOf(cmd.Context(), file.in, t, args)
		if err != nil {
			return err
		}
		if !hasPrefixFold(string(f.Digest), digits) {
			return hinted{fmt.Errorf("plan %q: the plan of commit %s is now %s", digits, f.Commit.Short(), f.Digest.Short()),
				"swell plan " + f.Commit.Short() + " shows it; the plan of another commit takes its REV: swell approve --plan PLAN REV"}
		}
		if err := (&planWriter{f: f, width: widthOf(cmd.OutOrStdout())}).write(cmd.OutOrStdout()); err != nil {
			return err
		}
		if err := confirm(cmd, yes, "Approve all that waits for it?"); err != nil {
			return err
		}
		return approvePlanOf(cmd, file, serve.PlanApproval{Digest: f.Digest, Commit: f.Commit})
	})
}

func approvePlanOf(cmd *cobra.Command, file configPath, a serve.PlanApproval) error {
	settings, err := readDaemonConfig(file)
	if err != nil {
		return err
	}
	done, _, err := speak(cmd.Context(), settings,
		func(c *serve.Client) (serve.PlanApproved, error) { return c.ApprovePlan(cmd.Context(), a) },
		func() (done serve.PlanApproved, err error) {
			s, err := openState(file.in, settings)
			if err != nil {
				return done, err
			}
			defer s.Close()
			return serve.View{Store: s, Planner: planners(settings)}.ApprovePlan(cmd.Context(), a, whoami(file.in, settings), time.Now(), alone(settings))
		})
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "swell: approved: plan %s, %s\n", a.Digest.Short(), approvedText(done.Gates, done.Deletions))
	return nil
}
