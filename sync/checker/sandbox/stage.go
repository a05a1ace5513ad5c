// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// stage is what a process of this binary reads from standard input that is to become
// a program.
type stage struct {
	Command
	Level  string
	Folder string
	Probe  bool // only report whether the guards can be put on

	served bool // its input stays open, see [Serve]
}

// The stage runs before anything else of the binary is initialized: this package
// needs the standard library and two small ones only, and Go initializes packages in
// the order of their paths. So it takes 5 ms instead of 60, and a test binary needs no
// TestMain. No other code of swell runs in such a process.
func init() {
	if len(os.Args) == 1 && os.Args[0] == stageName {
		os.Exit(enter())
	}
}

const (
	statusFile  = 3   // where the stage reports
	programFile = 4   // the program
	notBegun    = 125 // the exit code of a stage that did not become the program
)

// enter makes this process the program. It returns only when it cannot.
func enter() int {
	status := os.NewFile(statusFile, "status")
	syscall.CloseOnExec(statusFile)
	told, err := prepare()
	if err != nil {
		told.Error = err.Error()
	}
	_ = json.NewEncoder(status).Encode(told) // without it, nothing is believed
	if err != nil {
		return notBegun
	}
	if told.begin == nil {
		return 0
	}
	failed := said{Error: fmt.Sprintf("the program cannot be started: %v", told.begin())}
	_ = json.NewEncoder(status).Encode(failed) // the exit code says it too
	return notBegun
}

// begun is what a stage reports, and how it goes on.
type begun struct {
	said
	begin func() error // nil for a probe
}

func prepare() (begun, error) {
	var s stage
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		return begun{}, fmt.Errorf("read the command: %w", err)
	}
	guards, missing, err := s.guard()
	told := begun{said: said{Guards: guards, Missing: missing}}
	if err != nil || s.Probe {
		return told, err
	}
	told.begin = func() error {
		return become(s.Program, append([]string{filepath.Base(s.Program)}, s.Args...), s.environment())
	}
	return told, nil
}

// environment is all that the program finds in its environment.
func (s *stage) environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "LC_ALL=C", "TZ=UTC",
		"HOME=" + s.Folder, "TMPDIR=" + s.Folder, "PWD=" + s.Folder}
}

// writeFiles writes files into a folder.
func writeFiles(folder string, files []File) error {
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(folder, f.Name), f.Content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
