// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/demo"
	"github.com/swell-sh/swell/sync/devcluster"
	"github.com/swell-sh/swell/sync/plain"
	"github.com/swell-sh/swell/testdata/large"
)

// heapFile, where it is set in the environment of a program, is where that
// writes what it holds, whenever it gets SIGUSR1: FILE is a heap profile and
// FILE.json the [runtime.MemStats], after a garbage collection.
const heapFile = "SWELL_TEST_HEAP"

func tellHeap() {
	file := os.Getenv(heapFile)
	if file == "" {
		return
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			runtime.GC()
			if err := writeHeap(file); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
}

func writeHeap(file string) error {
	profile, err := os.Create(file)
	if err != nil {
		return err
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	text, err := json.Marshal(stats)
	draft := file + ".draft"
	return errors.Join(err, pprof.Lookup("heap").WriteTo(profile, 0), profile.Close(),
		os.WriteFile(draft, text, 0o644), os.Rename(draft, file+".json"))
}

// many is a fleet of two clusters with as many units of ConfigMaps, and the
// daemon as a process of its own.
type many struct {
	*testing.B
	dir   string
	units int
	// size is that of a unit's objects in one cluster, as they are sent, in bytes.
	size int

	extra    string // of the daemon's configuration, below spec
	clusters *devcluster.Clusters
	daemon   *exec.Cmd
	lines    chan logLine
	last     logLine
	read     map[string]int64 // of the audit logs
}

// logLine is a line of the daemon's log.
type logLine struct {
	Time    time.Time
	Level   string
	Msg     string
	Unit    string
	Created int
	Swept   int
	Err     string
}

const (
	objectsPerUnit = 250
	manyFleet      = `apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: dev-1}
spec: {cells: [{name: x}]}
---
apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: dev-2}
spec: {cells: [{name: x}]}
---
apiVersion: swell.sh/v1
kind: Rollout
metadata: {name: default}
spec: {waves: [{name: all, timeout: 20m}]}
`
)

func newMany(b *testing.B, objects int) *many {
	b.Helper()
	binary, err := devcluster.Find(filepath.Join("..", "..", "bin", "devcluster"))
	if err != nil {
		b.Skip(err)
	}
	m := &many{B: b, dir: b.TempDir(), units: objects / objectsPerUnit / 2, read: map[string]int64{}}
	m.clusters, err = devcluster.Start(b.Context(), binary, filepath.Join(m.dir, "clusters"), []string{"dev-1", "dev-2"}, "--audit")
	m.must(err)
	b.Cleanup(m.clusters.Stop)

	files := map[string]string{
		"swell.yaml":          "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: many}\nspec: {}\n",
		"fleet/fleet.yaml":    manyFleet,
		"services/swell.yaml": "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: many, placement: {topology: cell}}\n",
	}
	for unit := range m.units {
		var docs strings.Builder
		for i := range objectsPerUnit {
			docs.WriteString(large.ConfigMap(fmt.Sprintf("many-%02d", unit%20), fmt.Sprintf("unit%03d-config%03d", unit, i)) + "---\n")
		}
		files[fmt.Sprintf("services/unit%03d/objects.yaml", unit)] = docs.String()
		if unit < 20 {
			files["services/spaces/spaces.yaml"] += fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: many-%02d}\n---\n", unit)
		}
	}
	repo := &demo.Repository{Work: filepath.Join(m.dir, "repo")}
	for name, content := range files {
		m.must(os.MkdirAll(filepath.Dir(filepath.Join(repo.Work, name)), 0o755))
		m.must(repo.Write(name, content))
	}
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main", repo.Work}, {"-C", repo.Work, "add", "--all"}, {"-C", repo.Work, "commit", "--quiet", "--message", "many"}} {
		m.must(repo.Git(b.Context(), args...))
	}
	snapshot := (&render.Compiler{}).Snapshot("", config.Files(os.DirFS(repo.Work)))
	bundle, err := snapshot.Bundle("services/unit000", "dev-1/x")
	m.must(err)
	if bundle == nil {
		b.Fatal(snapshot.Problems)
	}
	for _, o := range bundle.Objects {
		m.size += len(o.JSON)
	}
	return m
}

func (m *many) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *many) objects() int { return 2 * m.units * objectsPerUnit }

// start starts the daemon with a schedule of sweeps.
func (m *many) start(schedule string) {
	m.Helper()
	file := filepath.Join(m.dir, "daemon.yaml")
	m.must(os.WriteFile(file, []byte(`apiVersion: swell.sh/v1
kind: Daemon
metadata: {name: many}
spec:
  repository: {url: repo, branch: main, poll: 24h}
  clusters: [{name: dev-1, kubeconfig: clusters/kubeconfig}, {name: dev-2, kubeconfig: clusters/kubeconfig}]
  drift: {schedule: "`+schedule+`", jitter: 0s}
`+m.extra), 0o644))
	m.daemon = program(m.Context(), "run", "-c", file, "--log", "json")
	m.daemon.Env = append(m.daemon.Env, heapFile+"="+filepath.Join(m.dir, "heap"))
	stderr, err := m.daemon.StderrPipe()
	m.must(err)
	m.must(m.daemon.Start())
	lines := make(chan logLine, 1000)
	m.lines = lines
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
			var line logLine
			if json.Unmarshal(scanner.Bytes(), &line) != nil {
				line.Err = scanner.Text()
			}
			lines <- line
		}
	}()
}

// until reads the log up to the line that is asked for.
func (m *many) until(what string, is func(logLine) bool) logLine {
	m.Helper()
	for line := range m.lines {
		m.last = line
		if is(line) {
			return line
		}
	}
	m.Fatalf("%s: the daemon has ended, its last word was %+v", what, m.last)
	return logLine{}
}

func (m *many) stop() {
	m.Helper()
	m.must(m.daemon.Process.Signal(os.Interrupt))
	for range m.lines {
	}
	m.must(m.daemon.Wait())
}

// resident is what the daemon has in memory, and the most that it had, in bytes.
func (m *many) resident() (now, most float64) {
	m.Helper()
	now, most, err := residentOf(m.daemon.Process.Pid)
	if errors.Is(err, os.ErrNotExist) {
		m.Skip("no /proc to read the daemon's memory from")
	}
	m.must(err)
	return now, most
}

// residentOf is what a process has in memory, and the most that it had, in bytes.
func residentOf(pid int) (now, most float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[2] == "kB" {
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				return 0, 0, err
			}
			switch fields[0] {
			case "VmRSS:":
				now = float64(n << 10)
			case "VmHWM:":
				most = float64(n << 10)
			}
		}
	}
	return now, most, nil
}

// holds logs what the daemon holds.
func (m *many) holds(when string) {
	m.Helper()
	file := filepath.Join(m.dir, "heap")
	now, most := m.resident()
	m.must(m.daemon.Process.Signal(syscall.SIGUSR1))
	var text []byte
	for {
		var err error
		if text, err = os.ReadFile(file + ".json"); err == nil {
			break
		}
		if m.Context().Err() != nil || !errors.Is(err, os.ErrNotExist) {
			m.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
	m.must(os.Remove(file + ".json"))
	var s runtime.MemStats
	m.must(json.Unmarshal(text, &s))
	m.Logf("%s: resident %.0f MiB, at most %.0f; after a collection %.0f MiB of heap in use, %.0f of objects, %.0f of stacks, %.0f from the system; of %s",
		when, mib(now), mib(most), mib(float64(s.HeapInuse)), mib(float64(s.HeapAlloc)), mib(float64(s.StackInuse)), mib(float64(s.Sys)), m.makers(file))
}

// makers are those who made most of what is in a heap profile. A benchmark's log
// must be short.
func (m *many) makers(profile string) string {
	m.Helper()
	top, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount=6", "-unit=mb", os.Args[0], profile).Output()
	m.must(err)
	_, table, _ := strings.Cut(string(top), "cum%\n")
	var makers []string
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 5 {
			makers = append(makers, fields[0]+" "+fields[5][strings.LastIndexByte(fields[5], '/')+1:])
		}
	}
	return strings.Join(makers, ", ")
}

func mib(bytes float64) float64 { return bytes / (1 << 20) }

// asked is what the daemon asked of the API servers since the last time, and
// when it began to.
func (m *many) asked() (requests int, began time.Time) {
	m.Helper()
	for _, name := range []string{"dev-1", "dev-2"} {
		file, err := os.Open(filepath.Join(m.clusters.Dir, name+"-audit.log"))
		m.must(err)
		defer file.Close()
		_, err = file.Seek(m.read[name], 0)
		m.must(err)
		for lines := bufio.NewReader(file); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break // an unfinished line is for the next time
			}
			m.read[name] += int64(len(line))
			var event struct {
				Stage, UserAgent         string
				RequestReceivedTimestamp time.Time
				ObjectRef                struct{ Resource string }
			}
			m.must(json.Unmarshal(line, &event))
			if event.UserAgent != "swell" || event.Stage != "ResponseComplete" || event.ObjectRef.Resource == "leases" {
				continue // a Lease is renewed whatever else is done
			}
			requests++
			if at := event.RequestReceivedTimestamp; began.IsZero() || at.Before(began) {
				began = at
			}
		}
	}
	return requests, began
}

// BenchmarkMany is the daemon as a process of its own with 100,000 objects in two
// clusters, or as many as SWELL_OBJECTS says: its memory, its state file, how
// long it takes to start again until its first pass is over, and a sweep. Sizes
// are held against those of the objects as they are sent, the start against the
// first release, and the sweep against a plain LIST of the same metadata.
func BenchmarkMany(b *testing.B) {
	objects, err := strconv.Atoi(cmp.Or(os.Getenv("SWELL_OBJECTS"), "100000"))
	if err != nil {
		b.Fatal(err)
	}
	m := newMany(b, objects)
	for b.Loop() { // once: there is but one first release
		began := time.Now()
		m.start("off")
		created, done, half := 0, 0, false
		m.until("the release", func(line logLine) bool {
			created += line.Created
			if line.Msg == "done" {
				done++
			}
			if !half && created > m.objects()/2 {
				half = true
				m.holds("half way through the first release")
			}
			return done == m.units+1
		})
		release := time.Since(began)
		_, peak := m.resident()
		m.holds("after the first release")
		m.stop()
		if created < m.objects() {
			b.Fatalf("%d objects created, want %d", created, m.objects())
		}
		state, err := os.Stat(filepath.Join(m.dir, "state", "state.db"))
		m.must(err)
		m.asked()

		began = time.Now()
		m.start("* * * * *")
		pass := func(line logLine) bool { return line.Msg == "pass" }
		m.until("the first pass", pass)
		restart := time.Since(began)
		_, restartPeak := m.resident()
		m.holds("started again")
		requests, _ := m.asked()
		b.ReportMetric(float64(requests), "restart-requests")
		var end time.Time
		for swept := 0; swept < 2; {
			line := m.until("the sweep", pass)
			swept += line.Swept
			end = line.Time
		}
		requests, first := m.asked()
		now, sweepPeak := m.resident()
		m.holds("after a sweep")
		m.stop()

		listed, took := 0, time.Duration(0)
		for _, name := range []string{"dev-1", "dev-2"} {
			cfg, err := m.clusters.Config(name)
			m.must(err)
			began := time.Now()
			n, err := plain.List(b.Context(), cfg, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
			m.must(err)
			listed, took = listed+n, took+time.Since(began)
		}
		if listed != m.objects() {
			b.Errorf("%d ConfigMaps are there, want %d", listed, m.objects())
		}
		n, sent := float64(m.objects()), float64(2*m.units*m.size)
		b.Logf("%d objects of %.1f MiB: released in %s, started again in %s, swept in %s, a plain LIST takes %s", m.objects(), mib(sent), release, restart, end.Sub(first), took)
		b.ReportMetric(n/release.Seconds(), "released/s")
		b.ReportMetric(mib(peak), "release-peak-MiB")
		b.ReportMetric(mib(restartPeak), "restart-peak-MiB")
		b.ReportMetric(mib(sweepPeak), "sweep-peak-MiB")
		b.ReportMetric(mib(now), "swept-MiB")
		b.ReportMetric(peak/sent, "peak/objects")
		b.ReportMetric(peak/n, "peak-B/object")
		b.ReportMetric(mib(float64(state.Size())), "state-MiB")
		b.ReportMetric(float64(state.Size())/n, "state-B/object")
		b.ReportMetric(float64(state.Size())/sent, "state/objects")
		b.ReportMetric(restart.Seconds(), "restart-s")
		b.ReportMetric(release.Seconds()/restart.Seconds(), "release/restart")
		b.ReportMetric(float64(requests), "sweep-requests")
		b.ReportMetric(end.Sub(first).Seconds(), "sweep-s")
		b.ReportMetric(end.Sub(first).Seconds()/took.Seconds(), "sweep/list")
		b.ReportMetric(0, "ns/op") // holds all
	}
}
