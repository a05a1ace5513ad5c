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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/devcluster"
)

// demoClusters are the clusters of the example monorepo.
var demoClusters = []string{"sas-1", "vla-1", "myt-1"}

func demoCommand() *cobra.Command {
	var binary, dir, kubeconfig string
	var contexts []string
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
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(contexts) != len(demoClusters) {
				return fmt.Errorf("--contexts: want %d, for %s, got %d", len(demoClusters), strings.Join(demoClusters, ", "), len(contexts))
			}
			created := dir == ""
			var err error
			if created {
				dir, err = os.MkdirTemp("", "swell-demo-")
			} else {
				err = os.MkdirAll(dir, 0o755)
			}
			if err != nil {
				return err
			}
			if created && !keep {
				defer os.RemoveAll(dir)
			}
			return demo(cmd.Context(), cmd.OutOrStdout(), demoSettings{binary, dir, kubeconfig, contexts, keep})
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "use clusters that run already (of a devcluster: only there does the tag broken not start)")
	cmd.Flags().StringSliceVar(&contexts, "contexts", demoClusters, "contexts of --kubeconfig for sas-1, vla-1 and myt-1")
	cmd.Flags().StringVar(&binary, "devcluster", "", "the devcluster binary (default: beside swell, in bin, or in PATH)")
	cmd.Flags().StringVar(&dir, "dir", "", "folder for everything (default: a temporary one)")
	cmd.Flags().BoolVar(&keep, "keep", false, "when the story is told, keep all running until interrupted, and keep the folder")
	return cmd
}

type demoSettings struct {
	binary, dir, kubeconfig string
	contexts                []string
	keep                    bool
}

// demo sets the stage, tells the story and clears up.
func demo(ctx context.Context, out io.Writer, set demoSettings) error {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	say := &narrator{out: out, live: isTerminal(out), color: isTerminal(out) && os.Getenv("NO_COLOR") == ""}
	if say.live {
		say.out = raw(out)
	}
	say.title("Three clusters and a monorepo")
	clusters, err := demoStage(ctx, say, set)
	if err != nil {
		return err
	}
	defer clusters.Stop()
	repo, err := newDemoRepository(ctx, set.dir)
	if err != nil {
		return err
	}
	s := &story{narrator: say, repo: repo, clusters: map[string]*live{}}
	access := map[string]config.ClusterAccess{}
	for i, name := range demoClusters {
		access[name] = config.ClusterAccess{Name: name, Kubeconfig: clusters.Kubeconfig, Context: set.contexts[i]}
		if s.clusters[name], err = connectLive(clusters, set.contexts[i]); err != nil {
			return err
		}
	}
	stop, err := s.startDaemon(ctx, set.dir, access)
	if err != nil {
		return err
	}
	err = errors.Join(s.tell(ctx), stop())
	if err != nil {
		return err
	}
	say.title("That is all")
	say.line("%d claims were read back from the API servers; it took %s", s.claims, time.Since(began).Round(time.Second))
	if set.keep {
		say.line("still running; interrupt to end")
		<-ctx.Done()
	}
	return nil
}

// demoStage starts the clusters, or takes those that are there.
func demoStage(ctx context.Context, say *narrator, set demoSettings) (*devcluster.Clusters, error) {
	if set.kubeconfig != "" {
		say.line("using the contexts %s of %s", strings.Join(set.contexts, ", "), set.kubeconfig)
		return devcluster.Running(set.kubeconfig), nil
	}
	binary, err := devcluster.Find(set.binary)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	say.line("starting three Kubernetes control planes ...")
	clusters, err := devcluster.Start(ctx, binary, filepath.Join(set.dir, "clusters"), set.contexts)
	if err != nil {
		return nil, err
	}
	say.line("%s are ready after %s; kubectl --kubeconfig %s --context %s get pods -A",
		strings.Join(set.contexts, ", "), time.Since(began).Round(time.Second/10), clusters.Kubeconfig, set.contexts[0])
	return clusters, nil
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
