// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
)

//go:embed newkind.txtar
var newKindFiles string

const exampleGroup = "easy.example.com"

func kindNewCommand(in *invocation) *cobra.Command {
	where := repoFlags{in: in}
	var group string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a small working kind to start from",
		Long: `Write kinds/NAME with a schema (NAME.proto), a template (kind.yaml) of a Deployment
and a Service, and a test (tests/basic.txtar) that passes. NAME is in lower case,
like web-app; specs then say kind: WebApp. Existing files are not overwritten.

Exit codes: 0 written, 2 not written.`,
		Example: `  swell kind new web-app --group easy.example.com`,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tester, err := newKindTester(in, where.argument(nil, 0))
			if err != nil {
				return err
			}
			n, err := tester.newKind(args[0], group)
			if err != nil {
				return err
			}
			files, err := n.files(tester)
			if err != nil {
				return err
			}
			if err := writeNew(tester.dir, n.folder, files); err != nil {
				return err
			}
			n.say(cmd.OutOrStdout(), files)
			return nil
		},
	}
	where.flags(cmd)
	cmd.Flags().StringVar(&group, "group", "", "API group of the kind (default: that of the other kinds, else "+exampleGroup+")")
	return cmd
}

// newKind is a kind that is about to be written.
type newKind struct {
	name    string // "web-app"
	message string // "WebApp", the kind in specs
	group   string
	folder  string // "kinds/web-app"
}

func (t *kindTester) newKind(name, group string) (*newKind, error) {
	if !document.IsLabel(name) || name[0] < 'a' || name[0] > 'z' {
		return nil, fmt.Errorf("name %q: want at most 63 lower-case letters, digits and -, a letter first and no - last, like web-app", name)
	}
	n := &newKind{name: name, folder: path.Join(t.folders.Kinds, name)}
	for part := range strings.SplitSeq(name, "-") {
		if part != "" {
			n.message += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	if taken, err := kubernetesKind(n.message); err != nil || taken != "" {
		return nil, cmp.Or(err, error(hinted{fmt.Errorf("name %q: %s is a kind of Kubernetes: readers and overrides would confuse the two", name, taken), "choose another name, like web-" + name}))
	}
	// Those that are there, those with problems too, but not swell's own.
	others := slices.DeleteFunc(slices.Clone(render.Kinds(t.tree).Kinds.Declared()), func(k *kind.Kind) bool { return k.Folder == "" })
	var err error
	if n.group, err = chooseGroup(group, others); err != nil {
		return nil, err
	}
	for _, other := range others {
		if other.Group == n.group && other.Name == n.message {
			return nil, fmt.Errorf("kind %s (%s): %s has it already", n.message, n.group, other.Folder)
		}
	}
	return n, nil
}

// kubernetesKind is the kind of Kubernetes, of any group, that a name is the
// same as but for its case; empty for none. A List stands for its items.
func kubernetesKind(name string) (string, error) {
	set, err := schema.Kubernetes("")
	if err != nil {
		return "", err
	}
	for _, known := range append(set.Names(), "v1 List") {
		if _, known, _ = strings.Cut(known, " "); strings.EqualFold(known, name) {
			return known, nil
		}
	}
	return "", nil
}

// chooseGroup is the group that was asked for, else the one that all kinds
// share.
func chooseGroup(group string, others []*kind.Kind) (string, error) {
	if group != "" {
		if !document.IsName(group) || !strings.Contains(group, ".") || group == config.Group {
			return "", fmt.Errorf("--group %q: want a domain of your own, like %s", group, exampleGroup)
		}
		return group, nil
	}
	var groups []string
	for _, other := range others {
		if other.Group != "" && !slices.Contains(groups, other.Group) {
			groups = append(groups, other.Group)
		}
	}
	switch len(groups) {
	case 0:
		return exampleGroup, nil
	case 1:
		return groups[0], nil
	}
	return "", hinted{fmt.Errorf("the kinds here are of several groups: %s", strings.Join(groups, ", ")), "--group chooses the group of the new kind"}
}

// files are those of the kind's folder, as paths in it. The test's results are
// rendered, not written down beforehand.
func (n *newKind) files(t *kindTester) ([]txtar.File, error) {
	replace := strings.NewReplacer("__NAME__", n.name, "__MESSAGE__", n.message, "__GROUP__", n.group,
		"__PACKAGE__", strings.ReplaceAll(n.name, "-", "_"), "__SINGULAR__", strings.ToLower(n.message), "- - ", "-- ", " - -", " --")
	var files []txtar.File
	for _, f := range txtar.Parse([]byte(newKindFiles)).Files {
		files = append(files, txtar.File{Name: replace.Replace(f.Name), Data: []byte(replace.Replace(string(f.Data)))})
	}
	var inTree []txtar.File
	for _, f := range files {
		inTree = append(inTree, txtar.File{Name: path.Join(n.folder, f.Name), Data: f.Data})
	}
	tree, err := layOver(t.tree, inTree, n.folder)
	if err != nil {
		return nil, err
	}
	basic := &files[len(files)-1]
	test, err := readKindTest(n.folder, path.Join(n.folder, basic.Name), basic.Data)
	if err != nil {
		return nil, err
	}
	want, err := t.render(test, tree)
	if err != nil {
		return nil, err
	}
	if problems := want[wantProblems]; problems != "" {
		return nil, fmt.Errorf("the new kind would have problems here:\n%s", problems)
	}
	basic.Data, err = withWant(basic.Data, want)
	return files, err
}

// writeNew writes files into a new folder of the monorepo. It never touches
// what is there: the folder must not exist, and after an error only what was
// written is removed. Links that lead out of the monorepo are not followed.
func writeNew(dir, folder string, files []txtar.File) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var made []string // files and folders, in the order of making
	defer func() {
		if err != nil {
			for _, name := range slices.Backward(made) {
				_ = root.Remove(name) // a folder that somebody else wrote into stays
			}
		}
	}()
	if err := root.MkdirAll(filepath.FromSlash(path.Dir(folder)), 0o755); err != nil {
		return err
	}
	if err := root.Mkdir(filepath.FromSlash(folder), 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: exists already, nothing was written", folder)
		}
		return err
	}
	made = append(made, filepath.FromSlash(folder))
	for _, f := range files {
		name := filepath.FromSlash(path.Join(folder, f.Name))
		if sub := filepath.Dir(name); !slices.Contains(made, sub) {
			if err := root.Mkdir(sub, 0o755); err != nil {
				return err
			}
			made = append(made, sub)
		}
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		made = append(made, name)
		_, err = file.Write(f.Data)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (n *newKind) say(w io.Writer, files []txtar.File) {
	for _, f := range files {
		fmt.Fprintln(w, path.Join(n.folder, f.Name))
	}
	fmt.Fprintf(w, "\nSpecs say apiVersion: %s/v1, kind: %s.\nswell kind test %s runs its test, swell explain %s describes the fields of a spec.\n",
		n.group, n.message, n.name, n.message)
}
