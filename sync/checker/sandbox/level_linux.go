// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// level is a set of guards that the kernel may give.
type level struct {
	name        string
	namespaces  bool
	userSpace   bool // a user namespace of its own
	privateRoot bool
	Guards
}

// levels begin with the strongest one.
var levels = []level{
	{name: "user", namespaces: true, userSpace: true, privateRoot: true},
	{name: "namespaces", namespaces: true, privateRoot: true}, // root, where there are no user namespaces
	{name: "plain"},
}

// probed is what was found out about the levels. A level that is not the strongest one is
// not kept for ever: a machine that is short of processes or memory has the weaker ones
// only for a while.
var probed struct {
	sync.Mutex
	level level
	err   error
	until time.Time // of a weaker level, or of none
}

// probeEvery is how long a weaker level is kept.
const probeEvery = 10 * time.Minute

// strongest is the first level that works here.
func strongest() (level, error) {
	probed.Lock()
	defer probed.Unlock()
	if best := probed.level.name == levels[0].name; best || time.Now().Before(probed.until) {
		return probed.level, probed.err
	}
	probed.level, probed.err = firstOf(levels, level.probe)
	probed.until = time.Now().Add(probeEvery)
	return probed.level, probed.err
}

// firstOf is the first level that a probe finds to work.
func firstOf(levels []level, probe func(level) (Guards, error)) (level, error) {
	var tried []error
	for _, l := range levels {
		if l.name == "namespaces" && os.Geteuid() != 0 {
			continue
		}
		guards, err := probe(l)
		if err == nil {
			l.Guards = guards
			return l, nil
		}
		tried = append(tried, fmt.Errorf("%s: %w", l.name, err))
	}
	return level{}, fmt.Errorf("no sandbox can be made here: %w", errors.Join(tried...))
}

// probe says which guards the level has here.
func (l level) probe() (Guards, error) {
	s := stage{Command: Command{Limits: DefaultLimits}, Level: l.name, Folder: Folder, Probe: true}
	if !l.privateRoot {
		dir, err := l.privateFolder(nil)
		if err != nil {
			return Guards{}, err
		}
		defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
		s.Folder = dir
	}
	r, err := l.stage(context.Background(), s)
	if err == nil && (r.Exit != 0 || r.Stopped != "") {
		err = fmt.Errorf("exit code %d %s: %s", r.Exit, r.Stopped, r.Output)
	}
	return Guards{r.Guards, r.missing}, err
}

// Inside, the program is this user, which owns nothing of the machine. Outside it is
// nobody where swell runs as root, else the user that swell runs as.
const (
	insideUser = 1000
	nobody     = 65534
)

// capabilities are those that the stage needs before it gives up all.
var capabilities = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}

// attributes are how the process is started.
func (l level) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	root := os.Geteuid() == 0
	user := nobody
	if l.namespaces {
		a.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
		a.AmbientCaps = capabilities
	}
	if l.userSpace {
		user = insideUser
		outside, group := os.Geteuid(), os.Getegid()
		if root {
			outside, group = nobody, nobody
		}
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: outside, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: group, Size: 1}}
		a.GidMappingsEnableSetgroups = root
	}
	if root || l.userSpace {
		a.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
	}
	return a
}

// privateFolder is a new folder with files, for the user of the program.
func (l level) privateFolder(files []File) (string, error) {
	dir, err := os.MkdirTemp("", "swell-check-")
	if err != nil {
		return "", err
	}
	err = writeFiles(dir, files)
	if os.Geteuid() == 0 {
		for _, f := range files {
			err = errors.Join(err, os.Chown(filepath.Join(dir, f.Name), nobody, nobody))
		}
		err = errors.Join(err, os.Chown(dir, nobody, nobody))
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// own gives a pipe to the user of the program.
func (l level) own(pipe *os.File) {
	if os.Geteuid() == 0 {
		_ = pipe.Chown(nobody, nobody) // else it cannot be opened by a name
	}
}

func selfPath() (string, error) { return "/proc/self/exe", nil }

// kill ends a process and all that it started: its session, and its process namespace
// where it has one.
func kill(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL) // it may be gone
}

// The memory of a program is looked at not before it can have reached its limit, were it filled at
// fillRate, in bytes a second: about what the kernel clears for one thread. lookEvery is the shortest pause.
// It is longer where a look takes long, because there are many threads: lookShare is which part of the time
// looks may take.
const (
	lookEvery = 20 * time.Millisecond
	fillRate  = 4 << 30
	lookShare = 20
)

// watchMemory tells when a process and its children have more memory than the limit.
// One process alone is also bounded by the kernel.
func watchMemory(ctx context.Context, pid int, limit int64) <-chan struct{} {
	greedy := make(chan struct{})
	go func() {
		timer := time.NewTimer(lookEvery)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			began := time.Now()
			free := limit - memoryOf(pid)
			if free < 0 {
				close(greedy)
				return
			}
			timer.Reset(max(lookEvery, lookShare*time.Since(began), time.Duration(float64(free)/fillRate*float64(time.Second))))
		}
	}()
	return greedy
}

// memoryOf is the memory of a process and its children, in bytes, as far as it can be seen.
func memoryOf(pid int) int64 {
	m := memory{shared: map[string]int64{}}
	m.add(pid)
	total := m.own
	for _, size := range m.shared {
		total += size
	}
	return total
}

// memory is that of several processes.
type memory struct {
	own int64 // bytes of files and of their own
	// shared are the sizes of memory that they share, by its inode. A process can fill it and
	// take it out of its address space, so all of it counts.
	shared map[string]int64
}

// add adds a process and its children.
func (m *memory) add(pid int) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	text, err := os.ReadFile(dir + "status")
	if err != nil {
		return
	}
	maps, hidden := os.ReadFile(dir + "maps") // as in a container whose root may not trace
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); name == "RssAnon" || name == "RssFile" || name == "RssShmem" && hidden != nil {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB\n")), 10, 64) // the kernel writes numbers
			m.own += kib << 10
		}
	}
	for line := range strings.Lines(string(maps)) {
		m.addMapping(line)
	}
	threads, _ := os.ReadDir(dir + "task") // gone: no children
	for _, thread := range threads {
		children, _ := os.ReadFile(dir + "task/" + thread.Name() + "/children")
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				m.add(id)
			}
		}
	}
}

// addMapping adds a line of /proc/PID/maps, if it is memory that processes share:
//
//	7f1c00000000-7f1c40000000 rw-s 00000000 00:01 2052   /dev/zero (deleted)
func (m *memory) addMapping(line string) {
	fields := strings.Fields(line)
	if len(fields) < 6 || !strings.HasSuffix(fields[1], "s") || fields[5] != "/dev/zero" {
		return
	}
	from, to, _ := strings.Cut(fields[0], "-")
	first, _ := strconv.ParseInt(from, 16, 64) // the kernel writes numbers
	last, _ := strconv.ParseInt(to, 16, 64)
	offset, _ := strconv.ParseInt(fields[2], 16, 64)
	m.shared[fields[4]] = max(m.shared[fields[4]], offset+last-first)
}
