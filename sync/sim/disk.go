// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	gosync "sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// disk has the state, and copies of it that were made while no process ran. What a
// process committed is on it; what was in a transaction when the process was killed
// is not.
type disk struct {
	world  *world
	dir    string
	copies []saved
	full   atomic.Bool // nothing more can be written
	memory             // what the judge knew of it when another daemon took over
}

// errFull is what a transaction ends with when the disk is full.
var errFull = fmt.Errorf("write state: %w", syscall.ENOSPC)

// saved is a copy of the state, with what the judge knew that it holds.
type saved struct {
	content []byte
	memory
}

func (d *disk) file() string { return filepath.Join(d.dir, "state.db") }

// keep makes a copy. No process runs.
func (d *disk) keep() {
	content, err := os.ReadFile(d.file())
	if err != nil {
		return // there is none
	}
	if _, err := os.Stat(d.file() + "-wal"); err == nil {
		return // not all of it is in the file
	}
	if len(d.copies) > 8 {
		d.copies = d.copies[1:]
	}
	d.copies = append(d.copies, saved{content, d.world.judge.memory.clone()})
}

func (d *disk) lose() {
	if err := os.RemoveAll(d.dir); err != nil {
		panic(err)
	}
}

// putBack puts a copy in the place of the state.
func (d *disk) putBack(s saved) {
	d.lose()
	if err := errors.Join(os.MkdirAll(d.dir, 0o700), os.WriteFile(d.file(), s.content, 0o600)); err != nil {
		panic(err)
	}
}

// process is one run of the daemon's program.
type process struct {
	world  *world
	disk   *disk
	number int
	store  *store.Store
	cancel context.CancelFunc
	over   chan struct{}
	err    error

	since   time.Duration // when it started, as the judge counts
	second  bool          // it is the second daemon, or was it when it ended
	passed  time.Time     // when the last pass was
	passes  int           // at that moment
	inARow  int           // with short pauses between them
	asks    bool          // Git is asked
	refused bool          // Git did not answer at least once
	asked   time.Time     // when Git was asked last, or else when it started

	mu      gosync.Mutex
	dead    bool
	strike  int    // at how many more points of the store it dies; zero is never
	struck  string // where it died
	commits int    // transactions that went through
}

var errKilled = errors.New("the process was killed")

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// hasTaken says that a commit was taken, by what the state has. Of a process that is over, nobody
// knows.
func (p *process) hasTaken() bool {
	newest, err := p.store.Brought()
	return err == nil && newest.Commit != ""
}

// die has nothing more of the process happen.
func (p *process) die() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.cancel()
}

// point is a place where the process may be killed.
func (p *process) point(where string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return true
	}
	if p.strike > 0 {
		if p.strike--; p.strike == 0 {
			p.dead, p.struck = true, where
			go p.cancel()
			return true
		}
	}
	return false
}

// state is the store as a process has it.
type state struct {
	*store.Store
	process *process
}

func (s *state) Update(ctx context.Context, do func(*store.Tx) error) error {
	p := s.process
	if p.point("before a transaction") {
		return errKilled
	}
	err := s.Store.Update(ctx, func(tx *store.Tx) error {
		if err := do(tx); err != nil {
			return err
		}
		if p.disk.full.Load() {
			return errFull
		}
		if p.point("before a commit") {
			return errKilled
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.commits++
	p.mu.Unlock()
	if p.point("after a commit") {
		return errKilled
	}
	return nil
}

func (s *state) PinCluster(ctx context.Context, name, uid string, belongs func() bool) (string, error) {
	if s.process.point("before a pin") {
		return "", errKilled
	}
	if s.process.disk.full.Load() {
		return "", errFull
	}
	return s.Store.PinCluster(ctx, name, uid, belongs)
}

// source is Git as a process has it.
type source struct{ process *process }

func (s source) Fetch(ctx context.Context) (config.Commit, error) {
	return s.process.world.git.fetch(ctx, s.process)
}

func (s source) Hurry() {}

func (s source) Tree(id config.Commit) (config.Tree, error) {
	return s.process.world.git.treeOf(id)
}

func (s source) Between(from, to config.Commit) ([]config.Commit, error) {
	return s.process.world.git.between(from, to)
}

// start starts the daemon on the state that is there.
func (w *world) start() {
	if w.process = w.run(w.disk); w.process != nil {
		w.judge.lineage[w.process.number] = w.judge.generation
	}
}

// run starts a daemon on a disk; nil where that fails.
func (w *world) run(on *disk) *process {
	p := &process{world: w, disk: on, number: w.processes, over: make(chan struct{}), asked: time.Now(), since: w.judge.elapsed}
	w.processes++
	w.judge.unnoticed()
	w.stats.now.processes++
	var err error
	if p.store, err = store.Open(on.dir); err != nil {
		w.judge.objectf("state", "the state cannot be opened: %v", err)
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	clusters := map[string]config.ClusterAccess{}
	for _, name := range w.shape.clusters {
		clusters[name] = config.ClusterAccess{}
	}
	schedule := every(10 * time.Minute)
	if w.shape.seldom {
		schedule = every(24 * time.Hour)
	}
	d, err := sync.Open(sync.Options{
		Source: source{p}, Store: &state{p.store, p}, Clusters: clusters, Poll: 30 * time.Second,
		Reach: func(name string) *rest.Config {
			return &rest.Config{Host: "http://simulator.invalid", Transport: &transport{p, name}, QPS: -1}
		},
		Connection: apply.Options{Concurrency: 1 << 20, FirstConcurrency: 1 << 20, Jitter: func(d time.Duration) time.Duration { return d }},
		Drift:      config.Drift{Schedule: schedule, Location: time.UTC, Watch: w.shape.watch},
		Log:        w.logger(), Now: w.now, Steady: func() time.Duration { return time.Since(w.begun) },
		Operators: operators(), Authors: w.git.authors,
		Endpoints: map[string]config.Endpoint{checks: {URL: "http://checks.invalid"}}, EndpointTransport: &transport{p, checks},
		Observe: func(r sync.Record, s *rollout.State) { w.judge.observe(p, r, s) },
	})
	if err != nil {
		w.judge.objectf("state", "the daemon does not open: %v", err)
		return nil
	}
	go func() {
		p.err = d.Run(ctx)
		close(p.over)
		w.arrive()
	}()
	return p
}

// every is a schedule.
type every time.Duration

func (e every) Next(t time.Time) time.Time { return t.Truncate(time.Duration(e)).Add(time.Duration(e)) }

// end waits until nothing is left of a process that was killed or told to stop.
func (w *world) end(p *process) {
	w.gate.cutOf(p)
	for i := 0; ; i++ {
		w.settle()
		select {
		case <-p.over:
		default:
			if i > 10_000 {
				panic("sim: a process does not end")
			}
			time.Sleep(50 * time.Millisecond)
			w.judge.elapsed += 50 * time.Millisecond
			continue
		}
		break
	}
	if err := p.store.Close(); err != nil {
		panic(fmt.Sprintf("sim: close: %v", err))
	}
	if w.rival == p {
		w.rival = nil
	} else {
		w.process = nil
	}
}
