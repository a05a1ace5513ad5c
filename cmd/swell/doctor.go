// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	gosync "sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/fleet"
)

// finding is what swell doctor has found of one thing.
type finding struct {
	Check  string  `json:"check"`           // kernel, sandbox, configuration, credential, disk, cluster, clock
	About  string  `json:"about,omitempty"` // the file, folder or cluster; empty: this machine
	Status verdict `json:"status"`
	Found  string  `json:"found"`
	Advice string  `json:"advice,omitempty"` // what to do; empty where nothing is to be done
}

type verdict string

// With fail swell cannot do its work. With warn it can, and something is weaker than it could be.
const (
	verdictOK   verdict = "ok"
	verdictWarn verdict = "warn"
	verdictFail verdict = "fail"
)

func doctorCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var output string
	cmd := &cobra.Command{
		Use:   "doctor --config FILE",
		Short: "Look at what swell needs of this machine and of its clusters, and say what to do",
		Long: `Look at what the daemon needs, and print a line for each thing: ok, warn or fail, with
what to do about it. Run it as the user of the daemon, where the daemon runs.

  kernel      new enough for the sandbox
  sandbox     which guards programs of Checkers and Helm charts have, and which are missing
  credential  each file that the configuration names: whether it can be read, and by whom else
  disk        room for the state
  cluster     whether it answers, and whether swell knows its version of Kubernetes
  clock       whether it goes as those of the clusters do

Without a configuration, only the kernel and the sandbox are looked at. It changes nothing, and
prints nothing of a credential.

Exit codes: 0 nothing fails, 1 something does, 2 it could not look.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := examination{in: in, file: file}.all(cmd.Context())
			if err := findingListing(found).write(cmd.OutOrStdout(), output); err != nil {
				return err
			}
			if slices.ContainsFunc(found, func(f finding) bool { return f.Status == verdictFail }) {
				return exit(exitProblems)
			}
			return cmd.Context().Err()
		},
	}
	configFlag(cmd, &file)
	outputFlag(cmd, &output, listingFormats...)
	return cmd
}

func findingListing(found []finding) *listing {
	l := &listing{kind: "FindingList", columns: heads("CHECK", "ABOUT", "STATUS", "FOUND")}
	for i := range found {
		f := &found[i]
		text := f.Found
		if f.Advice != "" {
			text += "; " + f.Advice
		}
		l.add(f, f.Check+"/"+f.About, f.Check, orDash(f.About), string(f.Status), text)
	}
	return l
}

// examination is one look at everything.
type examination struct {
	in   *invocation
	file configPath
}

func (e examination) all(ctx context.Context) []finding {
	settings, noSettings := e.settings()
	found := []finding{judgeKernel(kernel()), e.sandbox(settings)}
	if settings == nil {
		return append(found, noSettings)
	}
	found = append(found, e.credentials(settings)...)
	found = append(found, e.disk(settings))
	return append(found, e.clusters(ctx, settings)...)
}

// settings are nil where there are none, for the reason that is found.
func (e examination) settings() (*config.Daemon, finding) {
	configuration, err := readConfiguration(e.file)
	f := finding{Check: "configuration", About: e.file.name, Status: verdictFail}
	switch {
	case err == nil:
		return configuration.Daemon, finding{}
	case !e.file.named && errors.Is(err, fs.ErrNotExist):
		f.Status, f.Found = verdictWarn, "there is none in this folder"
		f.Advice = "--config names it; without it, only this machine is looked at"
	default:
		f.Found, f.Advice = err.Error(), hintOf(err)
	}
	return nil, f
}

// clusters asks all clusters at a time.
func (e examination) clusters(ctx context.Context, settings *config.Daemon) (found []finding) {
	names, err := fleet.Named(settings)
	if err != nil {
		found = append(found, finding{Check: "cluster", Status: verdictFail, Found: e.in.named(err).Error(),
			Advice: "spec.kubeconfigDir is a folder that this user can read"})
	}
	answers := make([]clusterAnswer, len(names))
	var all gosync.WaitGroup
	for i, name := range names {
		all.Go(func() { answers[i] = askCluster(ctx, settings, name) })
	}
	all.Wait()
	for _, a := range answers {
		found = append(found, a.judge())
	}
	if len(names) == 0 && err == nil {
		found = append(found, finding{Check: "cluster", Status: verdictWarn, Found: "the configuration names none",
			Advice: "spec.clusters and spec.kubeconfigDir say how to reach them"})
	}
	return append(found, judgeClock(answers))
}

// clusterAnswer is what a cluster said of itself.
type clusterAnswer struct {
	name    string
	version string // of Kubernetes
	// ahead is how much this machine's clock is ahead of the cluster's, by a second at the most
	// too much; hasClock says that the cluster told its own.
	ahead    time.Duration
	hasClock bool
	err      error
}

// doctorPatience is how long a cluster may take in all: no longer than the daemon waits for an answer.
const doctorPatience = 15 * time.Second

func askCluster(ctx context.Context, settings *config.Daemon, name string) clusterAnswer {
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	conn, err := fleet.Connect(ctx, settings, "swell", name) // no object is looked for, so any monorepo does
	if err != nil {
		return clusterAnswer{name: name, err: err}
	}
	began := time.Now()
	version, err := conn.Version(ctx)
	a := clusterAnswer{name: name, version: version.Kubernetes, err: err, hasClock: err == nil && !version.Clock.IsZero()}
	if a.hasClock {
		a.ahead = began.Sub(version.Clock)
	}
	return a
}

// judgeClock compares this machine's clock with that of the cluster from which it differs most.
func judgeClock(answers []clusterAnswer) finding {
	var worst clusterAnswer
	for _, a := range answers {
		if a.hasClock && (!worst.hasClock || a.ahead.Abs() > worst.ahead.Abs()) {
			worst = a
		}
	}
	f := finding{Check: "clock", About: worst.name, Status: verdictOK}
	apart := worst.ahead.Abs().Round(time.Second)
	switch {
	case !worst.hasClock:
		f.Status, f.Found, f.Advice = verdictWarn, "no cluster told the time", "compare this machine's clock with another one"
		return f
	case apart <= clockTolerance:
		f.Found = "as those of the clusters"
		return f
	case worst.ahead > 0:
		f.Found = apart.String() + " ahead of the cluster's"
	default:
		f.Found = apart.String() + " behind the cluster's"
	}
	f.Status, f.Advice = verdictWarn, "have a time service set the clock of this machine, or that of the cluster's control plane"
	if apart > clockBound {
		f.Status = verdictFail
	}
	return f
}

const (
	// clockTolerance has room for a slow answer: servers tell the time in whole seconds.
	clockTolerance = 5 * time.Second
	// clockBound is the step of the clock that the daemon tells of. Windows, schedules, tokens and
	// certificates are wrong by as much.
	clockBound = time.Minute
)

func worse(a, b verdict) verdict {
	order := []verdict{verdictOK, verdictWarn, verdictFail}
	return order[max(slices.Index(order, a), slices.Index(order, cmp.Or(b, verdictOK)))]
}
