// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxClusters bounds a typing mistake: each cluster takes about 0.35 GiB.
const maxClusters = 50

// upConfig is the command line of "up", checked and with defaults filled in.
type upConfig struct {
	Names         []string   // clusters, at least one, unique RFC 1123 labels
	Dir           string     // absolute; everything the run writes goes below it
	Kubeconfig    string     // absolute; DIR/kubeconfig unless given
	Reset         bool       // throw away the state of an earlier run in Dir
	Audit         auditLevel // empty: no audit log
	APIServerArgs []string   // "--key=value", after our own, in the order given
	StopAtEOF     bool       // stop when standard input ends, as on a signal
}

// auditLevel is the value of --audit. Empty means off.
type auditLevel string

var auditLevels = []auditLevel{"Metadata", "Request", "RequestResponse"}

func (l *auditLevel) String() string   { return string(*l) }
func (l *auditLevel) IsBoolFlag() bool { return true } // a bare --audit is allowed

func (l *auditLevel) Set(s string) error {
	if s == "true" {
		s = "Metadata"
	}
	for _, known := range auditLevels {
		if strings.EqualFold(s, string(known)) {
			*l = known
			return nil
		}
	}
	return fmt.Errorf("want one of %v", auditLevels)
}

var apiserverArg = regexp.MustCompile(`^[a-z][a-z0-9-]*=`)

// parseUp reads the flags of "up". It returns flag.ErrHelp for --help, and
// touches nothing.
func parseUp(args []string) (upConfig, error) {
	var c upConfig
	flags, clusters, names := upFlags(&c)
	flags.SetOutput(io.Discard)
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if c.Dir == "" {
		return c, errors.New("--dir: a folder is needed")
	}
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return c, fmt.Errorf("--dir: %w", err)
	}
	if c.Kubeconfig == "" {
		c.Kubeconfig = filepath.Join(c.Dir, "kubeconfig")
	}
	if c.Kubeconfig, err = filepath.Abs(c.Kubeconfig); err != nil {
		return c, fmt.Errorf("--kubeconfig: %w", err)
	}
	c.Names, err = clusterNames(*clusters, *names)
	return c, err
}

// upFlags declares the flags of "up". Those that need more than storing come
// back as pointers: --clusters (0 if not given) and --names.
func upFlags(c *upConfig) (flags *flag.FlagSet, clusters *int, names *string) {
	flags = flag.NewFlagSet("up", flag.ContinueOnError)
	flags.Usage = func() {}
	clusters = flags.Int("clusters", 0, "number `N` of clusters, named dev-1 to dev-N (default 1, or as many as --names)")
	names = flags.String("names", "", "names of the clusters, `A,B,C`, in place of dev-1 to dev-N")
	flags.StringVar(&c.Dir, "dir", "", "folder `DIR` for state, logs and keys; made if missing (required)")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "where to write the kubeconfig, `FILE` (default DIR/kubeconfig)")
	flags.BoolVar(&c.Reset, "reset", false, "throw away the state of an earlier run in DIR")
	flags.Var(&c.Audit, "audit", "write DIR/CLUSTER-audit.log; `LEVEL` is metadata, request or requestresponse (a bare --audit: metadata)")
	flags.Func("apiserver-arg", "one more flag for every kube-apiserver, `KEY=VALUE`; repeatable", func(s string) error {
		if !apiserverArg.MatchString(s) {
			return errors.New("want KEY=VALUE, without leading dashes")
		}
		c.APIServerArgs = append(c.APIServerArgs, "--"+s)
		return nil
	})
	flags.BoolVar(&c.StopAtEOF, "stop-at-eof", false, "stop at the end of standard input too: for a program that starts devcluster and may die")
	return flags, clusters, names
}

// clusterNames settles the names: those listed, or dev-1 to dev-n. Zero n means
// not given.
func clusterNames(n int, list string) ([]string, error) {
	if n < 0 || n > maxClusters {
		return nil, fmt.Errorf("--clusters: want 1 to %d, got %d", maxClusters, n)
	}
	var names []string
	if list != "" {
		names = strings.Split(list, ",")
	} else {
		for i := range max(n, 1) {
			names = append(names, "dev-"+strconv.Itoa(i+1))
		}
	}
	if len(names) > maxClusters {
		return nil, fmt.Errorf("--names: want at most %d, got %d", maxClusters, len(names))
	}
	if n != 0 && n != len(names) {
		return nil, fmt.Errorf("--names: %d names for --clusters %d", len(names), n)
	}
	for i, name := range names {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("--names: %q: %s", name, problems[0])
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("--names: %q is there twice", name)
		}
	}
	return names, nil
}

// upUsage is the help text of "up".
func upUsage() string {
	var b strings.Builder
	b.WriteString(`devcluster up starts real Kubernetes clusters and stays until SIGINT or SIGTERM.

Usage:
  devcluster up --clusters N --dir DIR [flags]

Flags:
`)
	flags, _, _ := upFlags(&upConfig{})
	flags.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		name := "--" + f.Name
		switch {
		case f.Name == "audit":
			name += "[=" + value + "]"
		case value != "":
			name += " " + value
		}
		fmt.Fprintf(&b, "  %-26s %s\n", name, text)
	})
	b.WriteString(`
Steps: lock DIR; start one etcd; for each cluster at the same time make keys and
start kube-apiserver, then kube-controller-manager, kube-scheduler, kwok and two
nodes; wait until each cluster can run a pod; write the kubeconfig; print a line
per cluster (context, server, kubeconfig) and "ready". On the way out the
children are killed and the kubeconfig is removed.

A pod becomes ready at once, a Job's pod completes at once, and a pod with an
image whose tag is "broken" stays in ImagePullBackOff.

Exit codes: 0 stopped by a signal after "ready", 1 a failure, 2 a wrong command line.
`)
	return b.String()
}
