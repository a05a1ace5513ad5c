// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// quickly runs the packages that need no server in their short form, and then those lines of
// the plan that are for it alone. Unlike run, it takes results from Go's cache: where one
// package changed, only those that import it are linked and run.
func quickly(ctx context.Context, packages []string) error {
	if err := collectSeldom(); err != nil {
		return err
	}
	entries, err := chosen(ctx, []string{computes}, packages)
	if err != nil {
		return err
	}
	args := []string{}
	for _, e := range entries {
		if e.module() == "." {
			args = append(args, e.pkg)
		}
	}
	failed := goTest(ctx, append([]string{"-short"}, args...)...)
	extra, err := chosen(ctx, []string{quick}, nil)
	if err != nil {
		return err
	}
	for _, e := range extra {
		failed = errors.Join(failed, goTest(ctx, append([]string{e.pkg}, e.flags...)...))
	}
	return failed
}

func goTest(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-vet=off", "-ldflags=-w"}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return errFailed
	}
	return err
}
