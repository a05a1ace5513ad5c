// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/schema/easy"
)

const schemaExitCodes = "\n\nExit codes: 0 written, 1 written, except for kinds with problems, 2 nothing written."

func schemaCRDCommand(in *invocation) *cobra.Command {
	var output, dir string
	cmd := schemaVerb(in, &cobra.Command{
		Use:   "crd [KIND...]",
		Short: "Print the CustomResourceDefinitions of kinds",
		Long: `Print a CustomResourceDefinition for each of the kinds, by default all, as YAML.
They are for controllers that work with the specs themselves. swell needs none of
them to render.

 1. Load the kinds.
 2. Leave out fields that only clients know, and rules that an older value may
    break: enums, patterns, required fields.
 3. Write the types, merge keys as list map keys, oneof and immutable fields as
    CEL rules, and messages that contain themselves as objects of any content.` + schemaExitCodes,
		Example: `  swell schema crd | kubectl apply --server-side -f -
  swell schema crd Runtime`,
	}, func(cmd *cobra.Command, kinds *easyKinds) error {
		var files []schemaFile
		for _, e := range kinds.picked {
			files = append(files, schemaFile{e.Plural + "." + e.Group, e.CRD()})
		}
		return kinds.writeFiles(cmd, output, dir, files)
	})
	outputFlag(cmd, &output, formatYAML, formatJSON, formatName)
	dirFlag(cmd, &dir)
	return cmd
}

// schemaFile is a schema of one kind, and the name of its file without the
// extension.
type schemaFile struct {
	name  string
	value any
}

// writeFiles writes schemas one after another, or each into a file of its own.
func (k *easyKinds) writeFiles(cmd *cobra.Command, format, dir string, files []schemaFile) error {
	var into *folderInto
	if dir != "" {
		var err error
		if into, err = openInto(k.in, k.dir, dir); err != nil {
			return err
		}
		defer into.root.Close()
	}
	for _, file := range files {
		var text bytes.Buffer
		switch {
		case format == formatName:
			fmt.Fprintln(&text, file.name)
		case format == formatYAML && into == nil:
			text.WriteString("---\n")
		}
		if format != formatName {
			if err := writeData(&text, format, file.value); err != nil {
				return err
			}
		}
		if into == nil {
			if _, err := cmd.OutOrStdout().Write(text.Bytes()); err != nil {
				return err
			}
		} else if err := into.write(cmd.ErrOrStderr(), file.name+"."+format, text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func schemaJSONCommand(in *invocation) *cobra.Command {
	var output, dir string
	cmd := schemaVerb(in, &cobra.Command{
		Use:   "json [KIND...]",
		Short: "Print the JSON Schemas of kinds, for editors",
		Long: `Print a strict JSON Schema (draft-07) for each of the kinds, by default all, one
after another.

 1. Load the kinds.
 2. Write what swell check accepts in a spec of the kind: its fields and no
    others, fromFile in place of strings, spec.override.
 3. With --dir, write a file for each kind into the folder instead, with a name
    like easy.example.com_runtime_v1.json.` + schemaExitCodes,
		Example: `  swell schema json Runtime
  swell schema json --dir schemas`,
	}, func(cmd *cobra.Command, kinds *easyKinds) error {
		var files []schemaFile
		for _, e := range kinds.picked {
			files = append(files, schemaFile{fmt.Sprintf("%s_%s_v1", e.Group, strings.ToLower(e.Kind)), e.JSONSchema()})
		}
		return kinds.writeFiles(cmd, output, dir, files)
	})
	outputFlag(cmd, &output, formatJSON, formatYAML, formatName)
	dirFlag(cmd, &dir)
	return cmd
}

func schemaOpenAPICommand(in *invocation) *cobra.Command {
	var output string
	cmd := schemaVerb(in, &cobra.Command{
		Use:   "openapi [KIND...]",
		Short: "Print the OpenAPI document of kinds, for kustomize",
		Long: `Print one OpenAPI document for the kinds, by default all, as JSON. kustomize reads
it with

  openapi: {path: kinds.json}

in kustomization.yaml, and then merges lists of the specs by their keys.

 1. Load the kinds.
 2. Write their fields with the merge keys and strategies of the message.
 3. Add the definitions that kustomize has built in, since it uses those of the
    file instead.` + schemaExitCodes,
		Example: `  swell schema openapi > kinds.json`,
	}, func(cmd *cobra.Command, kinds *easyKinds) error {
		builtIn, err := easy.BuiltIn()
		if err != nil {
			return err
		}
		return writeData(cmd.OutOrStdout(), output, easy.OpenAPI(kinds.picked, builtIn))
	})
	outputFlag(cmd, &output, formatJSON, formatYAML)
	return cmd
}

// schemaVerb completes a command that writes something for the kinds that its
// arguments name.
func schemaVerb(in *invocation, cmd *cobra.Command, write func(*cobra.Command, *easyKinds) error) *cobra.Command {
	where := repoFlags{in: in}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kinds, err := where.easyKinds(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if err := kinds.pick(args); err != nil {
			return err
		}
		if err := write(cmd, kinds); err != nil {
			return err
		}
		return kinds.exit()
	}
	where.flags(cmd)
	return cmd
}

// easyKinds are the kinds of a monorepo.
type easyKinds struct {
	in         *invocation
	dir        string // of the monorepo
	repository *config.Repository
	picked     []*easy.Schema // without problems, by folder
	own        []*easy.Schema // that are part of swell
	broken     []string       // names, or folders where those are not known
}

// easyKinds loads the kinds of the monorepo in the working tree, and prints
// the problems of those that do not load.
func (p *repoFlags) easyKinds(stderr io.Writer) (*easyKinds, error) {
	k := &easyKinds{in: p.in, dir: p.argument(nil, 0)}
	tree, _, err := p.open(k.dir)
	if err != nil {
		return nil, err
	}
	loaded := render.Kinds(tree)
	k.repository = loaded.Repository
	if len(k.repository.Folders()) == 0 {
		printProblems(stderr, k.repository.Problems)
		return nil, fmt.Errorf("%s: the monorepo's swell.yaml has problems", k.dir)
	}
	all, problems := loaded.Kinds, loaded.Problems
	for _, loaded := range all.Declared() {
		if loaded.Folder == "" {
			k.own = append(k.own, loaded.Schema())
			continue
		}
		if all.ByName(loaded.APIVersion(), loaded.Name) != loaded {
			continue
		}
		if unwritten := loaded.Schema().Written(); len(unwritten) > 0 {
			problems = append(problems, unwritten...)
			k.broken = append(k.broken, loaded.Name)
		} else {
			k.picked = append(k.picked, loaded.Schema())
		}
	}
	k.broken = slices.Concat(k.broken, all.BrokenNames(), all.Unnamed())
	printProblems(stderr, problems.Sorted())
	return k, nil
}

// pick leaves the kinds that are named, as Runtime or Runtime.easy.example.com;
// all when none is.
func (k *easyKinds) pick(args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, e := range k.picked {
		names = append(names, e.Kind)
	}
	var picked []*easy.Schema
	for _, arg := range args {
		before := len(picked)
		for _, e := range k.picked {
			if (arg == e.Kind || arg == e.Kind+"."+e.Group) && !slices.Contains(picked, e) {
				picked = append(picked, e)
			}
		}
		switch {
		case len(picked) > before:
		case slices.Contains(k.broken, arg):
			return fmt.Errorf("kind %q: does not load", arg)
		default:
			return fmt.Errorf("kind %q: no such kind%s", arg, document.DidYouMean(arg, names))
		}
	}
	k.picked = picked
	return nil
}

func (k *easyKinds) exit() error {
	if len(k.broken) > 0 {
		return exit(exitProblems)
	}
	return nil
}

func indentJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	err := writeIndented(&b, value)
	return b.Bytes(), err
}

func schemaVSCodeCommand(in *invocation) *cobra.Command {
	where := repoFlags{in: in}
	cmd := &cobra.Command{
		Use:   "vscode",
		Short: "Make Visual Studio Code check specs while they are written",
		Long: `Write .vscode/swell.schema.json, one JSON Schema for all documents of the
monorepo, and name it in .vscode/settings.json; its other settings stay as they
are. The YAML extension of Visual Studio Code (redhat.vscode-yaml), or any
other editor with yaml-language-server, then underlines the parts of a spec that
swell check would refuse.

 1. Load the kinds.
 2. Write the schema. It checks each document by its apiVersion and kind, and
    accepts documents of other kinds.
 3. Name it for the folders of the fleet, of kinds and of units.` + schemaExitCodes,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			kinds, err := where.easyKinds(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			text, err := indentJSON(easy.EditorSchema(slices.Concat(kinds.picked, kinds.own), config.OwnDocuments(), len(kinds.broken) == 0))
			if err != nil {
				return err
			}
			into, err := openInto(in, kinds.dir, filepath.Join(kinds.dir, ".vscode"))
			if err != nil {
				return err
			}
			defer into.root.Close()
			before, err := into.read("settings.json")
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			settings, err := editorSettings(before, editorGlobs(kinds.repository.Folders()))
			if err != nil {
				return hinted{fmt.Errorf("%s: %w", filepath.Join(into.shown, "settings.json"), err), "fix or remove the file; nothing was written"}
			}
			if err := into.write(cmd.ErrOrStderr(), "swell.schema.json", text); err != nil {
				return err
			}
			if err := into.write(cmd.ErrOrStderr(), "settings.json", settings); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "swell: %s\n", document.Count(len(kinds.picked), "kind"))
			return kinds.exit()
		},
	}
	where.flags(cmd)
	return cmd
}
