// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestDocsScripts runs pages of docs that have a comment like
//
//	<!-- test
//	clusters staging production
//	-->
//
// as scripts, from top to bottom: lines of such comments are commands as in TestScripts,
// YAML blocks are written to the files that they name, and the commands of console blocks
// are run. One that asks the daemon is tried again for a while until it prints what the page
// says: daemons take some time.
func TestDocsScripts(t *testing.T) {
	dir := t.TempDir()
	pages := map[string]*scriptPage{}
	for _, p := range docsPages(t) {
		if !p.scripted() {
			continue
		}
		s := scriptOf(t, p)
		name := strings.ReplaceAll(strings.TrimSuffix(p.name, ".md"), "/", "-")
		pages[name] = s
		if err := os.WriteFile(filepath.Join(dir, name+".txtar"), []byte(s.script.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(pages) < 3 {
		t.Errorf("%d pages are scripts", len(pages))
	}
	params := scripts(t, dir)
	params.Cmds["step"], params.Cmds["write"] = runStep, writeStep
	setup := params.Setup
	params.Setup = func(env *testscript.Env) error {
		name := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
		env.Values[scriptPageKey{}] = pages[name]
		env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
		return setup(env)
	}
	testscript.Run(t, params)
}

// scriptPage is a page as a script, and what its steps are about.
type scriptPage struct {
	script   strings.Builder
	files    []block
	commands []docsCommand
}

type scriptPageKey struct{}

// untilInterrupted are commands that go on beside those after them.
var untilInterrupted = regexp.MustCompile(`^swell (run|watch|events -f)$`)

func scriptOf(t *testing.T, p docsPage) *scriptPage {
	t.Helper()
	s := &scriptPage{}
	for _, b := range p.blocks {
		switch b.language {
		case testComment:
			fmt.Fprintln(&s.script, strings.Join(b.lines, "\n"))
		case "yaml":
			b.file(t)
			fmt.Fprintf(&s.script, "write %d\n", len(s.files))
			s.files = append(s.files, b)
		case "console":
			for _, c := range b.commands(t) {
				if strings.HasPrefix(c.text, "make ") {
					c.canMake(t)
					continue
				}
				s.add(c)
			}
		}
	}
	return s
}

func (s *scriptPage) add(c docsCommand) {
	name, value, export := strings.Cut(strings.TrimPrefix(c.text, "export "), "=")
	switch {
	case strings.HasPrefix(c.text, "cd "):
		fmt.Fprintln(&s.script, c.text)
	case export && strings.HasPrefix(c.text, "export "):
		fmt.Fprintf(&s.script, "env %s=%s\n", name, strings.ReplaceAll(value, "$PWD", "$WORK"))
	case untilInterrupted.MatchString(c.text):
		fmt.Fprintf(&s.script, "exec %s &\n", c.text)
	default:
		fmt.Fprintf(&s.script, "step %d\n", len(s.commands))
		s.commands = append(s.commands, c)
	}
}

func numbered[T any](ts *testscript.TestScript, args []string, of func(*scriptPage) []T) T {
	i, err := strconv.Atoi(args[0])
	ts.Check(err)
	return of(ts.Value(scriptPageKey{}).(*scriptPage))[i]
}

// writeStep writes a YAML block to its file.
func writeStep(ts *testscript.TestScript, neg bool, args []string) {
	b := numbered(ts, args, func(s *scriptPage) []block { return s.files })
	file := ts.MkAbs(strings.TrimPrefix(b.lines[0], "# "))
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
	ts.Check(os.WriteFile(file, []byte(strings.Join(b.lines, "\n")+"\n"), 0o644))
}

// runStep runs a command of the page, and compares what it prints; one that asks the daemon
// until it prints that. Where the page says nothing, it has to succeed.
func runStep(ts *testscript.TestScript, neg bool, args []string) {
	c := numbered(ts, args, func(s *scriptPage) []docsCommand { return s.commands })
	ts.Logf("%s:%d: %s", c.page, c.line, c.text)
	command, args := c.command()
	if c.want == nil {
		if stdout, stderr, ok := runLine(ts, command, args...); !ok {
			ts.Fatalf("%s:%d: %s fails\n%s%s", c.page, c.line, c.text, stdout, stderr)
		}
		return
	}
	want := likeOthers(c.want)
	const longest = 2 * time.Minute // on a machine that is shared
	for deadline := time.Now().Add(longest); ; time.Sleep(300 * time.Millisecond) {
		stdout, stderr, _ := runLine(ts, command, args...)
		got := strings.Split(strings.TrimRight(stdout, "\n"), "\n")
		if printed(likeOthers(got), want) {
			return
		}
		if !clusterVerbs.MatchString(c.text) || time.Now().After(deadline) {
			ts.Fatalf("%s:%d: %s prints\n%s\nwant\n%s\nand on standard error\n%s", c.page, c.line, c.text,
				strings.Join(got, "\n"), strings.Join(c.want, "\n"), stderr)
		}
	}
}

// What is another one in each run: times, durations, hashes, and the width of columns. A
// line that is indented goes on with the one before, or would in a wider table.
var varying = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\b(\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{8}([0-9a-f]{32}|[0-9a-f]{56})?\b`), "HASH"},
	{regexp.MustCompile(`\b(\d+(ms|s|m|h))+\b`), "DURATION"},
	{regexp.MustCompile(` +`), " "},
}

// likeOthers are lines of one run as they are in any.
func likeOthers(lines []string) (alike []string) {
	me, err := user.Current()
	for _, line := range lines {
		goesOn := strings.HasPrefix(line, "    ") && len(alike) > 0
		if err == nil {
			line = regexp.MustCompile(`\bby `+regexp.QuoteMeta(me.Username)+`\b`).ReplaceAllString(line, "by ada")
		}
		for _, v := range varying {
			line = v.what.ReplaceAllString(line, v.as)
		}
		line = strings.TrimSpace(line)
		if goesOn {
			alike[len(alike)-1] += " " + line
		} else {
			alike = append(alike, line)
		}
	}
	return alike
}
