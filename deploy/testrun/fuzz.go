// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// fuzzedPackages have decoders of what strangers write, and link in seconds.
var fuzzedPackages = []string{"./config", "./config/document", "./render/cache", "./render/kind", "./render/override", "./sync/source"}

// fuzzTime is for the one target that a commit has.
const fuzzTime = "30s"

// target is a fuzz test.
type target struct{ pkg, name string }

// fuzz runs one fuzz test on new inputs. The commit's hash says which: each commit has one of
// them, and the same one when it is run again.
func fuzz(ctx context.Context, _ []string) error {
	targets, err := fuzzTargets(ctx)
	if err != nil {
		return err
	}
	head, err := output(exec.CommandContext(ctx, "git", "rev-parse", "HEAD"))
	if err != nil {
		return err
	}
	t, err := turnOf(targets, strings.TrimSpace(string(head)))
	if err != nil {
		return err
	}
	fmt.Printf("fuzz %s %s for %s, one of %d\n", t.pkg, t.name, fuzzTime, len(targets))
	err = goTest(ctx, "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", fuzzTime, "-fuzzminimizetime", "10s", t.pkg)
	if errors.Is(err, errFailed) {
		fmt.Fprintf(os.Stderr, "the input is in %s/testdata/fuzz/%s: mend what it shows, and commit it\n", t.pkg, t.name)
	}
	return err
}

// fuzzTargets are all fuzz tests of the packages, sorted.
func fuzzTargets(ctx context.Context) (all []target, err error) {
	for _, pkg := range fuzzedPackages {
		listed, err := goCommand(ctx, ".", "test", "-vet=off", "-ldflags=-w", "-list", "^Fuzz", pkg)
		if err != nil {
			return nil, err
		}
		before := len(all)
		for line := range strings.Lines(string(listed)) {
			if name := strings.TrimSpace(line); strings.HasPrefix(name, "Fuzz") {
				all = append(all, target{pkg, name})
			}
		}
		if len(all) == before {
			return nil, fmt.Errorf("%s has no fuzz test: take it from the list in deploy/testrun", pkg)
		}
	}
	slices.SortFunc(all, func(a, b target) int { return strings.Compare(a.pkg+" "+a.name, b.pkg+" "+b.name) })
	return all, nil
}

// turnOf is the target whose turn it is with a commit.
func turnOf(targets []target, commit string) (target, error) {
	if len(targets) == 0 {
		return target{}, errors.New("no fuzz test")
	}
	number, err := strconv.ParseUint(commit[:min(8, len(commit))], 16, 64)
	if err != nil {
		return target{}, fmt.Errorf("commit %q: %w", commit, err)
	}
	return targets[number%uint64(len(targets))], nil
}
