// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// sharedClusters are the API servers that tests of all packages share. Tests keep apart by
// the names of their monorepos, tenants and namespaces; package devtest says who takes which.
const sharedClusters = "dev-1,dev-2,dev-3,dev-4"

// auditPolicy is what they write down of each request, for tests that read it.
const auditPolicy = "sync/devcluster/devtest/audit-policy.yaml"

// Variables by which test binaries find what the runner started for them.
const (
	clustersVariable = "SWELL_TEST_CLUSTERS" // a folder with kubeconfig and audit logs
	giteaVariable    = "SWELL_TEST_GITEA"    // a file with its URL and an administrator's token
	tallyVariable    = "SWELL_TEST_TALLY"    // a file to which a line is added for each thing started
)

// servers are what the runner started.
type servers struct {
	dir       string
	variables []string
	running   []*exec.Cmd
	endInput  []func() error // closes a server's standard input, which ends it
	once      sync.Once      // to stop
}

// startServers starts what entries that wait for servers share, and returns when it is ready.
func startServers(ctx context.Context, entries []*entry, t *tally) (*servers, error) {
	s := &servers{}
	if !slices.ContainsFunc(entries, func(e *entry) bool { return e.how == withServers }) {
		return s, nil
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "swell-servers-"); err != nil {
		return nil, err
	}
	if err := s.startClusters(ctx, t); err != nil {
		s.stop()
		return nil, fmt.Errorf("shared clusters: %w", err)
	}
	if err := s.startGitea(ctx); err != nil {
		s.stop()
		return nil, fmt.Errorf("shared Gitea: %w", err)
	}
	return s, nil
}

// startGitea starts the forge that tests share, by a program of the module.
func (s *servers) startGitea(ctx context.Context) error {
	binary, err := filepath.Abs("bin/gitea")
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, "gitea")
	starter := filepath.Join(s.dir, "start-gitea")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if _, err := goCommand(ctx, ".", "build", "-ldflags=-w", "-o", starter, "./sync/forge/giteatest/gitea"); err != nil {
		return err
	}
	s.variables = append(s.variables, giteaVariable+"="+filepath.Join(dir, "server.json"))
	return s.start(exec.CommandContext(ctx, starter, binary, dir), nil, "ready")
}

func (s *servers) startClusters(ctx context.Context, t *tally) error {
	policy, err := filepath.Abs(auditPolicy)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, "clusters")
	cmd := exec.CommandContext(ctx, "bin/devcluster", "up", "--names", sharedClusters, "--dir", dir, "--stop-at-eof",
		"--audit", "--apiserver-arg", "audit-policy-file="+policy)
	s.variables = append(s.variables, clustersVariable+"="+dir)
	return s.start(cmd, t.env(), "ready")
}

// start starts a server, and returns when it has printed a line.
func (s *servers) start(cmd *exec.Cmd, env []string, ready string) error {
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is ours to handle: servers go last
	cmd.Cancel = func() error { return nil }
	cmd.WaitDelay = time.Minute
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.running, s.endInput = append(s.running, cmd), append(s.endInput, stdin.Close)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if lines.Text() == ready {
			return nil
		}
	}
	return errors.Join(errors.New("ended before it was ready: "+lastLines(stderr.String(), 20)), lines.Err())
}

func (s *servers) env() []string { return s.variables }

// stop ends the servers, and waits for them. It may be called again.
func (s *servers) stop() { s.once.Do(s.end) }

func (s *servers) end() {
	for i, cmd := range s.running {
		_ = s.endInput[i]()
		_ = cmd.Wait() // how it ends is of no interest any more
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// cpu is what the servers took, those that they started too, once they are stopped.
func (s *servers) cpu() (total time.Duration) {
	for _, cmd := range s.running {
		total += spent(cmd)
	}
	return total
}

// tally counts what tests start: each process that matters adds a line to a file.
type tally struct{ file string }

func newTally() (*tally, error) {
	file, err := filepath.Abs(filepath.Join(resultsDir, "tally"))
	if err != nil {
		return nil, err
	}
	return &tally{file}, os.WriteFile(file, nil, 0o644)
}

func (t *tally) env() []string { return []string{tallyVariable + "=" + t.file} }

// counts are the lines, by what they say.
func (t *tally) counts() (map[string]int, error) {
	text, err := os.ReadFile(t.file)
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		counts[strings.TrimSpace(line)]++
	}
	return counts, err
}
