// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/tailscale/hujson"
)

// editorSchema is how settings name the schema, from the workspace's folder.
const editorSchema = "./.vscode/swell.schema.json"

// editorGlobs are the files that hold documents: in the folders of the fleet,
// of kinds and of units.
func editorGlobs(folders []string) []string {
	globs := []string{"swell.yaml", folders[0] + "/**/*.yaml", folders[0] + "/**/*.yml", folders[1] + "/*/kind.yaml"}
	for _, units := range folders[2:] {
		globs = append(globs, units+"/**/*.yaml", units+"/**/*.yml")
	}
	return globs
}

// editorSettings adds the schema to the settings of an editor, which may have
// comments and stay otherwise as they are. Settings that have it already are
// returned unchanged.
func editorSettings(settings []byte, globs []string) ([]byte, error) {
	if len(bytes.TrimSpace(settings)) == 0 {
		settings = []byte("{}\n")
	}
	root, err := hujson.Parse(settings)
	if err != nil {
		return nil, err
	}
	object, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("want an object")
	}
	schemas := member(object, "yaml.schemas")
	if schemas == nil {
		schemas = add(object, "yaml.schemas", lineOf(object, "\n  "), hujson.Value{Value: &hujson.Object{}})
	}
	of, ok := schemas.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New(`"yaml.schemas": want an object`)
	}
	line := lineOf(of, lineOf(object, "\n  ")+"  ")
	text, err := json.MarshalIndent(globs, line[1:], "  ")
	if err != nil {
		return nil, err
	}
	value, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	known := member(of, editorSchema)
	if known == nil {
		add(of, editorSchema, line, value)
	} else if !sameJSON(*known, value) {
		known.Value = value.Value
	}
	return root.Pack(), nil
}

func member(object *hujson.Object, name string) *hujson.Value {
	for i := range object.Members {
		if literal, ok := object.Members[i].Name.Value.(hujson.Literal); ok && literal.String() == name {
			return &object.Members[i].Value
		}
	}
	return nil
}

// lineOf is the start of a line with a member: as the object has it, or else as
// is usual.
func lineOf(object *hujson.Object, usual string) string {
	for _, m := range object.Members {
		if i := bytes.LastIndexByte(m.Name.BeforeExtra, '\n'); i >= 0 {
			return string(m.Name.BeforeExtra[i:])
		}
	}
	return usual
}

// add appends a member on a line of its own. Comments at the object's end stay
// before it.
func add(object *hujson.Object, name, line string, value hujson.Value) *hujson.Value {
	end := object.AfterExtra
	before := append(bytes.Clone(bytes.TrimRight(end, " \t\r\n")), line...)
	value.BeforeExtra, value.AfterExtra = hujson.Extra(" "), nil
	object.Members = append(object.Members, hujson.ObjectMember{Name: hujson.Value{BeforeExtra: before, Value: hujson.String(name)}, Value: value})
	object.AfterExtra = hujson.Extra("\n" + strings.TrimPrefix(line[1:], "  "))
	if i := bytes.LastIndexByte(end, '\n'); i >= 0 {
		object.AfterExtra = bytes.Clone(end[i:])
	}
	return &object.Members[len(object.Members)-1].Value
}

func sameJSON(a, b hujson.Value) bool {
	a, b = a.Clone(), b.Clone()
	a.Minimize()
	b.Minimize()
	return bytes.Equal(bytes.TrimSpace(a.Pack()), bytes.TrimSpace(b.Pack()))
}
