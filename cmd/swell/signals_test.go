// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/demo"
	"github.com/swell-sh/swell/sync/store"
)

// watched is a daemon without any cluster, whose log is read.
type watched struct {
	*testing.T
	cmd   *exec.Cmd
	log   *os.File
	lines chan string
	dir   string
	repo  *demo.Repository
}

// watchDaemon starts a daemon that polls once an hour. Its repository is not there
// yet.
func watchDaemon(t *testing.T) *watched {
	t.Helper()
	d := &watched{T: t, dir: t.TempDir(), lines: make(chan string, 10000)}
	var err error
	if d.repo, err = demo.NewRepository(t.Context(), filepath.Join(d.dir, "made"), demo.Audience); err != nil {
		t.Fatal(err)
	}
	if err := d.repo.Push(t.Context(), "The example"); err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: test}\nspec:\n  repository: {url: monorepo.git, branch: main, poll: 1h}\n  drift: {schedule: 'off'}\n"
	config := filepath.Join(d.dir, "daemon.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var in *os.File
	if d.log, in, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	d.cmd = program(t.Context(), "run", "-c", config)
	d.cmd.Stderr = in
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	t.Cleanup(func() { d.cmd.Process.Kill(); d.cmd.Wait() })
	go func() {
		defer close(d.lines)
		for lines := bufio.NewScanner(d.log); lines.Scan(); {
			d.lines <- lines.Text()
		}
	}()
	return d
}

// says waits until the log has a line with the text.
func (d *watched) says(text string) {
	d.Helper()
	late := time.After(2 * time.Minute)
	for {
		select {
		case line, ok := <-d.lines:
			if !ok {
				d.Fatalf("the log ended before %q", text)
			}
			if strings.Contains(line, text) {
				return
			}
		case <-late:
			d.Fatalf("nothing said of %q", text)
		}
	}
}

func (d *watched) signal(s os.Signal) {
	d.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.Fatal(err)
	}
}

// started waits until the state has so many releases.
func (d *watched) started(n int) {
	d.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		got := 0
		if s, err := store.OpenReadOnly(filepath.Join(d.dir, "state")); err == nil {
			events, err := s.History("services/shop/cart", 100)
			if err != nil {
				d.Fatal(err)
			}
			for _, e := range events {
				if e.Kind == "started" {
					got++
				}
			}
			s.Close()
		}
		if got == n {
			return
		}
		if time.Now().After(deadline) {
			d.Fatalf("%d releases, want %d", got, n)
		}
		select {
		case <-d.Context().Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestSignals: a daemon waits for a repository that is not there yet; a hangup makes
// it look; a log that nobody reads any more does not end it; and an interrupt does,
// in good order.
func TestSignals(t *testing.T) {
	t.Parallel()
	d := watchDaemon(t)
	d.says("monorepo.git: no such file or directory")
	d.signal(syscall.SIGHUP)
	d.says("hangup: looking at the configuration, at Git and at the kubeconfigs now")
	d.says("monorepo.git: no such file or directory")
	if err := os.Rename(filepath.Join(d.dir, "made", "monorepo.git"), filepath.Join(d.dir, "monorepo.git")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(d.dir, "monorepo.git"), filepath.Join(d.dir, "made", "monorepo.git")); err != nil {
		t.Fatal(err)
	}
	d.signal(syscall.SIGHUP)
	d.started(1)

	d.log.Close()
	if err := d.repo.Replace(demo.CartFile, "cart:1.4.2", "cart:1.4.3"); err != nil {
		t.Fatal(err)
	}
	if err := d.repo.Push(t.Context(), "cart 1.4.3"); err != nil {
		t.Fatal(err)
	}
	d.signal(syscall.SIGHUP)
	d.started(2)
	d.signal(syscall.SIGTERM)
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
}

// TestHangupReadsTheConfiguration: a hangup has a changed configuration taken at once, and the
// one after it too; the daemon goes on with the same state.
func TestHangupReadsTheConfiguration(t *testing.T) {
	t.Parallel()
	d := watchDaemon(t)
	d.says("monorepo.git: no such file or directory")
	file := filepath.Join(d.dir, "daemon.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	for _, change := range []struct{ from, to, fields string }{
		{"url: monorepo.git", "url: made/monorepo.git", "fields=repository"},
		{"spec:\n", fmt.Sprintf("spec:\n  health: {listen: %q}\n", address), "fields=health"},
	} {
		content = []byte(strings.Replace(string(content), change.from, change.to, 1))
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		d.signal(syscall.SIGHUP)
		d.says(change.fields)
		d.says("the changed configuration is in force")
		d.started(1)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get("http://" + address + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("not ready: %v", err)
		}
	}
	d.signal(syscall.SIGTERM)
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
}

// TestQuitTellsWhereEverythingIs: SIGQUIT is for whoever wants to know why a daemon
// hangs.
func TestQuitTellsWhereEverythingIs(t *testing.T) {
	t.Parallel()
	d := watchDaemon(t)
	d.says("no such file or directory")
	d.signal(syscall.SIGQUIT)
	d.says("goroutine ")
}

// TestASecondInterruptEndsAtOnce: what does not end by itself can be ended.
func TestASecondInterruptEndsAtOnce(t *testing.T) {
	if os.Getenv("SWELL_TEST_HANG") != "" {
		ctx, stop := interruptible(os.Stderr)
		defer stop()
		fmt.Println("ready")
		<-ctx.Done()
		fmt.Println("interrupted")
		select {}
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "SWELL_TEST_HANG=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"ready", "interrupted"} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("got %q, want %q", lines.Text(), want)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("ended with %v: %s", cmd.ProcessState, stderr.String())
	}
}
