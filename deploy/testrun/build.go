// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// batch are test binaries that one go command builds: of one module, with or without the race
// detector, and each with another name, which is the last element of its package's path.
type batch struct {
	module  string
	how     string
	entries []*entry
}

// batches are in the order in which they are to be built: what waits for servers begins
// first, then what computes longest. The race detector makes a variant of every package, and
// nested modules are small: these come last.
func batches(entries []*entry) (all []*batch) {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.budget, a.budget))
	})
	for _, e := range entries {
		i := slices.IndexFunc(all, func(b *batch) bool { return b.takes(e) })
		if i < 0 {
			all = append(all, &batch{module: e.module(), how: e.how})
			i = len(all) - 1
		}
		all[i].entries = append(all[i].entries, e)
	}
	return all
}

func rank(e *entry) int {
	switch {
	case e.module() != ".":
		return 3
	case e.how == withRace:
		return 2
	case e.how == withServers:
		return 0
	}
	return 1
}

// maxBatch bounds how long the first binary of a batch waits for the last one.
const maxBatch = 8

func (b *batch) takes(e *entry) bool {
	return b.module == e.module() && b.how == e.how && len(b.entries) < maxBatch &&
		!slices.ContainsFunc(b.entries, func(other *entry) bool { return path.Base(other.pkg) == path.Base(e.pkg) })
}

// linkerFlags leave out debug information, which takes a third of linking.
const linkerFlags = "-ldflags=-w"

// build puts the binaries of the batch into a folder, and returns how many had to be linked,
// and the CPU time of that. vet is left to make lint.
func (b *batch) build(ctx context.Context, cache, dir string) (linked int, cost time.Duration, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, 0, err
	}
	rest, keys, listing := b.takeKept(ctx, cache, dir)
	if len(rest) == 0 {
		return 0, listing, nil
	}
	args := []string{"-c", "-vet=off", linkerFlags, "-o", dir + string(filepath.Separator)}
	for _, e := range rest {
		args = append(args, b.argument(e))
	}
	cmd := b.command(ctx, "test", args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go test %s: %w\n%s", strings.Join(args, " "), err, lastLines(string(out), 60))
	} else {
		err = keep(cache, dir, rest, keys)
	}
	return len(rest), listing + spent(cmd), err
}

// argument names an entry's package from within the batch's module.
func (b *batch) argument(e *entry) string {
	within, _ := filepath.Rel(b.module, e.pkg) // both are relative to the module's root
	return "./" + filepath.ToSlash(within)
}

// command is the go command with what the batch's variant asks for.
func (b *batch) command(ctx context.Context, verb string, args ...string) *exec.Cmd {
	cgo := "CGO_ENABLED=0"
	if b.how == withRace {
		args, cgo = append([]string{"-race"}, args...), "CGO_ENABLED=1"
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{verb}, args...)...)
	cmd.Dir, cmd.Env = b.module, append(os.Environ(), cgo)
	return cmd
}

// binary is where build puts an entry's.
func binary(dir string, e *entry) string {
	name := path.Base(e.pkg)
	if within, err := filepath.Rel(e.module(), e.pkg); err == nil && within == "." {
		name = path.Base(e.module())
	}
	return filepath.Join(dir, name+".test")
}

// spent is the CPU time of a process that has ended, and of all that it waited for.
func spent(cmd *exec.Cmd) time.Duration {
	if cmd.ProcessState == nil {
		return 0
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
