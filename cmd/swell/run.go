// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/sync/store"
)

func runCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var format string
	var once, empty bool
	cmd := &cobra.Command{
		Use:   "run --config FILE",
		Short: "Follow the monorepo and bring its commits to the clusters",
		Long: `Run the daemon until interrupted: fetch the branch, render and check the changed
units, apply them wave by wave, roll failed releases back, and correct drift on its
schedule.

Interrupting is safe at any moment: the next run continues from there. An interrupt
(SIGINT or SIGTERM) gives running jobs at most 20 seconds to end; a second one ends
the daemon at once.

A changed FILE takes effect while it runs, within some seconds, or at once with SIGHUP,
which also makes it look at Git and read the kubeconfigs. Another spec.state takes a
restart. A FILE that cannot be taken changes nothing: the log and swell status say why.

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
			p, err := openProcess(file, empty, log)
			if err != nil {
				return err
			}
			defer p.close()
			if !once {
				return p.follow(cmd.Context())
			}
			record, state, err := p.once(cmd.Context())
			if err != nil {
				return err
			}
			return summarize(cmd.OutOrStdout(), record, state)
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
func readDaemonConfig(file configPath) (*config.Daemon, error) {
	if file.socket != "" { // of a daemon whose configuration cannot be read, or is elsewhere
		return &config.Daemon{API: config.API{Socket: file.in.path(file.socket)}}, nil
	}
	is, err := readConfiguration(file)
	return is.Daemon, err
}

// openCommits opens where a daemon has commits, and what it rendered of them. The branch must
// go on from the commit that was followed, where one was.
func openCommits(settings *config.Daemon, followed config.Commit) (*source.Source, *cache.Cache, error) {
	repo := settings.Repository
	src, err := source.Open(source.Config{
		URL: repo.URL, Branch: repo.Branch, Dir: filepath.Join(settings.State, "git"), AllowRewind: repo.AllowRewind, Followed: followed,
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

func stateError(err error) error {
	switch {
	case errors.Is(err, store.ErrLocked):
		return hinted{err, "another swell uses this state; one daemon follows one monorepo"}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return hinted{fmt.Errorf("spec.state: %w", err), "it is a folder that the user who runs swell can write"}
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
	fmt.Fprintf(w, "commit %s: %s, %s written\n", cmp.Or(r.Commit.Short(), "not known"), document.Count(len(state.Units), "unit"),
		document.Count(r.Objects["created"]+r.Objects["configured"]+r.Objects["deleted"], "object"))
	if failed {
		return exit(exitProblems)
	}
	return nil
}
