// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/swell-sh/swell/sync/demo"
)

func demoCommand(in *invocation) *cobra.Command {
	var binary, dir, kubeconfig string
	var contexts []string
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch swell work: three real clusters, a Git repository, eight scenes",
		Long: `Start three Kubernetes control planes on this machine and a Git repository with the
example monorepo, run the daemon, and tell a story: the first sync, a good change, a
bad change, a manual edit, a typing mistake, nothing to do, a site that is masked while
it is down, and a bad change of a kind. Each claim is read back from the API servers.

It needs git and the devcluster binary (make bin/devcluster). Everything is in one
temporary folder and ends with the program. Nothing outside this machine is used.

Exit codes: 0 the story went as told, 2 it did not.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(contexts) != len(demo.Clusters) {
				return fmt.Errorf("--contexts: want %d, for %s, got %d", len(demo.Clusters), strings.Join(demo.Clusters, ", "), len(contexts))
			}
			created := dir == ""
			var err error
			if created {
				dir, err = os.MkdirTemp("", "swell-demo-")
			} else {
				err = os.MkdirAll(in.path(dir), 0o755)
			}
			if err != nil {
				return err
			}
			if created && !keep {
				defer os.RemoveAll(dir)
			}
			out := cmd.OutOrStdout()
			set := demo.Settings{Binary: in.path(binary), Dir: in.path(dir), Kubeconfig: in.path(kubeconfig), Contexts: contexts, Keep: keep}
			if set.Live = isTerminal(out); set.Live {
				out = raw(out)
			}
			return demo.Run(cmd.Context(), out, set)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "use running clusters of a devcluster (only there do images with the tag broken not start)")
	cmd.Flags().StringSliceVar(&contexts, "contexts", demo.Clusters, "contexts of --kubeconfig for sas-1, vla-1 and myt-1")
	cmd.Flags().StringVar(&binary, "devcluster", "", "the devcluster binary (default: beside swell, in bin, or in PATH)")
	cmd.Flags().StringVar(&dir, "dir", "", "folder for everything (default: a temporary one)")
	cmd.Flags().BoolVar(&keep, "keep", false, "after the story, keep everything running until interrupted, and keep the folder")
	return cmd
}
