// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/swell-sh/swell/sync/devcluster"
)

// demoClusters are the clusters of the example monorepo.
var demoClusters = []string{"sas-1", "vla-1", "myt-1"}

func demoCommand() *cobra.Command {
	var binary, dir string
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch swell work: three real clusters, a Git repository, five commits",
		Long: `Start three Kubernetes control planes on this machine and a Git repository with the
example monorepo, run the daemon, and tell a story in five commits: the first
sync, a good change, a bad one, somebody's edit, a typing mistake. What is claimed
is read back from the API servers.

It needs git and the devcluster binary (make bin/devcluster). Everything is in one
temporary folder and ends with the program; nothing outside this machine is used.

Exit codes: 0 the story went as told, 2 it did not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := devcluster.Find(binary)
			if err != nil {
				return err
			}
			if dir == "" {
				if dir, err = os.MkdirTemp("", "swell-demo-"); err != nil {
					return err
				}
			} else if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if !keep {
				defer os.RemoveAll(dir)
			}
			return demo(cmd.Context(), cmd.OutOrStdout(), found, dir, keep)
		},
	}
	cmd.Flags().StringVar(&binary, "devcluster", "", "the devcluster binary (default: beside swell, in bin, or in PATH)")
	cmd.Flags().StringVar(&dir, "dir", "", "folder for everything (default: a temporary one)")
	cmd.Flags().BoolVar(&keep, "keep", false, "when the story is told, keep all running until interrupted, and keep the folder")
	return cmd
}

// demo sets the stage, tells the story and clears up.
func demo(ctx context.Context, out io.Writer, binary, dir string, keep bool) (err error) {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	say := &narrator{out: out, live: isTerminal(out), color: isTerminal(out) && os.Getenv("NO_COLOR") == ""}
	say.title("Three clusters and a monorepo")
	say.line("starting three Kubernetes control planes ...")
	clusters, err := devcluster.Start(ctx, binary, filepath.Join(dir, "clusters"), demoClusters)
	if err != nil {
		return err
	}
	defer clusters.Stop()
	say.line("%s are ready after %s; kubectl --kubeconfig %s --context %s get pods -A",
		"sas-1, vla-1 and myt-1", time.Since(began).Round(time.Second/10), clusters.Kubeconfig, demoClusters[0])
	repo, err := newDemoRepository(ctx, dir)
	if err != nil {
		return err
	}
	s := &story{narrator: say, repo: repo, clusters: map[string]*live{}}
	for _, name := range demoClusters {
		if s.clusters[name], err = connectLive(clusters, name); err != nil {
			return err
		}
	}
	stop, err := s.startDaemon(ctx, dir, clusters.Kubeconfig)
	if err != nil {
		return err
	}
	err = errors.Join(s.tell(ctx), stop())
	if err != nil {
		return err
	}
	say.title("That is all")
	say.line("%d claims were read back from the API servers; it took %s", s.claims, time.Since(began).Round(time.Second))
	if keep {
		say.line("still running; interrupt to end")
		<-ctx.Done()
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// claim counts a thing that was read back, and says it; ok false is a failure
// of the demonstration.
func (s *story) claim(ok bool, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if !ok {
		return fmt.Errorf("the demonstration failed: it is not so that %s", text)
	}
	s.claims++
	s.line("  %s %s", s.mark(), text)
	return nil
}
