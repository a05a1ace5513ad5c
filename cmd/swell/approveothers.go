// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/store"
)

const (
	// othersPatience is how long clusters may take to say what a deletion takes along.
	othersPatience = 10 * time.Second
	// namedKinds is how many kinds of such objects are named.
	namedKinds = 4
)

// writeOthers says of each Namespace and definition of a plan which objects of others go with
// it: the clusters are asked when somebody is about to approve that.
func writeOthers(ctx context.Context, out io.Writer, file configPath, deletions []store.Deletion) {
	containers := slices.DeleteFunc(slices.Clone(deletions), func(d store.Deletion) bool { return d.Forget || !d.ID.IsContainer() })
	if len(containers) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, othersPatience)
	defer cancel()
	ask := othersAsked(file)
	for _, d := range containers {
		fmt.Fprintf(out, "%s on %s takes along %s\n", d.ID, d.Target, visible(ask(ctx, d)))
	}
}

// othersAsked makes what asks clusters, each over one connection.
func othersAsked(file configPath) func(context.Context, store.Deletion) string {
	settings, err := readDaemonConfig(file)
	var repository string
	if err == nil {
		repository, err = repositoryOf(file.in, settings)
	}
	conns := map[string]*apply.Cluster{}
	return func(ctx context.Context, d store.Deletion) string {
		if err != nil {
			return unknownOthers(err)
		}
		name := d.Target.Cluster()
		if conns[name] == nil {
			conn, err := fleet.Connect(ctx, settings, repository, name)
			if err != nil {
				return unknownOthers(err)
			}
			conns[name] = conn
		}
		counts, unknown, err := conns[name].Others(ctx, d.ID)
		if err != nil {
			return unknownOthers(err)
		}
		return othersText(counts, unknown)
	}
}

func unknownOthers(err error) string { return "what else is in it, which is unknown: " + err.Error() }

// repositoryOf is the name by which the objects of the daemon's monorepo are known.
func repositoryOf(in *invocation, settings *config.Daemon) (name string, err error) {
	s, err := openState(in, settings)
	if err != nil {
		return "", err
	}
	name, err = s.Repository()
	return name, errors.Join(err, s.Close())
}

// othersText counts objects, those of the most frequent kinds first.
func othersText(counts map[string]int, unknown []string) string {
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	all, parts := 0, make([]string, 0, namedKinds)
	for i, kind := range kinds {
		all += counts[kind]
		if i < namedKinds {
			parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
		}
	}
	text := "nothing of others"
	if all > 0 {
		text = document.Count(all, "object") + " of others: " + strings.Join(parts, ", ")
		if more := len(kinds) - namedKinds; more > 0 {
			text += fmt.Sprintf(" and %s", document.Count(more, "more kind"))
		}
	}
	if len(unknown) > 0 {
		text += "; it is not known what there is of " + document.Some(unknown, namedKinds)
	}
	return text
}
