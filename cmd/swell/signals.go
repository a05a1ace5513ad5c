// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopPatience is how long what is under way may take to end after an interrupt.
// The state is good at any moment: what is cut short is gone on with later.
const stopPatience = 20 * time.Second

// interruptible is a context that ends with SIGINT or SIGTERM. What is under way
// then has stopPatience to end; a second signal ends the program at once.
func interruptible(stderr io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		select {
		case <-over:
			return
		case <-signals:
		}
		cancel()
		select {
		case <-over:
		case <-signals:
			os.Exit(exitInterrupted)
		case <-time.After(stopPatience):
			fmt.Fprintf(stderr, "swell: still running %s after the interrupt: ending at once\n", stopPatience)
			os.Exit(exitInterrupted)
		}
	}()
	return ctx, func() {
		close(over)
		signal.Stop(signals)
		cancel()
	}
}

// daemonSignals makes the signals that end other programs harmless to the daemon,
// until done is called: SIGHUP calls hangup, and a log that nobody reads any more is
// only that. SIGQUIT is left alone: it prints where every goroutine is, and ends the
// program.
func daemonSignals(in *invocation, log *slog.Logger, hangup func()) (done func()) {
	hangups, stop := in.hangups()
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-over:
				return
			case <-hangups:
				log.Info("hangup: looking at the configuration, at Git and at the kubeconfigs now")
				hangup()
			}
		}
	}()
	return func() {
		stop()
		close(over)
	}
}

// hangups takes SIGHUP and ignores SIGPIPE in this process, see [invocation].
func hangups() (<-chan os.Signal, func()) {
	signal.Ignore(syscall.SIGPIPE)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups, func() {
		signal.Stop(hangups)
		signal.Reset(syscall.SIGPIPE)
	}
}
