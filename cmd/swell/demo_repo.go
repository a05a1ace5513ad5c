// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/swell-sh/swell/testdata"
)

// demoRepository is a bare Git repository that the daemon follows, and a
// working copy to push from.
type demoRepository struct {
	bare, work string
}

// demoRollout is the default Rollout with the patience of an audience.
const demoRollout = `apiVersion: swell.sh/v1
kind: Rollout
metadata: {name: default}
spec:
  waves:
  - {name: canary, match: {labels: {ring: canary}}, soak: 3s, timeout: 15s}
  - {name: sas, match: {labels: {region: sas}}, timeout: 15s}
  - {name: rest, maxFailures: 1, timeout: 15s}
  onFailure: rollback
`

func newDemoRepository(ctx context.Context, dir string) (*demoRepository, error) {
	r := &demoRepository{bare: filepath.Join(dir, "monorepo.git"), work: filepath.Join(dir, "monorepo")}
	if err := os.CopyFS(r.work, testdata.Monorepo()); err != nil {
		return nil, err
	}
	if err := r.write("fleet/rollout.yaml", demoRollout); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=main", r.bare},
		{"init", "--quiet", "--initial-branch=main", r.work},
		{"-C", r.work, "remote", "add", "origin", r.bare},
	} {
		if err := r.git(ctx, args...); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// git runs the git program, apart from what the user has set up for it.
func (r *demoRepository) git(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// push commits everything in the working copy and pushes it.
func (r *demoRepository) push(ctx context.Context, message string) error {
	for _, args := range [][]string{
		{"-C", r.work, "add", "--all"},
		{"-C", r.work, "commit", "--quiet", "--message", message},
		{"-C", r.work, "push", "--quiet", "origin", "main"},
	} {
		if err := r.git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (r *demoRepository) write(name, content string) error {
	return os.WriteFile(filepath.Join(r.work, name), []byte(content), 0o644)
}

// replace changes one place in a file; it is an error when old is not there.
func (r *demoRepository) replace(name, old, replacement string) error {
	content, err := os.ReadFile(filepath.Join(r.work, name))
	if err != nil {
		return err
	}
	changed := strings.Replace(string(content), old, replacement, 1)
	if changed == string(content) {
		return fmt.Errorf("%s: %q is not in it", name, old)
	}
	return r.write(name, changed)
}
