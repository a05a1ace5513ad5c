// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/checker"
	"github.com/swell-sh/swell/sync/helm"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/sops"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/sync/store"
)

func runCommand() *cobra.Command {
	var file, format string
	var once, empty bool
	cmd := &cobra.Command{
		Use:   "run --config FILE",
		Short: "Follow the monorepo and bring its commits to the clusters",
		Long: `Run the daemon until interrupted: fetch the branch, render and check the changed
units, apply them wave by wave, roll failed releases back, and correct drift on its
schedule.

Interrupting is safe at any moment: the next run continues from there. An interrupt
(SIGINT or SIGTERM) gives running jobs at most 20 seconds to end; a second one ends
the daemon at once. SIGHUP makes it look at Git and read the kubeconfigs now.

With --once, do everything that can be done now, up to the next soak, and print what
still waits.

A commit without any unit is refused: an empty list is more often a mistake than a
wish. With --dangerous-allow-empty, such a commit removes all objects that swell has
in the fleet, after their approval by swell approve.

Exit codes: 0 done, or interrupted; with --once 1 when something failed, is held,
waits for approval or has to be tried again later, such as a Namespace that has not
ended yet; 2 when the daemon could not run.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(cmd.ErrOrStderr(), format)
			if err != nil {
				return err
			}
			daemon, planner, closeAll, err := openDaemon(cmd.Context(), file, empty, log)
			if err != nil {
				return err
			}
			defer closeAll()
			stopServing, err := serveAPI(file, daemon, planner, log)
			if err != nil {
				return err
			}
			defer stopServing()
			defer daemonSignals(log, daemon.Hurry)()
			if !once {
				log.Info("following", "version", versionText())
				return daemon.Run(cmd.Context())
			}
			record, err := daemon.Settle(cmd.Context())
			if err != nil {
				return err
			}
			return summarize(cmd.OutOrStdout(), record, daemon.State())
		},
	}
	configFlag(cmd, &file)
	cmd.Flags().BoolVar(&once, "once", false, "do what can be done now, and end")
	cmd.Flags().BoolVar(&empty, "dangerous-allow-empty", false, "let a commit without any unit remove all objects of the fleet")
	cmd.Flags().StringVar(&format, "log", "text", "format of the log: text or json")
	return cmd
}

func logger(w io.Writer, format string) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: durationsAsText})), nil
	}
	return nil, fmt.Errorf("--log %q: want text or json", format)
}

// durationsAsText writes durations as "1.5s", as the text format does, in place
// of nanoseconds.
func durationsAsText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// readDaemonConfig reads the daemon's configuration; all problems are in the
// error, one a line.
func readDaemonConfig(file string) (*config.Daemon, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, hinted{err, "--config names the daemon's configuration, a document of kind Daemon; see the README"}
	}
	settings, problems := config.ReadDaemon(file, content)
	if len(problems) > 0 {
		return nil, problems
	}
	return settings, nil
}

// openDaemon opens all that a daemon needs. closeAll gives it back.
func openDaemon(ctx context.Context, file string, empty bool, log *slog.Logger) (daemon *sync.Daemon, planner *sync.Planner, closeAll func(), err error) {
	settings, err := readDaemonConfig(file)
	if err != nil {
		return nil, nil, nil, err
	}
	state, err := store.Open(settings.State)
	if err != nil {
		return nil, nil, nil, stateError(err)
	}
	src, kept, err := openCommits(settings)
	if err != nil {
		return nil, nil, nil, errors.Join(err, state.Close())
	}
	closeAll = func() {
		if err := errors.Join(kept.Close(), src.Close(), state.Close()); err != nil {
			log.Error("close", "err", err)
		}
	}
	repo := settings.Repository
	runner := &checker.Runner{Programs: settings.Checkers, Cache: kept}
	daemon, err = sync.Open(sync.Options{Source: src, Path: repo.Path, Store: state, Clusters: settings.Clusters,
		KubeconfigDir: settings.KubeconfigDir, Allow: settings.Allow, Drift: settings.Drift, Operators: settings.API.Operators, Authors: src.Authors, Lease: settings.Lease, Endpoints: settings.Endpoints, Keys: &sops.Keys{Secrets: settings.Secrets}, Guard: &settings.Guard, AllowEmpty: empty, Poll: repo.Poll, Log: log,
		Compiler: render.Compiler{Cache: kept, Version: buildID(), Checkers: runner.Until(ctx), Charts: new(helm.Renderer)}})
	if err != nil {
		closeAll()
		return nil, nil, nil, err
	}
	return daemon, daemon.Planner(revisions(src, repo.Branch)), closeAll, nil
}

// openCommits opens where a daemon has commits, and what it rendered of them.
func openCommits(settings *config.Daemon) (*source.Source, *cache.Cache, error) {
	repo := settings.Repository
	src, err := source.Open(source.Config{
		URL: repo.URL, Branch: repo.Branch, Dir: filepath.Join(settings.State, "git"), AllowRewind: repo.AllowRewind,
		Auth: source.Auth{Username: repo.Username, TokenFile: repo.TokenFile, SSHKeyFile: repo.SSHKeyFile, KnownHostsFile: repo.KnownHostsFile},
	})
	if err != nil {
		return nil, nil, err
	}
	kept, err := cache.Open(filepath.Join(settings.State, "cache"), cacheLimit)
	if err != nil {
		return nil, nil, errors.Join(err, src.Close())
	}
	return src, kept, nil
}

// serveAPI answers operators until stop is called, which is to be before the state is
// closed.
func serveAPI(file string, daemon *sync.Daemon, planner *sync.Planner, log *slog.Logger) (stop func(), err error) {
	settings, err := readDaemonConfig(file)
	if err != nil {
		return nil, err
	}
	beside := daemon.Store.(*store.Store).Beside()
	server, err := serve.Listen(serve.Options{Store: beside, API: settings.API, Wake: daemon.Wake, Planner: planner, Log: log, Version: versionText()})
	if err != nil {
		return nil, errors.Join(err, beside.Close())
	}
	return func() {
		if err := errors.Join(server.Close(), beside.Close()); err != nil {
			log.Error("close", "err", err)
		}
	}, nil
}

func stateError(err error) error {
	if errors.Is(err, store.ErrLocked) {
		return hinted{err, "another swell uses this state; one daemon follows one monorepo"}
	}
	return err
}

// summarize says what a pass did and what is still to come.
func summarize(w io.Writer, r sync.Record, state *rollout.State) error {
	printProblems(w, r.Problems)
	failed := len(r.Problems) > 0 || len(r.Errors) > 0
	for _, err := range r.Errors {
		fmt.Fprintf(w, "error: %v\n", err)
	}
	for _, path := range slices.Sorted(maps.Keys(state.Units)) {
		unit := state.Units[path]
		if unit.Blocked != "" {
			failed = true
			fmt.Fprintf(w, "%s: blocked: %s\n", path, unit.Blocked)
		}
		if unit.Waiting != "" {
			failed = true
			if !strings.Contains(unit.Blocked, unit.Waiting) {
				fmt.Fprintf(w, "%s: %s\n", path, unit.Waiting)
			}
		}
		for _, t := range unit.Targets {
			failed = failed || t.Trouble != rollout.NoTrouble
		}
		if unit.Rollout.Status == rollout.Done && unit.Rollout.Reason == "" {
			continue
		}
		if unit.Rollout.Status != rollout.Progressing && unit.Rollout.Status != rollout.Done {
			failed = true
		}
		fmt.Fprintf(w, "%s: %s: %s\n", path, unit.Rollout.Status, unit.Rollout.Reason)
	}
	fmt.Fprintf(w, "commit %s: %s, %s written\n", cmp.Or(r.Commit.Short(), "not known"), diff.Count(len(state.Units), "unit"),
		diff.Count(r.Objects["created"]+r.Objects["configured"]+r.Objects["deleted"], "object"))
	if failed {
		return exit(exitProblems)
	}
	return nil
}
