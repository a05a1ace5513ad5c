// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package devcluster runs the devcluster binary of deploy/devcluster: real
// Kubernetes API servers on this machine, for the demonstration and for tests.
package devcluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Clusters are some running clusters.
type Clusters struct {
	// Kubeconfig has a context for each cluster, with the cluster's name.
	Kubeconfig string
	// Dir holds their files: logs, audit logs, pids.
	Dir string

	stop func()
}

// stopLimit is how long devcluster may take to end all its children.
const stopLimit = 30 * time.Second

// Start starts a cluster for each name and returns when all are ready. dir
// must be empty or not exist. args are further flags of devcluster up. They
// also end when this process does, however it ends.
func Start(ctx context.Context, binary, dir string, names []string, args ...string) (*Clusters, error) {
	args = append([]string{"up", "--clusters", fmt.Sprint(len(names)), "--names", strings.Join(names, ","), "--dir", dir, "--stop-at-eof"}, args...)
	cmd := exec.Command(binary, args...)
	// A terminal's interrupt is ours to handle: the clusters go last.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr tail
	cmd.Stderr = &stderr
	cmd.WaitDelay = stopLimit
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := sync.OnceFunc(func() {
		stdin.Close()
		timer := time.AfterFunc(stopLimit, func() { cmd.Process.Kill() })
		defer timer.Stop()
		_ = cmd.Wait() // how it ends is of no interest to anybody any more
	})
	abandon := context.AfterFunc(ctx, func() { stdin.Close() })
	err = awaitReady(stdout)
	abandon()
	if err != nil {
		stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s: %w: %s", binary, err, stderr.String())
	}
	return &Clusters{Kubeconfig: filepath.Join(dir, "kubeconfig"), Dir: dir, stop: stop}, nil
}

// Running are clusters that somebody else started and will stop.
func Running(kubeconfig string) *Clusters {
	return &Clusters{Kubeconfig: kubeconfig, stop: func() {}}
}

// Stop ends all clusters and waits until they have.
func (c *Clusters) Stop() { c.stop() }

// Config is the client configuration for one of the clusters.
func (c *Clusters) Config(name string) (*rest.Config, error) {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
}

// awaitReady reads the lines of a starting devcluster up to the last one.
func awaitReady(stdout io.Reader) error {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if lines.Text() == "ready" {
			return nil
		}
	}
	return errors.Join(errors.New("ended before it was ready"), lines.Err())
}

// Find looks for the binary: at path, or where make puts it, seen from the
// program and from the current folder.
func Find(path string) (string, error) {
	candidates := []string{path}
	if path == "" {
		candidates = []string{filepath.Join("bin", "devcluster")}
		if self, err := os.Executable(); err == nil {
			candidates = append(candidates, filepath.Join(filepath.Dir(self), "devcluster"))
		}
		if found, err := exec.LookPath("devcluster"); err == nil {
			candidates = append(candidates, found)
		}
	}
	for _, candidate := range candidates {
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() {
			return filepath.Abs(candidate)
		}
	}
	return "", fmt.Errorf("no devcluster binary at %s: make bin/devcluster builds it", strings.Join(candidates, ", "))
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	t.buf = t.buf[max(0, len(t.buf)-tailSize):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.buf))
}
