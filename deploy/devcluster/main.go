// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Command devcluster runs real Kubernetes control planes on one machine, for
// demonstrations and tests. One binary holds etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and kwok; "devcluster up" starts
// them as children of itself.
//
// It runs no container and opens no port other than on loopback. Its state is
// thrown away: no run continues an earlier one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes of the verbs that are not a component.
const (
	exitFailed = 1 // something did not start, did not become ready, or died
	exitUsage  = 2 // the command line is wrong; nothing was touched
)

const usage = `devcluster runs real Kubernetes control planes on this machine.

Usage:
  devcluster up --clusters N --dir DIR   start N clusters, stay until interrupted
  devcluster up --help                   flags, steps and exit codes
  devcluster version                     the Kubernetes version of the clusters
  devcluster COMPONENT [flags]           run one component by itself

Components: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok.
`

func main() {
	os.Exit(run(os.Args[1:]))
}

// run carries out one command line and returns the exit code. A component
// usually ends the process itself.
func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return exitUsage
	}
	stampVersion()
	verb, rest := args[0], args[1:]
	switch verb {
	case "-h", "-help", "--help", "help":
		fmt.Print(usage)
		return 0
	case "version":
		fmt.Println(kubernetesVersion())
		return 0
	case "up":
		return runUp(rest)
	}
	child := verb == childVerb && len(rest) > 0
	if child {
		verb, rest = rest[0], rest[1:]
	}
	if component, ok := components[verb]; ok {
		if child {
			go exitWithParent()
		}
		// A client's user agent, and with it the field manager of what it
		// writes, begins with the name of the program.
		os.Args = append([]string{verb}, rest...)
		return component(rest)
	}
	fmt.Fprintf(os.Stderr, "devcluster: unknown verb %q, see devcluster --help\n", verb)
	return exitUsage
}

// runUp parses the flags of "up" and runs it until SIGINT or SIGTERM, or the
// end of standard input if that is asked for.
func runUp(args []string) int {
	conf, err := parseUp(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(upUsage())
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "devcluster: %v, see devcluster up --help\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if conf.StopAtEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	if err := up(ctx, conf, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "devcluster: %v\n", err)
		return exitFailed
	}
	return 0
}
