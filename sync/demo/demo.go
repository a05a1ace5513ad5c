// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package demo is the demonstration: three real clusters, the example monorepo, and a
// story in which each claim is read back from the API servers.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/devcluster"
)

// Clusters are the names of the clusters of the example monorepo.
var Clusters = []string{"sas-1", "vla-1", "myt-1"}

// Settings of a demonstration.
type Settings struct {
	Binary     string   // the devcluster's; empty: beside swell, in bin, or in PATH
	Dir        string   // for everything
	Kubeconfig string   // of clusters that run already; empty: new ones are started
	Contexts   []string // one for each of Clusters
	Keep       bool     // after the story, everything runs until ctx ends
	Live       bool     // out is a terminal, on which a picture can be drawn again and again

	Timeout time.Duration // of waves; zero: 15 s, the patience of an audience
}

// Run sets the stage, tells the story and clears up.
func Run(ctx context.Context, out io.Writer, set Settings) error { return run(ctx, out, set, scenes) }

func run(ctx context.Context, out io.Writer, set Settings, scenes []scene) error {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	say := &narrator{out: out, live: set.Live, color: set.Live && os.Getenv("NO_COLOR") == ""}
	say.title("Three clusters and a monorepo")
	clusters, err := stage(ctx, say, set)
	if err != nil {
		return err
	}
	defer clusters.Stop()
	timeout := cmp.Or(set.Timeout, Audience)
	repo, err := NewRepository(ctx, set.Dir, timeout)
	if err != nil {
		return err
	}
	s := &story{narrator: say, repo: repo, clusters: map[string]*Live{}, site: newSite(), patience: patience * timeout}
	defer s.site.Close()
	roles, err := repo.roles()
	if err != nil {
		return err
	}
	access := map[string]config.ClusterAccess{}
	for i, name := range Clusters {
		live, err := Connect(clusters, set.Contexts[i])
		if err != nil {
			return err
		}
		s.clusters[name] = live
		administrator := config.ClusterAccess{Name: name, Kubeconfig: clusters.Kubeconfig, Context: set.Contexts[i]}
		to, err := live.admit(ctx, roles, administrator, set.Dir)
		if err != nil {
			return err
		}
		if name == darkSite {
			if to, err = s.through(to, set.Dir); err != nil {
				return err
			}
			defer s.dark.Close()
		}
		access[name] = to
	}
	if err := s.claimRights(ctx, access); err != nil {
		return err
	}
	stop, err := s.startDaemon(ctx, set.Dir, access)
	if err != nil {
		return err
	}
	err = errors.Join(s.tell(ctx, scenes), stop())
	if err != nil {
		return err
	}
	say.title("That is all")
	say.line("%d claims were read back from the API servers; it took %s", s.claims, time.Since(began).Round(time.Second))
	if set.Keep {
		say.line("still running; interrupt to end")
		<-ctx.Done()
	}
	return nil
}

// stage starts the clusters, or takes those that are there.
func stage(ctx context.Context, say *narrator, set Settings) (*devcluster.Clusters, error) {
	if set.Kubeconfig != "" {
		say.line("using the contexts %s of %s", strings.Join(set.Contexts, ", "), set.Kubeconfig)
		return devcluster.Running(set.Kubeconfig), nil
	}
	binary, err := devcluster.Find(set.Binary)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	say.line("starting three Kubernetes control planes ...")
	clusters, err := devcluster.Start(ctx, binary, filepath.Join(set.Dir, "clusters"), set.Contexts)
	if err != nil {
		return nil, err
	}
	say.line("%s are ready after %s; kubectl --kubeconfig %s --context %s get pods -A",
		strings.Join(set.Contexts, ", "), time.Since(began).Round(time.Second/10), clusters.Kubeconfig, set.Contexts[0])
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
