// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/swell-sh/swell/sync/devcluster/devtest"
	"github.com/swell-sh/swell/sync/forge/giteatest"
)

var update = flag.Bool("update", false, "write the output that scripts compare into them")

func TestMain(m *testing.M) {
	previewerVariables = append(previewerVariables, asProgram) // the test binary is the program
	program := func() {
		devtest.Count("swell")
		os.Exit(run())
	}
	if os.Getenv(asProgram) != "" {
		tellHeap()
		program()
	}
	testscript.Main(testsOf{m}, map[string]func(){"swell": program})
}

// shared has a real API server for tests that need one, sharedForge a Gitea.
var (
	shared      = &devtest.Shared{Names: []string{"dev-3"}}
	sharedForge = &giteatest.Shared{}
)

// testsOf are the tests of this package, with the servers that they share.
type testsOf struct{ *testing.M }

func (t testsOf) Run() int { return devtest.Main(t.M, shared, sharedForge) }

// TestScripts runs the program itself in its own language. A script finds a copy of the
// example monorepo in $WORK/shop ($EXAMPLE is the example itself), and in $WORK/small
// one of two units with a daemon.yaml, for the clusters that the command clusters
// starts.
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
	return testscript.Params{
		Dir:  dir,
		Cmds: maps.Clone(clusterCommands),
		Setup: func(env *testscript.Env) error {
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
