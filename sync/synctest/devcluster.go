// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package synctest starts real API servers for the tests of sync and cmd. It
// holds no assertions and no fakes.
package synctest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Env names another devcluster binary than bin/devcluster of the repository.
const Env = "SWELL_DEVCLUSTER"

// ErrMissing means that there is no devcluster binary. A test is then skipped
// with this error as its reason, see [MustRun].
var ErrMissing = errors.New("no devcluster binary: run make bin/devcluster, or set " + Env)

// MustRun says whether a missing binary is a failure instead of a reason to
// skip: it is in CI.
func MustRun() bool { return os.Getenv("CI") == "true" }

// stopLimit is how long devcluster may take to end all its children.
const stopLimit = 30 * time.Second

// Start starts n clusters and returns when they are ready: the path of a
// kubeconfig with the contexts dev-1 to dev-n, the first one current, and what
// stops them and removes their files. They also stop when this process ends,
// however it ends.
func Start(n int) (kubeconfig string, stop func(), err error) {
	binary, err := find()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "swell-devcluster-")
	if err != nil {
		return "", nil, err
	}
	end, err := up(binary, dir, n)
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, fmt.Errorf("%s: %w", binary, err)
	}
	return filepath.Join(dir, "kubeconfig"), func() {
		end()
		os.RemoveAll(dir)
	}, nil
}

// Config is the client configuration of one context of a kubeconfig.
func Config(kubeconfig, context string) (*rest.Config, error) {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
}

// find is the path of the binary, or ErrMissing.
func find() (string, error) {
	path := os.Getenv(Env)
	if path == "" {
		_, here, _, _ := runtime.Caller(0)
		path = filepath.Join(filepath.Dir(here), "..", "..", "bin", "devcluster")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return path, nil
}

// up runs the binary until the returned function is called, or until its
// standard input, which is ours to hold open, ends with this process.
func up(binary, dir string, n int) (end func(), err error) {
	cmd := exec.Command(binary, "up", "--clusters", strconv.Itoa(n), "--dir", dir, "--stop-at-eof")
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
	end = sync.OnceFunc(func() {
		stdin.Close()
		timer := time.AfterFunc(stopLimit, func() { cmd.Process.Kill() })
		defer timer.Stop()
		_ = cmd.Wait() // what it says of its own end does not matter to a test
	})
	if err := awaitReady(stdout); err != nil {
		end()
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	return end, nil
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
	return string(bytes.TrimSpace(t.buf))
}
