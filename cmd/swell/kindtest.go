// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
)

func kindTestCommand(in *invocation) *cobra.Command {
	where := repoFlags{in: in}
	var update bool
	cmd := &cobra.Command{
		Use:   "test [KIND...]",
		Short: "Render the tests of kinds and compare the results with the wanted ones",
		Long: `Run kinds/KIND/tests/*.txtar, of all kinds or of the named kinds. Each archive is one
test, a unit and its wanted result:

  Any text up to the first file is a comment.
  -- spec.yaml --
  apiVersion: easy.example.com/v1
  kind: Runtime
  ...
  -- app.toml --
  A file that the spec takes in with fromFile.
  -- want/test-1/a.yaml --
  The objects on cell a of cluster test-1, in the order of applying, without
  the labels and annotations that swell adds. Values of Secrets are hashes.

An archive holds either a want/CLUSTER/CELL.yaml for each target that gets
objects (want/CLUSTER.yaml for a whole cluster), or want/problems.txt with the
problems, as swell check prints them. A missing, different or unexpected result is a
failure.

The unit is placed on the cells a and b of a cluster test-1 with the label
region: test, for the tenant test. A swell.yaml (Defaults) in the archive
changes that, and files in fleet/ replace the cluster; they may bring a Rollout.
A folder of the archive with documents is a unit too; objects for one target stand
in the order of their units' paths. Kinds and data come from the monorepo. Its own
fleet and units are not used.

--update writes the results into the archives. Their comments and other files
stay as they are.

Exit codes: 0 all as wanted, 1 failures, 2 could not test.`,
		Example: `  swell kind test
  swell kind test runtime --update`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := where.argument(nil, 0)
			tester, err := newKindTester(in, dir)
			if err != nil {
				return err
			}
			tester.update, tester.out = update, cmd.OutOrStdout()
			kinds, err := tester.pick(args)
			if err != nil {
				return err
			}
			for _, kind := range kinds {
				if err := tester.testKind(kind); err != nil {
					return err
				}
			}
			fmt.Fprintln(cmd.ErrOrStderr(), tester.summary())
			if tester.failed > 0 {
				return exit(exitProblems)
			}
			return nil
		},
	}
	where.flags(cmd)
	cmd.Flags().BoolVar(&update, "update", false, "write the results into the archives (-update is understood too)")
	return cmd
}

// kindTester runs tests of the kinds of one monorepo.
type kindTester struct {
	dir     string // the monorepo on disk
	tree    config.Tree
	folders config.Folders
	// compilers are by the fleet and the definitions that tests have: each compiles the kinds once.
	compilers map[string]*render.Compiler
	update    bool
	out       io.Writer
	schemas   [][]txtar.File // see definitions; nil until they are asked for

	passed, failed, updated int
}

func newKindTester(in *invocation, dir string) (*kindTester, error) {
	dir, err := in.findMonorepo(dir)
	if err != nil {
		return nil, err
	}
	dir = in.path(dir)
	t := &kindTester{dir: dir, tree: config.Files(os.DirFS(dir)), compilers: map[string]*render.Compiler{}}
	var problems document.Problems
	if t.folders, problems = config.ReadFolders(t.tree); len(problems) > 0 {
		return nil, problems
	}
	return t, nil
}

// pick finds the folders of the kinds that are named, all where none is.
func (t *kindTester) pick(names []string) ([]string, error) {
	folders, problems := t.folders.KindFolders(t.tree)
	if len(problems) > 0 {
		return nil, problems
	}
	var paths, known, picked []string
	for _, folder := range folders {
		paths, known = append(paths, folder.Path), append(known, path.Base(folder.Path))
	}
	if len(names) == 0 {
		return paths, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, path.Base(filepath.ToSlash(name))) })
		if i < 0 {
			return nil, fmt.Errorf("%q: no such kind in %s%s", name, t.folders.Kinds, document.DidYouMean(name, known))
		}
		picked = append(picked, paths[i])
	}
	slices.Sort(picked)
	return slices.Compact(picked), nil
}

// testKind runs all tests of a kind. An error is one of reading or writing.
func (t *kindTester) testKind(kind string) error {
	dir := path.Join(kind, "tests")
	entries, err := t.tree.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	found := false
	for _, e := range entries {
		if path.Ext(e.Name()) != ".txtar" {
			continue
		}
		found = true
		file := path.Join(dir, e.Name())
		raw, err := t.tree.ReadFile(file)
		if err != nil {
			return err
		}
		test, err := readKindTest(kind, file, raw)
		if err != nil {
			t.fail(err.Error(), "", "")
			continue
		}
		if err := t.run(test); err != nil {
			return err
		}
	}
	if !found {
		fmt.Fprintf(t.out, "none  %s: no tests/*.txtar\n", path.Base(kind))
	}
	return nil
}

// run renders a test and compares or writes the results.
func (t *kindTester) run(test *kindTest) error {
	got, err := t.render(test, t.tree)
	if err != nil {
		t.fail(test.name(), "", err.Error())
		return nil
	}
	if maps.Equal(got, test.want) {
		t.passed++
		fmt.Fprintf(t.out, "ok    %s\n", test.name())
		return nil
	}
	if !t.update {
		t.fail(test.name(), differences(test.want, got), "")
		return nil
	}
	changed, err := withWant(test.raw, got)
	if err != nil {
		t.fail(test.name(), "", err.Error())
		return nil
	}
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := replaceFile(root, filepath.FromSlash(test.file), changed); err != nil {
		return err
	}
	t.updated++
	fmt.Fprintf(t.out, "wrote %s\n", test.name())
	return nil
}

// render gives a test's results: what its want sections should be. The clusters of the
// monorepo may define custom resources differently. The results are those with the
// definitions of the first cluster where all is as wanted, else of the first one where the
// test has no problems, else of the first one.
func (t *kindTester) render(test *kindTest, tree config.Tree) (map[string]string, error) {
	var best map[string]string
	for _, definitions := range t.definitions() {
		got, err := t.renderWith(test, tree, definitions)
		if err != nil || maps.Equal(got, test.want) {
			return got, err
		}
		if best == nil || best[wantProblems] != "" && got[wantProblems] == "" {
			best = got
		}
	}
	return best, nil
}

func (t *kindTester) renderWith(test *kindTest, tree config.Tree, definitions []txtar.File) (map[string]string, error) {
	replaced := append([]string{t.folders.Fleet, t.folders.Schemas}, t.folders.Units...)
	files := append(test.files(t.folders), definitions...)
	laid, err := layOver(tree, files, replaced...)
	if err != nil {
		return nil, err
	}
	return test.results(t.compiler(files).Snapshot("", laid), t.folders)
}

// compiler returns the one for tests with the fleet and the definitions among these files.
func (t *kindTester) compiler(files []txtar.File) *render.Compiler {
	outside := slices.DeleteFunc(slices.Clone(files), func(f txtar.File) bool {
		return !config.Within(f.Name, t.folders.Fleet) && !config.Within(f.Name, t.folders.Schemas)
	})
	key := string(txtar.Format(&txtar.Archive{Files: outside}))
	if t.compilers[key] == nil {
		t.compilers[key] = &render.Compiler{Checks: &config.Checks{PlainSecrets: config.Pass}} // values of examples are none
	}
	return t.compilers[key]
}

// definitions are those of custom resources in the monorepo, for kinds that render some,
// as its clusters have them: the units that they may stand in are not there in a test.
// There is at least one list.
func (t *kindTester) definitions() [][]txtar.File {
	if t.schemas != nil {
		return t.schemas
	}
	for _, texts := range render.Definitions(t.tree) {
		files := make([]txtar.File, len(texts))
		for i, text := range texts {
			files[i] = txtar.File{Name: path.Join(t.folders.Schemas, fmt.Sprintf("%04d.yaml", i)), Data: []byte(text)}
		}
		t.schemas = append(t.schemas, files)
	}
	if len(t.schemas) == 0 {
		t.schemas = [][]txtar.File{nil}
	}
	return t.schemas
}

func (t *kindTester) fail(name, details, reason string) {
	t.failed++
	if reason != "" {
		name += ": " + reason
	}
	fmt.Fprintf(t.out, "FAIL  %s\n%s", name, details)
}

func (t *kindTester) summary() string {
	text := "swell: " + document.Count(t.passed+t.failed+t.updated, "test")
	if t.updated > 0 {
		text += fmt.Sprintf(", %d written", t.updated)
	}
	if t.failed > 0 {
		text += fmt.Sprintf(", %d failed", t.failed)
	}
	return text
}

// differences shows every section that is not as it should be.
func differences(want, got map[string]string) string {
	var b strings.Builder
	names := slices.Sorted(maps.Keys(want))
	for name := range got {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		wanted, isWanted := want[name]
		result, isThere := got[name]
		switch {
		case !isWanted:
			fmt.Fprintf(&b, "%s: not expected\n", name)
		case !isThere:
			fmt.Fprintf(&b, "%s: missing\n", name)
		}
		b.WriteString(diff.Unified(name+" as expected", name+" as rendered", wanted, result))
	}
	if len(want) == 0 {
		b.WriteString("the archive expects nothing: swell kind test --update writes what is rendered\n")
	}
	return b.String()
}

// longUpdate makes the -update of swell kind test, as Go's tests have it, the
// --update that the flags know.
func longUpdate(args []string) []string {
	if len(args) < 2 || args[0] != "kind" || args[1] != "test" {
		return args
	}
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "-update" {
			args[i] = "--update"
		}
	}
	return args
}
