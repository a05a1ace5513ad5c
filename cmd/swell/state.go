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
		return withoutConfiguration(err)
	}
	client, err := serve.Dial(cmd.Context(), settings.API.Socket)
	if err == nil {
		defer client.Close()
		if err = ask(client); !isGone(err) {
			return err
		}
	} else if !errors.Is(err, serve.ErrNobody) && !errors.Is(err, serve.ErrSilent) {
		return err
	}
	s, err := openState(file.in, settings)
	if err != nil {
		return err
	}
	defer s.Close()
	client, running, err := awaitDaemon(cmd.Context(), s, settings.API.Socket)
	if err != nil {
		return err
	}
	if client != nil {
		defer client.Close()
		return ask(client)
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

// withoutConfiguration tells that a daemon which runs is reached without its configuration,
// where that has a problem.
func withoutConfiguration(err error) error {
	var other hinted
	if errors.As(err, &other) {
		return err
	}
	return hinted{err, "a daemon that runs goes on with what it read before: --socket, the swell.sock in its state folder, reaches it"}
}

// awaitDaemon waits for a daemon that is at work on the state, and does not answer: one that
// begins or ends has the state's lock for a while. client is nil where none answers by the end
// of [speakPatience]; isSilent says that one has the state all the same.
func awaitDaemon(ctx context.Context, s *store.Store, socket string) (client *serve.Client, isSilent bool, err error) {
	for began := time.Now(); ; {
		running, err := s.InUse()
		if !running || err != nil {
			return nil, false, err
		}
		if client, err = serve.Dial(ctx, socket); err == nil {
			return client, false, nil
		}
		if !errors.Is(err, serve.ErrNobody) || time.Since(began) > speakPatience {
			return nil, true, nil
		}
		select {
		case <-ctx.Done():
			return nil, true, ctx.Err()
		case <-time.After(speakPause):
		}
	}
}

// openState opens the state of the daemon with that configuration for reading.
func openState(in *invocation, settings *config.Daemon) (*store.Store, error) {
	if settings.State == "" {
		err := fmt.Errorf("no daemon answers at %s", in.shown(settings.API.Socket))
		return nil, hinted{err, "without --socket, the state is read that the configuration names"}
	}
	s, err := store.OpenReadOnly(settings.State)
	return s, unreadable(err, in.shown(settings.State))
}

// unreadable says what to do where a state cannot be opened for reading.
func unreadable(err error, state string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return hinted{fmt.Errorf("%s: no state yet", state), "swell run creates it"}
	case errors.Is(err, fs.ErrPermission):
		const way = "without a daemon the state is read, which its own user and root may: sudo -u; a daemon answers spec.api.operators, too"
		return hinted{err, way}
	}
	return err
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
