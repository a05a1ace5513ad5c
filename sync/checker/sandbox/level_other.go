// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// level is what there is where the kernel is not Linux: limits and a process group.
// Nothing keeps the program from the network or from files, which Guards says.
type level struct {
	name        string
	privateRoot bool
	Guards
}

func strongest() (level, error) {
	guards := Guards{Active: []string{"limits", "no network guard on this system"}, Missing: []string{"all guards that Linux has"}}
	return level{name: "plain", Guards: guards}, nil
}

func (l level) attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func (l level) privateFolder(files []File) (string, error) {
	dir, err := os.MkdirTemp("", "swell-check-")
	if err != nil {
		return "", err
	}
	if err := writeFiles(dir, files); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

func (l level) own(*os.File) {}

func selfPath() (string, error) { return os.Executable() }

func kill(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL) // it may be gone
}

// watchMemory tells nothing: the kernel's own limits are all there is.
func watchMemory(context.Context, int, int64) <-chan struct{} { return nil }

func (s *stage) guard() (guards, missing []string, err error) {
	level, err := strongest()
	if err != nil {
		return nil, nil, err
	}
	limits := s.Limits
	seconds := uint64(max(1, limits.CPU.Seconds()))
	for resource, bound := range map[int]uint64{syscall.RLIMIT_CPU: seconds, syscall.RLIMIT_FSIZE: uint64(limits.FileSize), syscall.RLIMIT_NOFILE: uint64(limits.OpenFiles), syscall.RLIMIT_CORE: 0} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: bound, Max: bound}); err != nil {
			return nil, nil, err
		}
	}
	return level.Active, level.Missing, os.Chdir(s.Folder)
}

func become(program string, args, environment []string) error {
	return syscall.Exec(program, args, environment)
}
