// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is what a file of Actions says of its jobs.
type workflow struct {
	On          any `json:"on"`
	Permissions map[string]string
	Jobs        map[string]struct {
		If    string
		Steps []struct {
			Uses, Run string
			With      map[string]any
			Env       map[string]string
		}
	}
}

// newCIRepository is a Git repository with a monorepo in a folder of it.
func newCIRepository(t *testing.T, folder string) string {
	t.Helper()
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main")
	at := filepath.Join(dir, folder)
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, repositoryFile), []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\nspec: {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func ciInit(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	code = execute(t.Context(), writingTo(&out, &out), append([]string{"ci", "init"}, args...))
	return code, out.String()
}

// The jobs are YAML, and none that may write takes anything of a fork but its commit.
func TestCIInit(t *testing.T) {
	const binary = "https://artifacts.example.com/swell"
	for system, files := range map[string][]string{
		"github": {".github/workflows/swell-preview.yaml", ".github/workflows/swell-fork.yaml", ".github/workflows/swell-fork-comment.yaml"},
		"gitea":  {".gitea/workflows/swell-preview.yaml", ".gitea/workflows/swell-fork-comment.yaml"},
		"gitlab": {".gitlab/swell.yaml"},
	} {
		dir := newCIRepository(t, "sub/fleet")
		if code, said := ciInit(t, system, "--repo", dir, "--path", "sub/fleet", "--binary", binary); code != 0 {
			t.Fatalf("%s: %d %s", system, code, said)
		}
		for _, name := range files {
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(content), "[[") || !strings.Contains(string(content), "--path sub/fleet ") || !strings.Contains(string(content), binary) {
				t.Errorf("%s is not filled in:\n%s", name, content)
			}
			if system == "gitlab" {
				if err := yaml.Unmarshal(content, &map[string]any{}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			checkWorkflow(t, name, content)
		}
		if code, said := ciInit(t, system, "--repo", dir, "--path", "sub/fleet", "--binary", binary); code != exitError || !strings.Contains(said, "there already") {
			t.Errorf("a second time: %d %s", code, said)
		}
	}
}

// checkWorkflow fails the test where a job of pull requests of forks may write and checks their
// commit out.
func checkWorkflow(t *testing.T, name string, content []byte) {
	t.Helper()
	// YAML 1.1 takes the key on for true.
	var w workflow
	if err := yaml.UnmarshalStrict(bytes.Replace(content, []byte("\non:"), []byte("\n\"on\":"), 1), &w, yaml.DisallowUnknownFields); err != nil && !strings.Contains(err.Error(), "unknown field") {
		t.Fatalf("%s: %v", name, err)
	}
	on, _ := w.On.(map[string]any)
	for event, types := range on {
		if text := fmt.Sprint(types); strings.HasPrefix(event, "pull_request") && !strings.Contains(text, "edited") {
			t.Errorf("%s: another base of a pull request starts no job of %s: %s", name, event, text)
		}
	}
	if len(on) == 0 {
		t.Errorf("%s: starts on %v", name, w.On)
	}
	for _, job := range w.Jobs {
		if len(job.Steps) == 0 || !strings.Contains(job.Steps[len(job.Steps)-1].Run, "swell diff ") {
			t.Errorf("%s: no job that runs swell diff: %+v", name, job)
		}
		forks := strings.Contains(job.If, "!= github.repository")
		writes := strings.Contains(job.Steps[len(job.Steps)-1].Run, "--comment")
		for _, step := range job.Steps {
			if forks && writes && step.With["ref"] != nil {
				t.Errorf("%s: a job that may write checks out %v", name, step.With["ref"])
			}
		}
		if forks && !writes && (len(w.Permissions) != 1 || w.Permissions["contents"] != "read") {
			t.Errorf("%s: a job on a fork's files has the permissions %v", name, w.Permissions)
		}
	}
}

// What cannot work, or is not safe, is refused, and nothing is written.
func TestCIInitRefuses(t *testing.T) {
	const binary = "https://artifacts.example.com/swell"
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"another system", []string{"githab", "--binary", binary}, `did you mean "github"?`},
		{"no program", []string{"github"}, "--binary: missing"},
		{"a password", []string{"github", "--binary", "https://user:secret@artifacts.example.com/swell"}, "without"},
		{"a password that is not plain", []string{"github", "--binary", "https://user:secret$$@artifacts.example.com/swell"}, "without"},
		{"anybody's program", []string{"github", "--binary", "http://artifacts.example.com/swell"}, "--sha256"},
		{"a space", []string{"github", "--binary", "https://artifacts.example.com/a b"}, "without spaces"},
		{"a command", []string{"github", "--binary", binary, "--path", "a;b"}, "want a folder"},
		{"no monorepo", []string{"github", "--binary", binary, "--path", "other"}, "so it is no monorepo"},
		{"a sum", []string{"github", "--binary", binary, "--sha256", "12"}, "64 hexadecimal digits"},
	} {
		dir := newCIRepository(t, "fleet")
		code, said := ciInit(t, append(test.args, "--repo", dir)...)
		if code != exitError || !strings.Contains(said, test.want) || strings.Contains(said, "secret") {
			t.Errorf("%s: %d %s", test.name, code, said)
		}
		if _, err := os.Stat(filepath.Join(dir, ".github")); !os.IsNotExist(err) {
			t.Errorf("%s: something was written: %v", test.name, err)
		}
	}
	if code, said := ciInit(t, "github", "--repo", t.TempDir(), "--binary", binary); code != exitError || !strings.Contains(said, "no Git repository") {
		t.Errorf("%d %s", code, said)
	}
}

// TestIsBranch: a local branch whose name looks like that of a remote's branch is not that.
func TestIsBranch(t *testing.T) {
	dir := newCIRepository(t, ".")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first")
	gitIn(t, dir, "branch", "wip/main")
	gitIn(t, dir, "update-ref", "refs/remotes/origin/main", "HEAD")
	where := &repoFlags{in: ofProcess(), repo: dir}
	for _, test := range []struct {
		revision, branch string
		want             bool
	}{
		{"main", "main", true}, {"origin/main", "main", true}, {"refs/heads/main", "main", true}, {"refs/remotes/origin/main", "main", true},
		{"1234abcd", "main", true}, {"origin/release/1", "release/1", true}, {"wip/main", "wip/main", true}, {"refs/heads/wip/main", "wip/main", true},
		{"wip/main", "main", false}, {"refs/heads/wip/main", "main", false}, {"HEAD~1", "main", false}, {"main", "release", false}, {"origin/main", "origin", false},
	} {
		if got := where.isBranch(test.revision, test.branch); got != test.want {
			t.Errorf("%s for %s: %v", test.revision, test.branch, got)
		}
	}
}
