// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/source/gittest"
)

// docsPage is README.md, or a page of docs.
type docsPage struct {
	name   string // "docs/waves.md"
	text   string
	blocks []block
}

// block is a fenced block of a page, or a comment for the test.
type block struct {
	page     string
	language string // testComment for such a comment
	lines    []string
	line     int // of the first one
}

// testComment is the language of a comment that begins with <!-- test, which holds lines
// of a script. A page that has one is a script as a whole, see TestDocsScripts.
const testComment = "<!-- test"

// scripted says whether the page is run as a script.
func (p docsPage) scripted() bool { return strings.Contains(p.text, "\n"+testComment+"\n") }

func docsPages(t *testing.T) (pages []docsPage) {
	t.Helper()
	files := []string{"README.md"}
	err := filepath.WalkDir("../../docs", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".md") {
			files = append(files, filepath.ToSlash(strings.TrimPrefix(file, filepath.FromSlash("../../"))))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, docsPage{name, string(text), blocksOf(name, string(text))})
	}
	return pages
}

func blocksOf(page, text string) (blocks []block) {
	var open *block
	for i, line := range strings.Split(text, "\n") {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case open == nil && line == testComment:
			open = &block{page: page, language: testComment, line: i + 2}
		case open == nil && fence:
			open = &block{page: page, language: language, line: i + 2}
		case open == nil:
		case fence, open.language == testComment && line == "-->":
			blocks = append(blocks, *open)
			open = nil
		default:
			open.lines = append(open.lines, line)
		}
	}
	return blocks
}

// file is the name that a YAML block begins with, in a comment.
func (b block) file(t *testing.T) (name string, content []byte) {
	t.Helper()
	name, ok := strings.CutPrefix(b.lines[0], "# ")
	if !ok || strings.Contains(name, " ") {
		t.Fatalf("%s:%d: want a comment with the file's name, got %q", b.page, b.line, b.lines[0])
	}
	return name, []byte(strings.Join(b.lines, "\n") + "\n")
}

// TestDocsDocuments: each YAML block begins with a comment that names its file. The
// configurations of daemons and programs are read by themselves; all others of a page, laid
// over the example together, have no problem.
func TestDocsDocuments(t *testing.T) {
	ran, cache := 0, t.TempDir()
	for _, p := range docsPages(t) {
		if p.scripted() {
			continue
		}
		dir, files := t.TempDir(), 0
		for _, b := range p.blocks {
			if b.language != "yaml" {
				continue
			}
			name, content := b.file(t)
			switch name {
			case "daemon.yaml":
				if _, problems := config.ReadDaemon(name, content); len(problems) > 0 {
					t.Errorf("%s:%d: %v", p.name, b.line, problems)
				}
				continue
			case checkersFile:
				if _, problems := config.ReadCheckerPrograms(name, content); len(problems) > 0 {
					t.Errorf("%s:%d: %v", p.name, b.line, problems)
				}
				continue
			}
			writeFileIn(t, dir, name, content)
			files++
		}
		if files > 0 {
			ran += files
			checkPage(t, p, dir, cache)
		}
	}
	if ran < 30 {
		t.Errorf("%d documents in the pages", ran)
	}
}

// checkPage checks the files of a page, over those of the example and of
// testdata/docs.txtar.
func checkPage(t *testing.T, p docsPage, files, cache string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/monorepo")); err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse([]byte(readFile(t, "testdata/docs.txtar"))).Files {
		name, isOfTenants := strings.CutPrefix(f.Name, "tenants/")
		if !isOfTenants || strings.Contains(p.text, "\nkind: Tenant\n") {
			writeFileIn(t, dir, name, f.Data)
		}
	}
	err := fs.WalkDir(os.DirFS(files), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			writeFileIn(t, dir, name, []byte(readFile(t, filepath.Join(files, name))))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := execute(t.Context(), writingTo(&out, &out), []string{"check", dir, "--cache", cache}); code != 0 {
		t.Errorf("the documents of %s: exit code %d\n%s", p.name, code, out.String())
	}
}

func writeFileIn(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, content, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// clusterVerbs are those that need clusters or a daemon's state: TestDocsDaemon
// runs them.
var clusterVerbs = regexp.MustCompile(`^swell (run|status|history|get|tree|approve|retry|pause|freeze|mask|promote|rollback|quarantine|target|reconcile|orders|exempt|events|describe|watch)\b|--live\b`)

// asksFirst are those of them that ask, of many units.
var asksFirst = regexp.MustCompile(`^swell (target retire|promote|rollback|unmask)\b`)

// TestDocsCommands runs the console blocks of each page in the example monorepo, in a Git
// repository of its own, and compares what they print. A line of three dots
// stands for any lines.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	for _, p := range docsPages(t) {
		if p.scripted() || len(p.commands(t)) == 0 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			dir := exampleRepository(t)
			for _, c := range p.commands(t) {
				switch {
				case strings.HasPrefix(c.text, "make "):
					c.canMake(t)
				case clusterVerbs.MatchString(c.text), strings.HasPrefix(c.text, "cd "), strings.HasPrefix(c.text, "bin/swell demo"):
				default:
					c.run(t, dir, cache)
				}
			}
		})
	}
}

// TestDocsDaemon runs the commands of pages that need clusters, in their order, after a
// first release.
func TestDocsDaemon(t *testing.T) {
	t.Parallel()
	ran, cache := 0, t.TempDir()
	for _, p := range docsPages(t) {
		if p.scripted() {
			continue
		}
		var s *stage
		for _, c := range p.commands(t) {
			if !clusterVerbs.MatchString(c.text) || c.text == "swell run" || c.text == "swell events -f" { // until interrupted
				continue
			}
			if s == nil {
				s = newStage(t)
				s.once(0)
			}
			c.text += " -c " + s.config
			if asksFirst.MatchString(c.text) {
				c.text += " --yes"
			}
			c.run(t, s.repo.Work, cache)
			ran++
		}
	}
	if ran < 5 {
		t.Errorf("%d commands of the pages need a daemon", ran)
	}
}

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notAnchor = regexp.MustCompile("[^a-z0-9 _-]")
)

// TestDocsLinks: what the pages link to is there.
func TestDocsLinks(t *testing.T) {
	for _, p := range docsPages(t) {
		for _, match := range link.FindAllStringSubmatch(p.text, -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file, text := filepath.Join("../..", filepath.Dir(p.name), target), p.text
			if target != "" {
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s: link %s: %v", p.name, match[1], err)
					continue
				}
			}
			if target != "" && anchor != "" {
				text = readFile(t, file)
			}
			if anchor != "" && !hasAnchor(text, anchor) {
				t.Errorf("%s: link %s: no such heading", p.name, match[1])
			}
		}
	}
}

// hasAnchor says whether a heading of the page has an anchor as GitHub makes it.
func hasAnchor(text, anchor string) bool {
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		if strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}

// exampleRepository is the example with a commit.
func exampleRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/monorepo")); err != nil {
		t.Fatal(err)
	}
	if err := gittest.Init(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := gittest.Commit(dir, "The example"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// docsCommand is a command, and what its page says that it prints; nil where
// it says nothing.
type docsCommand struct {
	text string
	want []string
	page string
	line int
}

// commands are those of all console blocks of the page.
func (p docsPage) commands(t *testing.T) (commands []docsCommand) {
	t.Helper()
	for _, b := range p.blocks {
		if b.language == "console" {
			commands = append(commands, b.commands(t)...)
		}
	}
	return commands
}

func (b block) commands(t *testing.T) (commands []docsCommand) {
	t.Helper()
	for i, line := range b.lines {
		text, ok := strings.CutPrefix(line, "$ ")
		switch last := len(commands) - 1; {
		case ok:
			text, _, _ = strings.Cut(text, " #")
			commands = append(commands, docsCommand{text: strings.TrimSpace(text), page: b.page, line: b.line + i})
		case last < 0:
			t.Errorf("%s:%d: want a command after $ first", b.page, b.line+i)
		default:
			commands[last].want = append(commands[last].want, line)
		}
	}
	return commands
}

// canMake says whether the Makefile has the target.
func (c docsCommand) canMake(t *testing.T) {
	t.Helper()
	target := strings.Fields(c.text)[1]
	if out, err := exec.Command("make", "-C", "../..", "-n", target).CombinedOutput(); err != nil {
		t.Errorf("%s:%d: %s: %v\n%s", c.page, c.line, c.text, err, out)
	}
}

// command is the command as it is run: by a shell, but where it is a verb with plain
// arguments.
func (c docsCommand) command() (name string, args []string) {
	if words := strings.Fields(c.text); words[0] == "swell" && !strings.ContainsAny(c.text, "|&;<>()$`\\\"'*?[]{}~") {
		return words[0], words[1:]
	}
	return "sh", []string{"-c", c.text}
}

// ofReleases are the verbs for a release that goes on, or that there was before.
var ofReleases = regexp.MustCompile(`^swell (promote|rollback) `)

// run runs the command in a folder; swell in this process.
func (c docsCommand) run(t *testing.T, dir, cache string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	failed := "" // how
	if name, args := c.command(); name == "swell" {
		in := writingTo(&stdout, &stderr)
		in.dir, in.cacheDir = dir, cache
		if code := execute(t.Context(), in, args); code != 0 {
			failed = fmt.Sprintf("exit code %d", code)
		}
	} else {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
		cmd.Env = append(os.Environ(), asProgram+"=1", "PATH="+linkProgram(t)+string(filepath.ListSeparator)+os.Getenv("PATH"), "XDG_CACHE_HOME="+cache)
		if err := cmd.Run(); err != nil {
			failed = err.Error()
		}
	}
	if ofReleases.MatchString(c.text) { // none is under way, and there was none before
		if failed == "" || !strings.Contains(stderr.String(), ": there is nothing to do: ") {
			t.Errorf("%s:%d: %s: %s\n%s", c.page, c.line, c.text, failed, stderr.String())
		}
		return
	}
	if failed != "" {
		t.Errorf("%s:%d: %s: %s\n%s", c.page, c.line, c.text, failed, stderr.String())
		return
	}
	if got := strings.Split(strings.TrimRight(stdout.String(), "\n"), "\n"); c.want != nil && !printed(got, c.want) {
		t.Errorf("%s:%d: %s prints\n%s\nwant\n%s", c.page, c.line, c.text, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
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
