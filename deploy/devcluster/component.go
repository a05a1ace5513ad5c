// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // CronJob time zones, also on a machine that has no zone files

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"
)

// The components, by the verb that runs them.
const (
	etcdName              = "etcd"
	apiserverName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	schedulerName         = "kube-scheduler"
	kwokName              = "kwok"
)

// components maps a verb to the program behind it. Each takes its flags, which
// must be in os.Args too, runs until the process is told to stop, and returns
// the exit code. At most one runs in a process: they share global flags and
// signal handlers.
var components = map[string]func(args []string) int{
	etcdName:              runEtcd,
	apiserverName:         kubernetesComponent(apiserver.NewAPIServerCommand),
	controllerManagerName: kubernetesComponent(controllermanager.NewControllerManagerCommand),
	schedulerName:         kubernetesComponent(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	kwokName:              runKwok,
}

// childVerb, before a component's verb, ties that process to the life of the
// one that started it. It is how "up" starts its children and has no other use.
const childVerb = "child"

// exitWithParent ends the process when standard input does. The other end of
// that pipe is held by the parent alone, so the kernel closes it however the
// parent goes, kill -9 included.
func exitWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(exitFailed)
}

func runEtcd(args []string) int {
	etcdmain.Main(append([]string{etcdName}, args...))
	return 0
}

func kubernetesComponent(command func() *cobra.Command) func([]string) int {
	return func(args []string) int {
		c := command()
		c.SetArgs(args)
		return cli.Run(c)
	}
}

// runKwok does what kwok's own main does: its command finds its configuration
// in a context that is filled from os.Args before the command exists.
func runKwok(args []string) int {
	flags := pflag.NewFlagSet(kwokName, pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}

	ctx, _ := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		fmt.Fprintf(os.Stderr, "kwok: configuration: %v\n", err)
		return exitFailed
	}
	c := kwok.NewCommand(ctx)
	c.Version = "" // else cobra wants a bool flag --version; Kubernetes has put another one in the process
	c.PersistentFlags().AddFlagSet(flags)
	c.SetArgs(args)
	if err := c.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "kwok: %v\n", err)
		return exitFailed
	}
	return 0
}
