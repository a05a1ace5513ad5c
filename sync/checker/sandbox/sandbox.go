// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package sandbox runs one program on some files, kept apart from the machine as
// far as the kernel allows: it sees its own files and the programs of the system,
// reaches no network, and ends with all that it started. It knows nothing of what
// the program is for.
//
// The program is started through this binary itself, which puts the guards on and
// becomes the program; see stage.go. Importing this package is enough for that.
package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Command is a program and what it may use.
type Command struct {
	// Program is the absolute path of a program of this machine.
	Program string
	// Args follow the program's name.
	Args []string
	// Files are put into the private folder, [Folder] where there is a private root.
	Files []File
	// Read are further files and folders of this machine that the program may read.
	Read []string
	// Folders are absolute paths at which the program finds empty folders of its own.
	// They exist only where there is a private root.
	Folders []string
	// Hosts are names that lead to the sandbox itself, and Users names of users, so
	// that a program that looks them up finds them. They are known only where there is
	// a private root.
	Hosts, Users []string
	// Limits of zero are those of [DefaultLimits].
	Limits Limits
	// Required refuses to run the program where a guard is missing.
	Required bool
}

// File is a file of the private folder.
type File struct {
	Name    string // without slashes
	Content []byte
}

// Limits bound one run.
type Limits struct {
	Wall, CPU time.Duration
	Memory    int64 // bytes, of all processes together
	FileSize  int64 // bytes, of one file; of all together where there is a private root
	Output    int64 // bytes
	Processes int   // and threads
	OpenFiles int
}

// DefaultLimits are enough for the programs that swell has recipes for.
var DefaultLimits = Limits{Wall: 20 * time.Second, CPU: 10 * time.Second, Memory: 1 << 30, FileSize: 64 << 20, Output: 256 << 10, Processes: 64, OpenFiles: 256}

func (l Limits) filled() Limits {
	d := DefaultLimits
	return Limits{Wall: cmp.Or(l.Wall, d.Wall), CPU: cmp.Or(l.CPU, d.CPU), Memory: cmp.Or(l.Memory, d.Memory), FileSize: cmp.Or(l.FileSize, d.FileSize),
		Output: cmp.Or(l.Output, d.Output), Processes: cmp.Or(l.Processes, d.Processes), OpenFiles: cmp.Or(l.OpenFiles, d.OpenFiles)}
}

// Result is what was seen of a run.
type Result struct {
	// Output is what the program wrote to standard output and standard error, in this
	// order of time, up to the limit.
	Output []byte
	// Exit is the exit code; -1 when the program was ended by a signal.
	Exit int
	// Signal says how the program ended where a signal ended it that nobody sent from
	// outside: it crashed, or met a limit of the system. Empty otherwise.
	Signal string
	// Stopped says why the program was ended from outside; empty when it ended by
	// itself.
	Stopped string
	// Hasty is set when it was ended for a reason that may be the machine's: a busy one
	// is slow.
	Hasty bool
	// Folder is where the program found its files.
	Folder string
	// Guards are what was in force, for people.
	Guards []string
	Took   time.Duration

	missing []string // see [Guards]
}

// Folder is the private folder inside a private root.
const Folder = "/check"

// Run runs a program until it ends, or is ended by a limit or by ctx. It is an error
// when it could not be started with the guards that there should be, or when ctx
// ended.
func Run(ctx context.Context, c Command) (Result, error) {
	level, err := strongest()
	if err != nil {
		return Result{}, err
	}
	return level.run(ctx, c)
}

// Guards are those that this machine gives, for people.
type Guards struct {
	Active  []string
	Missing []string // of those that a machine can give
}

// Here are the guards of this machine. It is an error where no program can be run.
func Here() (Guards, error) {
	level, err := strongest()
	return level.Guards, err
}

// refuse is an error where a guard is missing.
func (g Guards) refuse() error {
	if len(g.Missing) == 0 {
		return nil
	}
	const text = "spec.sandbox is required, and this machine does not give these guards: %s: swell doctor says what to do"
	return fmt.Errorf(text, strings.Join(g.Missing, ", "))
}

// run is [Run] at a level.
func (l level) run(ctx context.Context, c Command) (Result, error) {
	c.Limits = c.Limits.filled()
	for _, f := range c.Files {
		if f.Name == "" || filepath.Base(f.Name) != f.Name || strings.HasPrefix(f.Name, "..") || f.Name == "." {
			return Result{}, fmt.Errorf("file %q: want a name without slashes", f.Name)
		}
	}
	s := stage{Command: c, Level: l.name, Folder: Folder}
	if !l.privateRoot {
		dir, err := l.privateFolder(c.Files)
		if err != nil {
			return Result{}, err
		}
		defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
		s.Folder, s.Files = dir, nil
	}
	return l.stage(ctx, s)
}

// stage starts a program and waits for its end.
func (l level) stage(ctx context.Context, s stage) (Result, error) {
	// A program is to end with swell, which the kernel takes to be the thread that
	// started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := l.start(s)
	if err != nil {
		return Result{}, err
	}
	return p.wait(ctx, s)
}

// process is a program under way.
type process struct {
	cmd    *exec.Cmd
	input  *os.File // of one that is served; else closed
	output *os.File
	status *os.File
}

// stageName is what this binary is called when it is to become a program.
const stageName = "swell-sandbox"

// start starts this binary as the stage of a program.
func (l level) start(s stage) (*process, error) {
	if s.Required {
		if err := l.refuse(); err != nil {
			return nil, err
		}
	}
	self, err := selfPath()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var opened []*os.File
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				opened = append(opened, r, w)
			}
		}
		return r, w
	}
	in, give := pipe()
	var extra []*os.File
	output, written := pipe()
	status, said := pipe()
	if err != nil {
		closeAll(opened)
		return nil, err
	}
	l.own(written)       // /dev/stdout is opened anew by those who write to it by that name
	if s.Program != "" { // by this, since the user that it runs as may not reach it
		program, err := os.Open(s.Program)
		if err != nil {
			closeAll(opened)
			return nil, err
		}
		defer closeAll([]*os.File{program})
		extra = append(extra, program)
	}
	cmd := &exec.Cmd{Path: self, Args: []string{stageName}, Env: []string{}, Dir: "/", Stdin: in, Stdout: written, Stderr: written,
		ExtraFiles: append([]*os.File{said}, extra...), SysProcAttr: l.attributes()}
	if err := cmd.Start(); err != nil {
		closeAll(opened)
		return nil, err
	}
	closeAll([]*os.File{in, written, said})
	go func() {
		_, _ = give.Write(text) // an error is that of a process that is gone, which says why
		if !s.served {
			_ = give.Close()
		}
	}()
	return &process{cmd, give, output, status}, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// said is what the stage reports before it becomes the program, and once more when it
// cannot.
type said struct {
	Guards, Missing []string
	Error           string
}

// wait waits for the end of the program, and holds it to the limits.
func (p *process) wait(ctx context.Context, s stage) (Result, error) {
	begun := time.Now()
	defer closeAll([]*os.File{p.output, p.status})
	limits := s.Limits
	bounded, cancel := context.WithTimeout(ctx, limits.Wall)
	defer cancel()
	flooded, read := make(chan struct{}), make(chan []byte, 1)
	go func() { read <- readBounded(p.output, limits.Output, flooded) }()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	r := Result{Folder: s.Folder}
	greedy := watchMemory(bounded, p.cmd.Process.Pid, limits.Memory)
	var err error
	select {
	case err = <-ended:
	case <-flooded:
		r.Stopped = fmt.Sprintf("it wrote more than %d KiB of output", limits.Output>>10)
	case <-greedy:
		r.Stopped = fmt.Sprintf("it took more than %d MiB of memory", limits.Memory>>20)
	case <-bounded.Done():
		r.Stopped, r.Hasty = fmt.Sprintf("it was not done after %s", limits.Wall), true
	}
	kill(p.cmd.Process.Pid)
	if r.Stopped != "" {
		err = <-ended
	}
	r.Output, r.Took = <-read, time.Since(begun)
	told, bad := p.told()
	if r.Guards, r.missing = told.Guards, told.Missing; bad != nil && ctx.Err() == nil && r.Stopped == "" {
		return r, bad
	}
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	return r, r.judge(err, p.cmd.ProcessState, limits)
}

// told reads what the stage reported.
func (p *process) told() (said, error) {
	reports := json.NewDecoder(io.LimitReader(p.status, 1<<16))
	told, err := firstOfReports(reports)
	if err != nil {
		return told, err
	}
	var failed said
	if err := reports.Decode(&failed); err != nil && !errors.Is(err, io.EOF) {
		return told, fmt.Errorf("what the sandbox reports cannot be read: %w", err)
	}
	if bad := cmp.Or(told.Error, failed.Error); bad != "" {
		return told, errors.New(bad)
	}
	return told, nil
}

// firstOfReports is what the stage reports before it becomes the program.
func firstOfReports(reports *json.Decoder) (told said, err error) {
	if err := reports.Decode(&told); err != nil {
		return told, errors.New("the sandbox did not start")
	}
	return told, nil
}

// judge takes up how the program ended.
func (r *Result) judge(err error, state *os.ProcessState, limits Limits) error {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	r.Exit = state.ExitCode()
	status, ok := state.Sys().(syscall.WaitStatus)
	if r.Stopped != "" || !ok || !status.Signaled() {
		return nil
	}
	if status.Signal() != syscall.SIGKILL {
		r.Signal = endedBy(status.Signal(), limits)
		return nil
	}
	// The limit of CPU counts whole ticks, also where others ran in one of them.
	if used := state.UserTime() + state.SystemTime(); used >= limits.CPU/2 {
		r.Stopped = fmt.Sprintf("it took more than %s of CPU", limits.CPU)
	} else {
		r.Stopped, r.Hasty = "something on this machine killed it, as a kernel does that is short of memory", true
	}
	return nil
}

// endedBy says what a signal tells of how a program ended.
func endedBy(signal syscall.Signal, limits Limits) string {
	why := ""
	switch signal {
	case syscall.SIGXCPU:
		why = fmt.Sprintf(": it took more than %s of CPU", limits.CPU)
	case syscall.SIGXFSZ:
		why = fmt.Sprintf(": it wrote a file of more than %d MiB", limits.FileSize>>20)
	case syscall.SIGSYS:
		why = ": it asked the system for what the sandbox does not allow"
	case syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGBUS:
		why = fmt.Sprintf(": it crashed, as a program may that gets no more memory than %d MiB", limits.Memory>>20)
	}
	return fmt.Sprintf("signal %d (%s)%s", int(signal), signal, why)
}

// readBounded reads to the end, or up to a limit, which it tells.
func readBounded(from io.Reader, limit int64, flooded chan<- struct{}) []byte {
	text, _ := io.ReadAll(io.LimitReader(from, limit+1)) // what was read counts
	if int64(len(text)) > limit {
		close(flooded)
		text = text[:limit]
	}
	return text
}
