// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// logTail is how many bytes of a dead child's log are shown.
const logTail = 2 << 10

// children are the processes that one run started.
type children struct {
	exe  string // this binary
	dir  runDir
	fail context.CancelCauseFunc // told when a child ends; the first call counts

	// Every child has the read end as its standard input and ends with it, see
	// exitWithParent. The write end is in this process alone and never written.
	read, write *os.File

	running sync.WaitGroup
	mu      sync.Mutex
	pids    []string // "PID COMPONENT", in the order of starting
}

// newChildren starts nothing yet. fail is called with the reason each time a
// child ends, also when it was told to.
func newChildren(dir runDir, fail context.CancelCauseFunc) (*children, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this binary: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	return &children{exe: exe, dir: dir, fail: fail, read: read, write: write}, nil
}

// start runs a component, known as name in the logs folder and in messages,
// until ctx is done; then it is killed, there being no state worth a slow stop.
// The child gets none of our environment, which could hold settings for etcd
// or kwok, and a home that has no settings of the user's.
func (c *children) start(ctx context.Context, name, component string, args ...string) error {
	log, err := os.Create(c.dir.log(name))
	if err != nil {
		return fmt.Errorf("%s: log: %w", name, err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, c.exe, append([]string{childVerb, component}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.read, log, log
	cmd.Dir = string(c.dir)
	cmd.Env = append(inherited(), "HOME="+string(c.dir), "TMPDIR="+os.TempDir())
	// Its own process group: Ctrl-C is for us, and we stop the children.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: start: %w", name, err)
	}
	c.mu.Lock()
	c.pids = append(c.pids, fmt.Sprintf("%d %s\n", cmd.Process.Pid, name))
	c.mu.Unlock()
	c.running.Go(func() {
		_ = cmd.Wait() // the state below says more than the error
		c.fail(fmt.Errorf("%s: ended: %s\n%s", name, cmd.ProcessState, tail(log.Name())))
	})
	return nil
}

// inherited is what a child's environment has of ours: programs, and how often Go's collector runs.
func inherited() (env []string) {
	for _, name := range []string{"PATH", "GOGC", "GOMEMLIMIT"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// stop waits for the children to be gone. Their context must be done already.
func (c *children) stop() {
	c.running.Wait()
	c.read.Close()
	c.write.Close()
}

// writePids records the children for whoever wants to measure or to break them.
func (c *children) writePids() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.WriteFile(c.dir.pids(), []byte(strings.Join(c.pids, "")), 0o600); err != nil {
		return fmt.Errorf("pids: %w", err)
	}
	return nil
}

// tail is the end of a log, indented, with its path above.
func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("  %s: %v", filepath.Base(path), err)
	}
	if cut := len(b) - logTail; cut > 0 {
		b = b[cut:]
		b = b[bytes.IndexByte(b, '\n')+1:] // whole lines; all of it if there is only one
	}
	text := strings.TrimSpace(string(b))
	return "  end of " + path + ":\n  " + strings.ReplaceAll(text, "\n", "\n  ")
}
