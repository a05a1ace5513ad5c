// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/sync/checker"
)

// checkersFile is a user's own configuration of programs, in the folder of swell's.
const checkersFile = "checkers.yaml"

// checkerPrograms reads the programs that the flag names, or else those of the user.
func (in *invocation) checkerPrograms(file string) (config.CheckerPrograms, error) {
	named := file != ""
	if !named {
		if in.configDir == "" {
			return config.CheckerPrograms{}, nil
		}
		file = filepath.Join(in.configDir, "swell", checkersFile)
	}
	content, err := in.readFile(file)
	switch {
	case !named && errors.Is(err, fs.ErrNotExist):
		return config.CheckerPrograms{}, nil
	case err != nil:
		return config.CheckerPrograms{}, hinted{err, "--checkers names a document of kind CheckerPrograms; see the README"}
	}
	programs, problems := config.ReadCheckerPrograms(in.path(file), content)
	if len(problems) > 0 {
		return config.CheckerPrograms{}, in.namedProblems(problems)
	}
	return programs, nil
}

// runner runs the programs for a command.
func (p *repoFlags) runner(kept *cache.Cache, out io.Writer) (*checker.Runner, error) {
	programs, err := p.in.checkerPrograms(p.checkers)
	if err != nil {
		return nil, err
	}
	p.progress = &checkerProgress{out: out, verbose: p.verbose}
	return &checker.Runner{Programs: programs.Checkers, Sandbox: programs.Sandbox, Cache: kept, Done: p.progress.done}, nil
}

// checkerProgress says on a terminal which programs run, and with verbose what they
// were kept from.
type checkerProgress struct {
	mu      sync.Mutex
	out     io.Writer
	verbose bool
	over    int
	shown   time.Time
	width   int
}

// showEvery is how often the line is written anew.
const showEvery = 100 * time.Millisecond

func (s *checkerProgress) done(run checker.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over++
	switch {
	case s.verbose:
		fmt.Fprintf(s.out, "swell: %s on %s: %s, sandbox: %s\n", run.Program, run.File, run.Took.Round(time.Millisecond), strings.Join(run.Guards, ", "))
	case isTerminal(s.out) && time.Since(s.shown) > showEvery:
		s.shown = time.Now()
		line := fmt.Sprintf("swell: checkers: %d done, now %s on %s", s.over, run.Program, run.File)
		fmt.Fprintf(raw(s.out), "\r%-*s", s.width, line)
		s.width = len(line)
	}
}

// end takes the line of progress away.
func (s *checkerProgress) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.width > 0 {
		fmt.Fprintf(raw(s.out), "\r%*s\r", s.width, "")
		s.width = 0
	}
}
