// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/store"
)

const (
	// speakPatience is how long a daemon that starts or ends may take to answer.
	speakPatience = 10 * time.Second
	speakPause    = 200 * time.Millisecond
)

// speak tells the daemon something or, where none runs, writes it to the state under the
// state's lock. running says which it was. Both may be tried more than once.
func speak[T any](ctx context.Context, settings *config.Daemon, tell func(*serve.Client) (T, error), write func() (T, error)) (value T, running bool, err error) {
	for began := time.Now(); ; {
		client, dialled := serve.Dial(ctx, settings.API.Socket)
		if dialled == nil {
			value, err = tell(client)
			_ = client.Close()
			if !isGone(err) {
				return value, true, err
			}
			dialled = err
		} else if !errors.Is(dialled, serve.ErrNobody) {
			return value, false, dialled
		}
		if value, err = write(); !errors.Is(err, store.ErrLocked) {
			return value, false, err
		}
		if time.Since(began) > speakPatience {
			return value, false, hinted{fmt.Errorf("a daemon runs, and does not answer: %w", dialled), "it may be starting or ending: try again"}
		}
		select {
		case <-ctx.Done():
			return value, false, ctx.Err()
		case <-time.After(speakPause):
		}
	}
}

// isGone says whether an error means that the daemon ended in the middle of it.
func isGone(err error) bool {
	for _, gone := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED, fs.ErrNotExist} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// giveOrder gives an order, and says what became of it.
func giveOrder(cmd *cobra.Command, file configPath, r serve.Request) (given serve.Given, running bool, err error) {
	settings, err := readDaemonConfig(file)
	if err != nil {
		return given, false, withoutConfiguration(err)
	}
	return speak(cmd.Context(), settings,
		func(c *serve.Client) (serve.Given, error) { return c.Give(cmd.Context(), r) },
		func() (given serve.Given, err error) {
			s, err := openState(file.in, settings)
			if err != nil {
				return given, err
			}
			given, err = serve.View{Store: s}.Prepare(r, whoami(file.in, settings), time.Now())
			if err := errors.Join(err, s.Close()); err != nil || r.DryRun {
				return given, err
			}
			prepared := given
			err = store.Alone(cmd.Context(), settings.State, func(tx *store.Tx) (err error) {
				given, err = serve.Give(tx, prepared, r.IdempotencyKey)
				return err
			})
			return given, err
		})
}

// judge approves or rejects a plan or a gate.
func judge(cmd *cobra.Command, file configPath, j serve.Judge) (done serve.Judgement, err error) {
	settings, err := readDaemonConfig(file)
	if err != nil {
		return done, err
	}
	done, _, err = speak(cmd.Context(), settings,
		func(c *serve.Client) (serve.Judgement, error) { return c.Judge(cmd.Context(), j) },
		func() (done serve.Judgement, err error) {
			s, err := openState(file.in, settings)
			if err != nil {
				return done, err
			}
			defer s.Close()
			return serve.View{Store: s}.Judge(cmd.Context(), j, whoami(file.in, settings), time.Now(), alone(settings))
		})
	return done, err
}

// alone writes to a state that no daemon is at work on.
func alone(settings *config.Daemon) func(context.Context, func(*store.Tx) error) error {
	return func(ctx context.Context, do func(*store.Tx) error) error { return store.Alone(ctx, settings.State, do) }
}
