// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/swell-sh/swell/sync/devcluster/devtest"
	"github.com/swell-sh/swell/sync/forge/giteatest"
)

var update = flag.Bool("update", false, "write the output that scripts compare into them")

func TestMain(m *testing.M) {
	previewerVariables = append(previewerVariables, asProgram) // the test binary is the program
	if os.Getenv(asProgram) != "" {
		devtest.Count("swell")
		tellHeap()
		os.Exit(run())
	}
	os.Exit(devtest.Main(m, shared, sharedForge))
}

// shared has a real API server for tests that need one, sharedForge a Gitea.
var (
	shared      = &devtest.Shared{Names: []string{"dev-3"}}
	sharedForge = &giteatest.Shared{}
)

// TestScripts runs verbs in the language of scripts. The command swell runs one in this
// process; exec swell starts the program itself, as what is killed, interrupted or goes on
// beside others has to be. A script finds a copy of the example monorepo in $WORK/shop
// ($EXAMPLE is the example itself), and in $WORK/small one of two units with a daemon.yaml,
// for the clusters that the command clusters starts. All scripts share a cache.
func TestScripts(t *testing.T) {
	params := scripts(t, "testdata/script")
	params.UpdateScripts = *update
	testscript.Run(t, params)
}

// scripts are those of a folder, with all that they find.
func scripts(t *testing.T, dir string) testscript.Params {
	t.Helper()
	example, err := filepath.Abs("../../testdata/monorepo")
	if err != nil {
		t.Fatal(err)
	}
	bin, shared := linkProgram(t), t.TempDir()
	cmds := maps.Clone(clusterCommands)
	cmds["swell"] = func(ts *testscript.TestScript, neg bool, args []string) {
		if code := execute(t.Context(), inScript(ts), args); (code != 0) != neg {
			ts.Fatalf("swell %s: exit code %d", strings.Join(args, " "), code)
		}
	}
	return testscript.Params{
		Dir:  dir,
		Cmds: cmds,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
			env.Setenv(asProgram, "1")
			env.Setenv("XDG_CACHE_HOME", shared)
			env.Setenv("EXAMPLE", example)
			env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			env.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				env.Setenv("GIT_"+who+"_NAME", "Ada")
				env.Setenv("GIT_"+who+"_EMAIL", "ada@example.com")
			}
			env.Values[clustersKey{}] = map[string]*scriptCluster{}
			return errors.Join(
				os.CopyFS(filepath.Join(env.WorkDir, "shop"), os.DirFS(example)),
				os.CopyFS(filepath.Join(env.WorkDir, "small"), os.DirFS("testdata/small")))
		},
	}
}

// linkProgram makes a folder in which swell is this test's binary: asProgram makes it the
// program.
func linkProgram(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "swell"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// inScript is the folder and the environment of a script. Its home has nothing of a user.
func inScript(ts *testscript.TestScript) *invocation {
	return &invocation{
		dir: ts.MkAbs("."), getenv: ts.Getenv,
		cacheDir: ts.Getenv("XDG_CACHE_HOME"), configDir: filepath.Join(ts.Getenv("WORK"), ".config"),
		stdin: strings.NewReader(""), stdout: ts.Stdout(), stderr: ts.Stderr(),
		hangups: func() (<-chan os.Signal, func()) { return nil, func() {} },
	}
}

// runLine runs a command for another one of a script: swell in this process.
func runLine(ts *testscript.TestScript, command string, args ...string) (stdout, stderr string, ok bool) {
	if command != "swell" {
		err := ts.Exec(command, args...)
		return ts.ReadFile("stdout"), ts.ReadFile("stderr"), err == nil
	}
	var out, errs strings.Builder
	in := inScript(ts)
	in.stdout, in.stderr = &out, &errs
	code := execute(context.Background(), in, args)
	return out.String(), errs.String(), code == 0
}

// verb runs a verb to its end in this process, and returns its exit code and all that it wrote.
// Without a folder, relative paths begin where the process is.
func verb(ctx context.Context, dir string, args ...string) (output string, code int) {
	var out safeBuffer
	in := writingTo(&out, &out)
	in.dir = dir
	code = execute(ctx, in, args)
	return out.String(), code
}

// writingTo is this process with other outputs.
func writingTo(stdout, stderr io.Writer) *invocation {
	in := ofProcess()
	in.stdout, in.stderr = stdout, stderr
	return in
}
