// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/status"
	"github.com/swell-sh/swell/sync/store"
)

// teller answers what commands ask: the daemon or, where none runs, its state.
type teller interface {
	Status(ctx context.Context, unit string) (serve.Status, error)
	Units(ctx context.Context, unit string) ([]status.Unit, error)
	Rollouts(ctx context.Context, place string, all bool) ([]status.UnderWay, error)
	Describe(ctx context.Context, unit string) (status.Description, error)
	Objects(ctx context.Context, unit string) ([]serve.Object, error)
	Inventory(ctx context.Context, unit, target string) (serve.Inventory, error)
	Drift(ctx context.Context, unit string) ([]serve.Drifted, error)
	Targets(ctx context.Context, unit string) ([]serve.TargetCount, error)
	History(ctx context.Context, q serve.Query) ([]store.Recorded, error)
	Approvals(ctx context.Context) (serve.Approvals, error)
	Plan(ctx context.Context, rev string) (*sync.Forecast, error)
	Retriable(ctx context.Context) ([]rollout.Retriable, error)
	Orders(ctx context.Context) (serve.Orders, error)
}

var (
	_ teller = serve.View{}
	_ teller = (*serve.Client)(nil)
)

// asking runs a command that asks. Where it is the state that answers, it says so.
func asking(cmd *cobra.Command, file configPath, ask func(teller) error) error {
	settings, err := readDaemonConfig(file)
	if err != nil {
		return err
	}
	client, err := serve.Dial(cmd.Context(), settings.API.Socket)
	if err == nil {
		defer client.Close()
		if err = ask(client); !isGone(err) {
			return err
		}
	} else if !errors.Is(err, serve.ErrNobody) {
		return err
	}
	s, err := openState(file.in, settings)
	if err != nil {
		return err
	}
	defer s.Close()
	running, err := isSilent(cmd.Context(), s)
	if err != nil {
		return err
	}
	err = ask(serve.View{Store: s, Planner: planners(settings), Silent: running})
	var code exit
	if err != nil && !errors.As(err, &code) {
		return err
	}
	note := "the daemon is not running; this is the last recorded state"
	if running {
		note = "the daemon does not answer at " + file.in.shown(settings.API.Socket) + "; this is the last recorded state"
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "swell: "+note)
	return err
}

// silentFor is how long a state has to be in use for a daemon that does not answer. One that
// ends, and a process that is being started, hold the lock for a moment more.
const silentFor = time.Second

// isSilent says that a daemon is at work on a state, and goes on to be.
func isSilent(ctx context.Context, s *store.Store) (bool, error) {
	for began := time.Now(); ; {
		running, err := s.InUse()
		if !running || err != nil || time.Since(began) > silentFor {
			return running, err
		}
		select {
		case <-ctx.Done():
			return running, ctx.Err()
		case <-time.After(silentFor / 10):
		}
	}
}

// openState opens the state of the daemon with that configuration for reading.
func openState(in *invocation, settings *config.Daemon) (*store.Store, error) {
	s, err := store.OpenReadOnly(settings.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hinted{fmt.Errorf("%s: no state yet", in.shown(settings.State)), "swell run creates it"}
	}
	return s, err
}

// whoami is who gives an order without a daemon, for the history: the user of this process,
// and who became that by sudo.
func whoami(in *invocation, settings *config.Daemon) serve.Who {
	name := in.getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if real := in.getenv("SUDO_USER"); real != "" && real != name {
		return serve.AsRoot(settings.API, real, name)
	}
	return serve.Local(settings.API, orDash(name))
}
