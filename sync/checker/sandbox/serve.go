// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
)

// Served is a program that answers requests until it is stopped: it reads them from its
// standard input, and writes to its standard output, which is its standard error too. It
// is for one goroutine, but for Stop.
type Served struct {
	process *process
	ended   chan struct{}
	once    sync.Once

	mu  sync.Mutex
	why string
}

var _ io.ReadWriter = (*Served)(nil)

// Serve starts a program that answers requests. Of its limits, Wall and Output are not
// looked at, because a request has them and not the program.
func Serve(c Command) (*Served, error) {
	l, err := strongest()
	if err != nil {
		return nil, err
	}
	c.Limits = c.Limits.filled()
	s := stage{Command: c, Level: l.name, Folder: Folder, served: true}
	remove := func() {}
	if !l.privateRoot {
		dir, err := l.privateFolder(c.Files)
		if err != nil {
			return nil, err
		}
		s.Folder, s.Files = dir, nil
		remove = func() { _ = os.RemoveAll(dir) } // a temporary folder
	}
	started := make(chan error, 1)
	served := &Served{ended: make(chan struct{})}
	go func() {
		defer remove()
		// A program is to end with swell, which the kernel takes to be the thread that
		// started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := l.start(s)
		if err != nil {
			started <- err
			return
		}
		served.process = p
		ctx, cancel := context.WithCancel(context.Background())
		go served.hold(watchMemory(ctx, p.cmd.Process.Pid, c.Limits.Memory), c.Limits.Memory)
		started <- nil
		_ = p.cmd.Wait() // how it ended is told by its output
		cancel()
		close(served.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if err := served.begun(); err != nil {
		served.Close()
		return nil, err
	}
	return served, nil
}

// begun waits until the program has its guards, and has read all that is for the stage.
func (s *Served) begun() error {
	told, err := firstOfReports(json.NewDecoder(io.LimitReader(s.process.status, 1<<16)))
	if err == nil && told.Error != "" {
		err = errors.New(told.Error)
	}
	return err
}

// hold ends a program that takes too much memory.
func (s *Served) hold(greedy <-chan struct{}, limit int64) {
	select {
	case <-greedy:
		s.Stop(fmt.Sprintf("it took more than %d MiB of memory", limit>>20))
	case <-s.ended:
	}
}

// Write gives the program a part of a request.
func (s *Served) Write(p []byte) (int, error) { return s.process.input.Write(p) }

// Read reads what the program writes. It ends when the program has ended.
func (s *Served) Read(p []byte) (int, error) { return s.process.output.Read(p) }

// Stop ends the program, and says why to those who ask. It may be called again, and from
// any goroutine.
func (s *Served) Stop(why string) {
	s.mu.Lock()
	if s.why == "" {
		s.why = why
	}
	s.mu.Unlock()
	s.once.Do(func() {
		select {
		case <-s.ended: // the number may be another process' by now
		default:
			kill(s.process.cmd.Process.Pid)
		}
		_ = s.process.input.Close() // nobody reads it any more
	})
}

// Close ends the program, and gives back what it took.
func (s *Served) Close() {
	s.Stop("")
	<-s.ended
	closeAll([]*os.File{s.process.output, s.process.status})
}

// Stopped says why the program was ended from outside; empty when it was not.
func (s *Served) Stopped() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}
