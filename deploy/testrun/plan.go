// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// planFile stands at the module's root, beside the Makefile. A line is
//
//	PACKAGE HOW SECONDS [FLAGS...]
//
// PACKAGE is a folder that begins with "./", of the module or of one below deploy. SECONDS
// is the package's budget of CPU time, what its test binary starts included. FLAGS are the
// binary's. HOW is
//
//	servers  it waits for servers more than it computes: it begins first, beside others
//	plain    it computes
//	race     the same with the race detector
//	quick    plain, and in make quick alone
//
// "#" begins a comment. A package with tests that has no line runs as plain within
// defaultBudget.
const planFile = "test.plan"

// defaultBudget is in CPU seconds.
const defaultBudget = 10

// Ways to run a package.
const (
	withServers = "servers"
	computes    = "plain"
	withRace    = "race"
	quick       = "quick"
)

// entry is one run of a test binary.
type entry struct {
	pkg    string // "./sync/apply"
	how    string
	budget int // CPU seconds
	flags  []string
	// served says that it uses the shared servers: they are not stopped before it has ended.
	served bool
}

// name is that of the entry in reports and of its files: "sync/apply", "sync/apply (race)".
func (e *entry) name() string {
	name := strings.TrimPrefix(e.pkg, "./")
	if e.how == withRace {
		name += " (race)"
	}
	return name
}

// needs counts whether the entry needs the shared servers.
func (e *entry) needs() int {
	if e.served {
		return 1
	}
	return 0
}

// module is the folder of the module that the package is in.
func (e *entry) module() string {
	for dir := e.pkg; dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	return "."
}

func parsePlan(text io.Reader) (all []entry, err error) {
	lines := bufio.NewScanner(text)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		e, problem := parseEntry(fields)
		if problem != nil {
			err = errors.Join(err, fmt.Errorf("%s:%d: %w", planFile, n, problem))
			continue
		}
		if slices.ContainsFunc(all, func(other entry) bool { return other.pkg == e.pkg && other.how == e.how }) {
			err = errors.Join(err, fmt.Errorf("%s:%d: %s %s has a line already", planFile, n, e.pkg, e.how))
		}
		all = append(all, e)
	}
	for i := range all {
		all[i].served = isServed(all[i], all)
	}
	return all, errors.Join(err, lines.Err())
}

// isServed: with the race detector, a package uses the servers as it does without, but for
// its short form.
func isServed(e entry, all []entry) bool {
	switch e.how {
	case withServers:
		return true
	case withRace:
		return !slices.Contains(e.flags, "-test.short") &&
			slices.ContainsFunc(all, func(other entry) bool { return other.pkg == e.pkg && other.how == withServers })
	}
	return false
}

func parseEntry(fields []string) (e entry, err error) {
	if len(fields) < 3 {
		return e, errors.New("want PACKAGE HOW SECONDS [FLAGS...]")
	}
	e = entry{pkg: fields[0], how: fields[1], flags: fields[3:]}
	if !strings.HasPrefix(e.pkg, "./") {
		return e, fmt.Errorf("%q: want a package like %q", e.pkg, "./sync")
	}
	if !slices.Contains([]string{withServers, computes, withRace, quick}, e.how) {
		return e, fmt.Errorf("%q: want servers, plain, race or quick", e.how)
	}
	if e.budget, err = strconv.Atoi(fields[2]); err != nil || e.budget <= 0 {
		return e, fmt.Errorf("%q: want CPU seconds", fields[2])
	}
	return e, nil
}

// complete adds the packages that have tests and no line, and refuses lines of packages
// that have no tests: a line that runs nothing would look like a proof.
func complete(planned []entry, tested []string) (all []entry, err error) {
	all = slices.Clone(planned)
	for _, e := range planned {
		if !slices.Contains(tested, e.pkg) {
			err = errors.Join(err, fmt.Errorf("%s: %s has no tests: remove its line", planFile, e.pkg))
		}
	}
	for _, pkg := range tested {
		if !slices.ContainsFunc(planned, func(e entry) bool { return e.pkg == pkg && e.how != quick }) {
			all = append(all, entry{pkg: pkg, how: computes, budget: defaultBudget})
		}
	}
	return all, err
}

// nested are the modules below the root that have tests of their own.
var nested = []string{"./deploy/devcluster", "./deploy/release", "./deploy/testrun", "./deploy/tools"}

// testedPackages are the packages that have tests, as folders that begin with "./".
func testedPackages(ctx context.Context) (all []string, err error) {
	for _, module := range append([]string{"."}, nested...) {
		out, err := goCommand(ctx, module, "list", "-find", "-json=Dir,TestGoFiles,XTestGoFiles", "./...")
		if err != nil {
			return nil, err
		}
		found, err := packagesIn(out)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func packagesIn(listed []byte) (all []string, err error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(listed)); decoder.More(); {
		var p struct {
			Dir                       string
			TestGoFiles, XTestGoFiles []string
		}
		if err := decoder.Decode(&p); err != nil {
			return nil, err
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		all = append(all, "./"+filepath.ToSlash(dir))
	}
	return all, nil
}

// readPlan is the whole plan: its lines, and the packages that have none.
func readPlan(ctx context.Context) ([]entry, error) {
	file, err := os.Open(planFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	planned, err := parsePlan(file)
	if err != nil {
		return nil, err
	}
	tested, err := testedPackages(ctx)
	if err != nil {
		return nil, err
	}
	return complete(planned, tested)
}
