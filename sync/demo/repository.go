// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/swell-sh/swell/testdata"
)

// Repository is a bare Git repository that the daemon follows, and a
// working copy to push from.
type Repository struct {
	Bare, Work string        // their folders
	timeout    time.Duration // of waves
}

// Audience is how long one waits for a wave.
const Audience = 15 * time.Second

// Rollout is the default Rollout, with [Audience] as the timeout of its waves.
const Rollout = `apiVersion: swell.sh/v1
kind: Rollout
metadata: {name: default}
spec:
  waves:
  - {name: canary, match: {labels: {ring: canary}}, soak: 3s, timeout: 15s}
  - {name: sas, match: {labels: {region: sas}}, timeout: 15s}
  - {name: rest, maxFailures: 1, timeout: 15s}
  onFailure: rollback
`

// NewRepository makes both in a folder, with the example monorepo in the working copy.
func NewRepository(ctx context.Context, dir string, timeout time.Duration) (*Repository, error) {
	r := &Repository{Bare: filepath.Join(dir, "monorepo.git"), Work: filepath.Join(dir, "monorepo"), timeout: timeout}
	if err := os.CopyFS(r.Work, testdata.Monorepo()); err != nil {
		return nil, err
	}
	if err := r.writeRollout(Rollout); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=main", r.Bare},
		{"init", "--quiet", "--initial-branch=main", r.Work},
		{"-C", r.Work, "remote", "add", "origin", r.Bare},
	} {
		if err := r.Git(ctx, args...); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// writeRollout writes the default Rollout with the repository's timeout.
func (r *Repository) writeRollout(text string) error {
	return r.Write("fleet/rollout.yaml", strings.ReplaceAll(text, Audience.String(), r.timeout.String()))
}

// Git runs the git program, apart from what the user has set up for it.
func (r *Repository) Git(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Push commits everything in the working copy and pushes it.
func (r *Repository) Push(ctx context.Context, message string) error {
	for _, args := range [][]string{
		{"-C", r.Work, "add", "--all"},
		{"-C", r.Work, "commit", "--quiet", "--message", message},
		{"-C", r.Work, "push", "--quiet", "origin", "main"},
	} {
		if err := r.Git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// Write writes a file of the working copy.
func (r *Repository) Write(name, content string) error {
	return os.WriteFile(filepath.Join(r.Work, name), []byte(content), 0o644)
}

// Replace changes one place in a file; it is an error when old is not there.
func (r *Repository) Replace(name, old, replacement string) error {
	content, err := os.ReadFile(filepath.Join(r.Work, name))
	if err != nil {
		return err
	}
	changed := strings.Replace(string(content), old, replacement, 1)
	if changed == string(content) {
		return fmt.Errorf("%s: %q is not in it", name, old)
	}
	return r.Write(name, changed)
}
