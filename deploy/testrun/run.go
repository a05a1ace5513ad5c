// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// resultsDir holds the log of each test binary and the report of the last run.
const resultsDir = "bin/test"

// deadline bounds one test binary; the longest takes some minutes, and half an hour on a machine that others use, too.
const deadline = "60m"

// serversAtOnce bounds how many packages wait for servers at a time.
const serversAtOnce = 4

// runner is one run of the plan.
type runner struct {
	env                []string      // for the test binaries
	test2json          string        // the program test2json
	servers, computing chan struct{} // room for binaries of each kind

	mu      sync.Mutex // guards what follows, and standard output
	results []result
	linked  int           // binaries
	kept    int           // binaries that an earlier run has linked
	linking time.Duration // CPU
	serving time.Duration // CPU of shared servers
}

// result is one test binary that has ended.
type result struct {
	entry *entry
	*outcome
	wall, cpu time.Duration
}

func run(ctx context.Context, args []string) error {
	began := time.Now()
	if err := collectSeldom(); err != nil {
		return err
	}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	hows := flags.String("how", "servers,plain,race", "which lines of the plan, by how they run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	entries, err := chosen(ctx, strings.Split(*hows, ","), flags.Args())
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(resultsDir), os.MkdirAll(resultsDir, 0o755)); err != nil {
		return err
	}
	if err := prepare(ctx, entries); err != nil {
		return err
	}
	removeTemporary, err := useMemory()
	defer removeTemporary()
	if err != nil {
		return err
	}
	tally, err := newTally()
	if err != nil {
		return err
	}
	servers, err := startServers(ctx, entries, tally)
	if err != nil {
		return err
	}
	r := &runner{
		env:     append(append(os.Environ(), tally.env()...), servers.env()...),
		servers: make(chan struct{}, serversAtOnce), computing: make(chan struct{}, runtime.NumCPU()),
	}
	err = r.all(ctx, entries, servers.stop)
	servers.stop()
	if err != nil {
		return err
	}
	r.serving = servers.cpu()
	return r.finish(began, tally)
}

// collectSeldom has Go's garbage collector run less often in all that is started from here on:
// the compiler, API servers, test binaries. As it is, it takes a quarter of their time. What
// has much memory collects as often as ever.
func collectSeldom() error {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil // somebody knows better
	}
	return errors.Join(os.Setenv("GOGC", "400"), os.Setenv("GOMEMLIMIT", "2GiB"))
}

// chosen are the entries of the plan that are to run: those of some packages, or all.
func chosen(ctx context.Context, hows, packages []string) ([]*entry, error) {
	plan, err := readPlan(ctx)
	if err != nil {
		return nil, err
	}
	var entries []*entry
	for i := range plan {
		e := &plan[i]
		if slices.Contains(hows, e.how) && (len(packages) == 0 || slices.ContainsFunc(packages, e.isOf)) {
			entries = append(entries, e)
		}
	}
	for _, pkg := range packages {
		if !slices.ContainsFunc(entries, func(e *entry) bool { return e.isOf(pkg) }) {
			return nil, fmt.Errorf("%s: no package with tests", pkg)
		}
	}
	return entries, nil
}

// isOf says whether the entry is of a package as somebody types it: sync, ./sync/, sync/....
func (e *entry) isOf(typed string) bool {
	typed = strings.TrimPrefix(filepath.ToSlash(filepath.Clean(typed)), "./")
	if folder, all := strings.CutSuffix(typed, "/..."); all {
		return strings.HasPrefix(e.pkg+"/", "./"+folder+"/")
	}
	return e.pkg == "./"+typed
}

// prepare brings what the entries need: parts of the machine, and tools.
func prepare(ctx context.Context, entries []*entry) error {
	if err := parts(ctx, nil); err != nil {
		return err
	}
	if !slices.ContainsFunc(entries, func(e *entry) bool { return e.module() == "." }) {
		return nil
	}
	return tools(ctx, nil)
}

// all builds the binaries batch by batch, and runs each batch while the next one is built. It
// stops the servers when nobody needs them any more: idle API servers compute, too.
func (r *runner) all(ctx context.Context, entries []*entry, stopServers func()) error {
	cache, err := cacheOfTests()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(cache, runPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	found, err := goCommand(ctx, ".", "tool", "-n", "test2json")
	if err != nil {
		return err
	}
	r.test2json = strings.TrimSpace(string(found))
	var running, served sync.WaitGroup
	for _, e := range entries {
		served.Add(e.needs())
	}
	running.Go(func() {
		served.Wait()
		stopServers()
	})
	var failures error
	for i, b := range batches(entries) {
		into := filepath.Join(dir, fmt.Sprint(i))
		linked, cost, err := b.build(ctx, cache, into)
		if err != nil {
			failures = errors.Join(failures, err) // the others are of interest all the same
			for _, e := range b.entries {
				served.Add(-e.needs())
			}
			continue
		}
		r.mu.Lock()
		r.linked, r.kept, r.linking = r.linked+linked, r.kept+len(b.entries)-linked, r.linking+cost
		r.mu.Unlock()
		for _, e := range b.entries {
			running.Go(func() {
				r.test(ctx, e, binary(into, e))
				served.Add(-e.needs())
			})
		}
	}
	running.Wait()
	return failures
}

// test runs a test binary when there is room for it.
func (r *runner) test(ctx context.Context, e *entry, program string) {
	room := r.computing
	if e.how == withServers {
		room = r.servers
	}
	select {
	case room <- struct{}{}:
		defer func() { <-room }()
	case <-ctx.Done():
	}
	res, err := r.execute(ctx, e, program)
	if err != nil {
		res = result{entry: e, outcome: &outcome{isFailed: true, failed: 1}}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, res)
	fmt.Print(res.line())
	if err != nil {
		fmt.Printf("%s: %v\n", e.name(), err)
	}
	_ = os.Remove(program) // it takes up to 200 MB, and is of no more use
}

// logFile is where all that a test binary says goes.
func logFile(e *entry) string {
	return filepath.Join(resultsDir, strings.NewReplacer("/", "-", " (", "-", ")", "").Replace(e.name())+".log")
}

// execute runs a test binary to its end, and reads what it says.
func (r *runner) execute(ctx context.Context, e *entry, program string) (result, error) {
	log, err := os.Create(logFile(e))
	if err != nil {
		return result{}, err
	}
	defer log.Close()
	args := []string{"-t", "-p", e.name(), program, "-test.v=test2json", "-test.paniconexit0", "-test.timeout=" + deadline}
	cmd := exec.CommandContext(ctx, r.test2json, append(args, e.flags...)...)
	cmd.Dir, cmd.Env = e.pkg, r.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt ends all that it started
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return result{}, err
	}
	cmd.Stderr = log
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	o, err := readEvents(e.name(), stdout, log)
	failed := cmd.Wait()
	if failed != nil || !o.ended {
		o.isFailed = true
	}
	return result{entry: e, outcome: o, wall: time.Since(began), cpu: spent(cmd)}, err
}
