// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Command simclusters serves simulated clusters on this machine until it is interrupted,
// for a daemon that runs from source. Their objects are in memory and end with it. What a
// simulated cluster does not do stands in the comment of package simulator.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/tabwriter"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/swell-sh/swell/sync/simulator"
	"github.com/swell-sh/swell/sync/simulator/loopback"
)

const usage = `usage: simclusters DIR NAME...

Serves simulated clusters with these names until it is interrupted, and writes
DIR/NAME.yaml, a kubeconfig for each.`

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "simclusters: error: %v\n", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) < 2 {
		return fmt.Errorf("want a folder and names of clusters\n%s", usage)
	}
	dir, names := args[0], args[1:]
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, name := range names {
		server := loopback.Start(simulator.New())
		defer server.Close()
		file := filepath.Join(dir, name+".yaml")
		if err := clientcmd.WriteToFile(*server.Kubeconfig(name), file); err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", name, server.URL(), file)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "ready")
	<-ctx.Done()
	return nil
}
