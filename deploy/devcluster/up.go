// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

// startLimit bounds the time from nothing to ready. A start takes seconds; the
// rest is for a machine that is busy with something else.
const startLimit = 5 * time.Minute

// stages is what kwok plays, in kwok's own format.
//
//go:embed stages.yaml
var stages []byte

var errStopped = errors.New("stopped before it was ready")

// up runs the clusters of conf until ctx is done, and writes a line per cluster
// and then "ready" to out. When it returns, no child is left. The error is nil
// only if all were ready and stayed so until ctx was done.
func up(ctx context.Context, conf upConfig, out io.Writer) error {
	dir, lock, err := openDir(conf.Dir, conf.Reset)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := removeKubeconfig(conf.Kubeconfig); err != nil {
		return err
	}
	// alive is done when we are told to stop, and when a child ends.
	alive, fail := context.WithCancelCause(ctx)
	kids, err := newChildren(dir, fail)
	if err != nil {
		return err
	}
	defer kids.stop()
	defer fail(nil) // runs before stop, and has the children killed

	clusters, err := bringUp(alive, dir, conf, kids)
	if err == nil {
		defer os.Remove(conf.Kubeconfig)
		err = announce(conf, kids, clusters, out)
	}
	if err == nil {
		<-alive.Done()
	}
	switch {
	case ctx.Err() != nil && err == nil:
		return nil
	case ctx.Err() != nil:
		return errStopped
	case alive.Err() != nil: // the child that ended first; err only follows from it
		return context.Cause(alive)
	}
	return err
}

// bringUp starts everything, and returns when it is ready or one part failed.
// The children live until ctx is done.
func bringUp(ctx context.Context, dir runDir, conf upConfig, kids *children) ([]*cluster, error) {
	if err := os.WriteFile(dir.stages(), stages, 0o600); err != nil {
		return nil, fmt.Errorf("stages: %w", err)
	}
	if err := writeAuditPolicy(dir, conf.Audit); err != nil {
		return nil, err
	}
	ports, err := freePorts(1 + len(conf.Names))
	if err != nil {
		return nil, err
	}
	etcd, ports := ports[0], ports[1:]
	if err := kids.start(ctx, etcdName, etcdName, etcdArgs(dir, etcd)...); err != nil {
		return nil, err
	}
	if err := awaitEtcd(ctx, etcdURL(etcd)); err != nil {
		return nil, err
	}
	clusters := make([]*cluster, len(conf.Names))
	var group errgroup.Group
	for i, name := range conf.Names {
		group.Go(func() (err error) {
			if clusters[i], err = newCluster(dir, conf, name, etcdURL(etcd), ports[i]); err != nil {
				return err
			}
			return clusters[i].bringUp(ctx, kids)
		})
	}
	return clusters, group.Wait()
}

// bringUp starts the components of one cluster, and returns when it can run a
// pod.
func (c *cluster) bringUp(ctx context.Context, kids *children) error {
	client, err := c.client()
	if err != nil {
		return fmt.Errorf("%s: client: %w", c.Name, err)
	}
	count("control plane")
	start := func(component string, args []string) error {
		return kids.start(ctx, c.process(component), component, args...)
	}
	if err := start(apiserverName, c.apiserverArgs()); err != nil {
		return err
	}
	if err := awaitAPI(ctx, client); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	// Not before: they would wait for the API server in steps of a second.
	if err := errors.Join(
		start(controllerManagerName, c.controllerManagerArgs()),
		start(schedulerName, c.schedulerArgs()),
		start(kwokName, c.kwokArgs()),
	); err != nil {
		return err
	}
	if err := createFixtures(ctx, client); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	if err := awaitPods(ctx, client); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}

// count adds a line to the file in which a test run counts what it starts.
func count(name string) {
	file, err := os.OpenFile(os.Getenv("SWELL_TEST_TALLY"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return // nobody counts
	}
	defer file.Close()
	fmt.Fprintln(file, name)
}

// announce tells the world that all clusters are ready: the files first, for
// whoever waits for one to appear.
func announce(conf upConfig, kids *children, clusters []*cluster, out io.Writer) error {
	if err := kids.writePids(); err != nil {
		return err
	}
	var all []access
	for _, c := range clusters {
		all = append(all, c.access(userAdmin))
	}
	if err := writeKubeconfig(conf.Kubeconfig, all...); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, a := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\n", a.Cluster, a.Server, conf.Kubeconfig)
	}
	fmt.Fprintln(table, "ready")
	if err := table.Flush(); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}
