// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
)

// block is a fenced block of the README.
type block struct {
	language string
	lines    []string
	line     int // of the first one
}

func readmeBlocks(t *testing.T) []block {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	var open *block
	for i, line := range strings.Split(string(text), "\n") {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{language: language, line: i + 2}
		case fence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, line)
		}
	}
	if len(blocks) < 10 {
		t.Fatalf("%d blocks in the README", len(blocks))
	}
	return blocks
}

// TestReadmeDocuments: each YAML block begins with a comment that names its file.
// The daemon's configuration is one, that of programs another; all others, laid over the example together,
// have no problem.
func TestReadmeDocuments(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/monorepo")); err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, b := range readmeBlocks(t) {
		if b.language != "yaml" {
			continue
		}
		name, ok := strings.CutPrefix(b.lines[0], "# ")
		if !ok || strings.Contains(name, " ") {
			t.Errorf("README.md:%d: want a comment with the file's name, got %q", b.line, b.lines[0])
			continue
		}
		content := []byte(strings.Join(b.lines, "\n") + "\n")
		if name == "daemon.yaml" {
			if _, problems := config.ReadDaemon(name, content); len(problems) > 0 {
				t.Errorf("README.md:%d: %v", b.line, problems)
			}
			continue
		}
		if name == checkersFile {
			if _, problems := config.ReadCheckerPrograms(name, content); len(problems) > 0 {
				t.Errorf("README.md:%d: %v", b.line, problems)
			}
			continue
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, content, 0o644)); err != nil {
			t.Fatal(err)
		}
		files++
	}
	if files < 5 {
		t.Errorf("%d documents in the README", files)
	}
	for _, tenant := range []string{"pay", "platform", "search", "travel"} { // the example's others
		content := "apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: " + tenant + "}\nspec: {clusterKinds: [\"*\"]}\n"
		if err := os.WriteFile(filepath.Join(dir, "fleet", "tenant-"+tenant+".yaml"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if code := execute(t.Context(), []string{"check", dir, "--cache", "none"}, &out, &out); code != 0 {
		t.Errorf("the README's documents: exit code %d\n%s", code, out.String())
	}
}

// clusterVerbs are those that need clusters or a daemon's state: TestReadmeDaemon
// runs them.
var clusterVerbs = regexp.MustCompile(`^swell (run|status|history|get|tree|approve|retry|pause|freeze|mask|promote|rollback|quarantine|target|reconcile|orders|events|describe|watch)\b|--live\b`)

// TestReadmeCommands runs the console blocks in the example monorepo, in a Git
// repository of its own, and compares what they print. A line of three dots
// stands for any lines.
func TestReadmeCommands(t *testing.T) {
	dir := readmeRepository(t)
	for _, b := range readmeBlocks(t) {
		if b.language != "console" {
			continue
		}
		for _, c := range commandsOf(t, b) {
			switch {
			case strings.HasPrefix(c.text, "make "):
				target := strings.Fields(c.text)[1]
				if out, err := exec.Command("make", "-C", "../..", "-n", target).CombinedOutput(); err != nil {
					t.Errorf("README.md: %s: %v\n%s", c.text, err, out)
				}
			case clusterVerbs.MatchString(c.text), strings.HasPrefix(c.text, "cd "), strings.HasPrefix(c.text, "bin/swell demo"):
			default:
				c.run(t, dir)
			}
		}
	}
}

// TestReadmeDaemon runs the verbs that need clusters, in the order of the README,
// after a first release.
func TestReadmeDaemon(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.once(0)
	ran := 0
	for _, b := range readmeBlocks(t) {
		if b.language != "console" {
			continue
		}
		for _, c := range commandsOf(t, b) {
			if !clusterVerbs.MatchString(c.text) || c.text == "swell run" || c.text == "swell events -f" { // until interrupted
				continue
			}
			c.text = strings.NewReplacer("-c daemon.yaml", "").Replace(c.text) + " -c " + s.config
			c.run(t, s.repo.Work)
			ran++
		}
	}
	if ran < 5 {
		t.Errorf("%d commands of the README need a daemon", ran)
	}
}

// readmeRepository is the example with a commit and a change after it.
func readmeRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/monorepo")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-qm", "The example"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	return dir
}

// readmeCommand is a command, and what the README says that it prints; nil where
// it says nothing.
type readmeCommand struct {
	text string
	want []string
	line int
}

func commandsOf(t *testing.T, b block) []readmeCommand {
	t.Helper()
	var commands []readmeCommand
	for i, line := range b.lines {
		text, ok := strings.CutPrefix(line, "$ ")
		switch last := len(commands) - 1; {
		case ok:
			text, _, _ = strings.Cut(text, " #")
			commands = append(commands, readmeCommand{text: strings.TrimSpace(text), line: b.line + i})
		case last < 0:
			t.Errorf("README.md:%d: want a command after $ first", b.line+i)
		default:
			commands[last].want = append(commands[last].want, line)
		}
	}
	return commands
}

// run runs the command in a shell that finds this test's binary as swell.
func (c readmeCommand) run(t *testing.T, dir string) {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(bin, "swell"))
	}
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", "-c", c.text)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), asProgram+"=1", "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "XDG_CACHE_HOME="+filepath.Join(bin, "cache"))
	if err := cmd.Run(); err != nil {
		t.Errorf("README.md:%d: %s: %v\n%s", c.line, c.text, err, stderr.String())
		return
	}
	if got := strings.Split(strings.TrimRight(stdout.String(), "\n"), "\n"); c.want != nil && !printed(got, c.want) {
		t.Errorf("README.md:%d: %s prints\n%s\nwant\n%s", c.line, c.text, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
	}
}

// printed says whether lines are as wanted, where "..." is any number of lines.
func printed(got, want []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] != "..." {
		return len(got) > 0 && got[0] == want[0] && printed(got[1:], want[1:])
	}
	for i := range len(got) + 1 {
		if printed(got[i:], want[1:]) {
			return true
		}
	}
	return false
}
