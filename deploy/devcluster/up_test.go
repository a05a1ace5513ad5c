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
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is how long a test waits for what takes a second or ten.
const patience = 2 * time.Minute

// running is a "devcluster up" that said "ready".
type running struct {
	dir    runDir
	cmd    *exec.Cmd
	lines  []string      // what it printed before "ready"
	stderr *bytes.Buffer // read it after wait only
	pids   map[string]int
}

// startUp runs "up" in a new folder until it is ready. The run ends with the
// test, and with the test binary should that die.
func startUp(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{dir: runDir(filepath.Join(t.TempDir(), "dir")), stderr: new(bytes.Buffer), pids: map[string]int{}}
	r.cmd = exec.Command(self(t), append([]string{mainVerb, "up", "--stop-at-eof", "--dir", string(r.dir)}, args...)...)
	r.cmd.Stderr = r.stderr
	if _, err := r.cmd.StdinPipe(); err != nil { // ends with this process, and so does the run
		t.Fatal(err)
	}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { _ = r.cmd.Process.Kill() }
	t.Cleanup(func() { // politely, so that no child still writes when the folder is removed
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		defer time.AfterFunc(patience, kill).Stop()
		_ = r.wait()
	})
	defer time.AfterFunc(patience, kill).Stop()
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if lines.Text() == "ready" {
			r.readPids(t)
			return r
		}
		r.lines = append(r.lines, lines.Text())
	}
	t.Fatalf("up ended before it was ready: %v\n%s", r.wait(), r.stderr)
	return nil
}

func (r *running) wait() error {
	if r.cmd.ProcessState != nil {
		return nil
	}
	return r.cmd.Wait()
}

// readPids records the children, as DIR/pids has them.
func (r *running) readPids(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile(r.dir.pids())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var pid int
		var name string
		if _, err := fmt.Sscan(line, &pid, &name); err != nil {
			t.Fatalf("%s: %q: %v", r.dir.pids(), line, err)
		}
		if !alive(pid) {
			t.Errorf("%s: %d is not running", name, pid)
		}
		r.pids[name] = pid
	}
}

// client reaches a cluster as a user would, through the kubeconfig.
func (r *running) client(t *testing.T, cluster string) kubernetes.Interface {
	t.Helper()
	conf, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: r.dir.path("kubeconfig")},
		&clientcmd.ConfigOverrides{CurrentContext: cluster},
	).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	conf.QPS = -1
	client, err := kubernetes.NewForConfig(conf)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// wantGone waits until no child is left.
func (r *running) wantGone(t *testing.T) {
	t.Helper()
	for name, pid := range r.pids {
		eventually(t, name+" to be gone", func(context.Context) error {
			if alive(pid) {
				return errors.New("still there")
			}
			return nil
		})
	}
}

// alive tells whether a process runs. One that ended and that nobody has waited
// for does not.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // PID (NAME) STATE ...
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) || !isDir("/proc/self") // no /proc here, or gone just now
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// eventually asks until there is no error, and fails the test with the last one.
func eventually(t *testing.T, what string, ask func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), askInterval, patience, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waited %v for %s: %v", patience, what, last)
	}
}

// TestKilled is about the one end that no program can prepare for.
func TestKilled(t *testing.T) {
	t.Parallel()
	r := startUp(t)
	if len(r.pids) != 5 {
		t.Errorf("children: %v, want 5", r.pids)
	}
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.wait()
	r.wantGone(t)
}

func TestSignal(t *testing.T) {
	t.Parallel()
	r := startUp(t, "--names", "sas-1,vla-1", "--audit")
	want := []string{"sas-1", "vla-1"}
	got := slices.Clone(r.lines)
	for i, line := range got {
		got[i], _, _ = strings.Cut(line, " ")
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines for %q, want %q", got, want)
	}
	info, err := os.Stat(r.dir.path("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("kubeconfig: mode %v", info.Mode())
	}
	ids := map[string]bool{}
	for _, name := range want {
		version, err := r.client(t, name).Discovery().ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if v := kubernetesVersion(); v == "" || version.GitVersion != v || version.Major != "1" || version.Minor == "" {
			t.Errorf("%s: version %+v, want %q", name, version, v)
		}
		ids[clusterID(t, r.client(t, name))] = true
		audit, err := os.ReadFile(r.dir.auditLog(name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(audit, []byte(`"user":{"username":"admin"`)) || bytes.Contains(audit, []byte(`"requestObject"`)) {
			t.Errorf("%s: audit log lacks what admin did, or has bodies at level Metadata", name)
		}
	}
	if len(ids) != 2 {
		t.Errorf("kube-system UIDs %v: the clusters share data", ids)
	}

	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := r.wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, r.stderr)
	}
	for name, pid := range r.pids {
		if alive(pid) {
			t.Errorf("%s: survived", name)
		}
	}
	if _, err := os.Stat(r.dir.path("kubeconfig")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("kubeconfig after the end: %v", err)
	}
}

func TestChildDies(t *testing.T) {
	t.Parallel()
	r := startUp(t)
	if err := syscall.Kill(r.pids["dev-1-kube-scheduler"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = r.wait()
	if got := r.cmd.ProcessState.ExitCode(); got != exitFailed {
		t.Errorf("exit code %d, want %d", got, exitFailed)
	}
	want := "devcluster: dev-1-kube-scheduler: ended: signal: killed\n  end of " + r.dir.log("dev-1-kube-scheduler") + ":\n  "
	got := r.stderr.String()
	if !strings.HasPrefix(got, want) || !strings.Contains(got, "Starting Kubernetes Scheduler") {
		t.Errorf("got\n%s\nwant\n%s...", got, want)
	}
	r.wantGone(t)
}

// TestBadArgument is a child that never becomes ready.
func TestBadArgument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out, stderr bytes.Buffer
	cmd := exec.Command(self(t), mainVerb, "up", "--dir", dir, "--apiserver-arg", "frobnicate=1")
	cmd.Stdout, cmd.Stderr = &out, &stderr
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != exitFailed {
		t.Errorf("exit code %d, want %d", got, exitFailed)
	}
	for _, want := range []string{"devcluster: dev-1-kube-apiserver: ended: exit status 1", "unknown flag: --frobnicate"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no %q in\n%s", want, &stderr)
		}
	}
	if out.Len() > 0 {
		t.Errorf("on standard output: %s", &out)
	}
	if _, err := os.Stat(filepath.Join(dir, "kubeconfig")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("kubeconfig: %v", err)
	}
}
