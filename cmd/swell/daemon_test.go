// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/swell-sh/swell/sync/demo"
	"github.com/swell-sh/swell/sync/devcluster"
	"github.com/swell-sh/swell/sync/devcluster/devtest"
	"github.com/swell-sh/swell/sync/simulator"
	"github.com/swell-sh/swell/sync/simulator/loopback"
)

// asProgram makes the test binary the program itself, see TestMain.
const asProgram = "SWELL_TEST_AS_PROGRAM"

func program(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// stage is clusters, a repository with the example and a configuration of
// the daemon.
type stage struct {
	*testing.T
	repo     *demo.Repository
	clusters map[string]*demo.Live
	config   string
	real     []string         // those of the clusters that are real API servers
	logs     string           // where the audit logs of real API servers are
	read     map[string]int64 // of them, by cluster
}

// newStage is on simulated clusters: all of swell is real, the program and Git included.
func newStage(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	configs := map[string]*rest.Config{}
	if err := os.Mkdir(filepath.Join(dir, "clusters"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range demo.Clusters {
		c := simulator.New()
		configs[name] = c.Config()
		serveCluster(t, c, filepath.Join(dir, "clusters", name+".yaml"))
	}
	return stageOn(t, dir, "  kubeconfigDir: clusters\n", configs)
}

// serveCluster serves a simulated cluster until the test ends, and writes its kubeconfig, with a
// context that is called like the file.
func serveCluster(t *testing.T, c *simulator.Cluster, kubeconfig string) {
	t.Helper()
	server := loopback.Start(c)
	t.Cleanup(server.Close)
	if err := clientcmd.WriteToFile(*server.Kubeconfig(strings.TrimSuffix(filepath.Base(kubeconfig), ".yaml")), kubeconfig); err != nil {
		t.Fatal(err)
	}
}

// newServerStage is on real API servers with their controllers, where they are named: the
// other clusters are simulated.
func newServerStage(t *testing.T, real ...string) *stage {
	t.Helper()
	binary := devtest.Binary(t)
	dir := t.TempDir()
	clusters, err := devcluster.Start(t.Context(), binary, filepath.Join(dir, "clusters"), real, "--audit")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clusters.Stop)
	text := "  clusters:\n"
	configs := map[string]*rest.Config{}
	for _, name := range demo.Clusters {
		kubeconfig := "clusters/kubeconfig"
		if slices.Contains(real, name) {
			configs[name], err = clusters.Config(name)
		} else {
			kubeconfig = name + ".yaml"
			c := simulator.New()
			configs[name] = c.Config()
			serveCluster(t, c, filepath.Join(dir, kubeconfig))
		}
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("  - {name: %s, kubeconfig: %s}\n", name, kubeconfig)
	}
	s := stageOn(t, dir, text, configs)
	s.real, s.logs, s.read = real, clusters.Dir, map[string]int64{}
	return s
}

// stageOn makes the repository and the configuration. access is what the configuration
// says of the clusters.
func stageOn(t *testing.T, dir, access string, configs map[string]*rest.Config) *stage {
	t.Helper()
	s := &stage{T: t, clusters: map[string]*demo.Live{}, config: filepath.Join(dir, "daemon.yaml")}
	var err error
	if s.repo, err = demo.NewRepository(t.Context(), dir, demo.Audience); err != nil {
		t.Fatal(err)
	}
	// Nothing that these tests release is ill. What is late on a slow machine is not.
	patient := strings.NewReplacer("soak: 3s", "soak: 0s", "timeout: 15s", "timeout: 10m").Replace(demo.Rollout)
	text := "apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: test}\nspec:\n  repository: {url: monorepo.git, branch: main, poll: 1s}\n" + access
	if err := errors.Join(
		s.repo.Write("fleet/rollout.yaml", patient),
		s.repo.Push(t.Context(), "The example"),
		os.WriteFile(s.config, []byte(text), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range configs {
		client, err := dynamic.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.clusters[name] = &demo.Live{Client: client}
	}
	return s
}

// objects counts what swell has in all clusters.
func (s *stage) objects() int {
	s.Helper()
	n := 0
	for _, cluster := range s.clusters {
		count, err := cluster.Managed(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		n += count
	}
	return n
}

// once runs swell run --once and returns its output.
func (s *stage) once(wantCode int) string {
	s.Helper()
	var stderr bytes.Buffer
	cmd := program(s.Context(), "run", "--once", "-c", s.config)
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != wantCode {
		s.Fatalf("exit code %d, want %d\n%s\n%s", code, wantCode, out, stderr.String())
	}
	return string(out)
}

// TestKill kills the daemon again and again in the middle of the first
// release and of a change with a deletion; what comes after converges to what
// one undisturbed run gives. Then it is killed at chosen moments of each wave.
func TestKill(t *testing.T) {
	t.Parallel()
	s := newServerStage(t, demo.Clusters...)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 8 {
		s.disturb(random, []os.Signal{syscall.SIGKILL, syscall.SIGTERM}[i%4/3])
	}
	s.once(0)
	if got := s.objects(); got != 378 {
		t.Errorf("after the first release: %d objects, want 378", got)
	}
	if err := errors.Join(
		s.repo.Replace(demo.CartFile, "cart:1.4.2", "cart:1.4.3"),
		os.RemoveAll(filepath.Join(s.repo.Work, "services/shop/recommend")),
		s.repo.Push(t.Context(), "cart 1.4.3, no recommend"),
	); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		s.disturb(random, syscall.SIGKILL)
	}
	s.once(0)
	if got := s.objects(); got != 378-4 {
		t.Errorf("after the change: %d objects, want 374", got)
	}
	for _, target := range demo.CartTargets {
		d, err := s.clusters[target.Cluster].Deployment(t.Context(), target.Namespace, "cart")
		if err != nil {
			t.Fatal(err)
		}
		if d.Image != demo.CartImage+"1.4.3" {
			t.Errorf("cart in %s runs %s", target.Namespace, d.Image)
		}
	}
	if out := s.once(0); !strings.HasSuffix(out, " 0 objects written\n") {
		t.Errorf("a run over nothing changed says %q", out)
	}
	s.status()
	s.killInEachWave()
}

// disturb runs the daemon and sends it a signal after a while of up to 1.2 s. A process
// that was started in the background may ignore SIGINT until it listens: it is lost then.
func (s *stage) disturb(random *rand.Rand, signal os.Signal) {
	s.Helper()
	cmd := program(s.Context(), "run", "-c", s.config)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	sent := make(chan error, 1)
	timer := time.AfterFunc(time.Duration(20+random.IntN(1200))*time.Millisecond, func() { sent <- cmd.Process.Signal(signal) })
	defer timer.Stop()
	// Where it hangs, it says where everything is.
	quit := time.AfterFunc(2*stopPatience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	err := cmd.Wait()
	if !quit.Stop() {
		s.Fatalf("it did not end with %s, which was sent with the error %v: %s", signal, <-sent, stderr.String())
	}
	// Before it has said a word the program does not listen to signals yet.
	if signal == syscall.SIGTERM && err != nil && stderr.Len() > 0 {
		s.Errorf("an interrupt ended with %v: %s", err, stderr.String())
	}
	if strings.Contains(stderr.String(), "panic") {
		s.Error(stderr.String())
	}
}

// status reads the state, also while a daemon runs.
func (s *stage) status() {
	s.Helper()
	daemon := program(s.Context(), "run", "-c", s.config)
	if err := daemon.Start(); err != nil {
		s.Fatal(err)
	}
	defer func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	}()
	out, code := verb(s.Context(), "", "status", "-c", s.config)
	if code != 0 {
		s.Fatalf("status: exit code %d\n%s", code, out)
	}
	for _, want := range []string{"UNIT", "services/shop/cart", "done", "4/4"} {
		if !strings.Contains(out, want) {
			s.Errorf("status says\n%s\nwant %q in it", out, want)
		}
	}
	if strings.Contains(string(out), "recommend") {
		s.Errorf("status still shows the removed unit:\n%s", out)
	}
}
