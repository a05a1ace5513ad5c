// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strings"
	"testing"
)

// TestDamage: which files look like manifests that something went wrong with, and which are
// for other programs.
func TestDamage(t *testing.T) {
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	for name, test := range map[string]struct {
		content string
		damage  string // the begin of the text; empty: it looks like none
		foreign bool
	}{
		"a manifest": {manifest, "", false},
		"a pointer of LFS": {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
			"holds a pointer of Git LFS", false},
		"a page":               {"\n <!DOCTYPE html>\n<html></html>\n", "holds markup", false},
		"a conflict":           {"<<<<<<< HEAD\n" + manifest + "=======\n>>>>>>> x\n", "holds the marks of a merge", false},
		"a conflict below":     {"a: b\n<<<<<<< HEAD\n=======\n>>>>>>> x\n", "holds the marks of a merge", false},
		"nothing":              {"", "is empty", false},
		"a byte order mark":    {"\ufeff", "is empty", false},
		"marks of documents":   {"---\n\n---\n...\n", "is empty", false},
		"commented out":        {"---\n# apiVersion: v1\n# kind: ConfigMap\n", "has its documents commented out", false},
		"half of it":           {"# kind: ConfigMap\na: b\n", "", true},
		"comments":             {"# Notes\n# kind of a note\n", "", false},
		"values":               {"image: x\nmetadata: {name: x}\n", "", true},
		"a patch":              {"- op: add\n  path: /a\n", "", true},
		"a list of objects":    {"- apiVersion: v1\n", "", false},
		"without first lines":  {"metadata: {name: x}\nspec: {}\n", "", false},
		"in other letters":     {"Kind: ConfigMap\nmetadata: {}\n", "", false},
		"a number":             {"42\n", "", false},
		"broken":               {"a: [b\n", "", false},
		"values and an object": {"a: b\n---\n" + manifest, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			damage := Damage([]byte(test.content))
			if (damage == "") != (test.damage == "") || !strings.HasPrefix(damage, test.damage) {
				t.Errorf("damage %q, want %q", damage, test.damage)
			}
			if test.damage == "" && IsForeign([]byte(test.content)) != test.foreign {
				t.Errorf("foreign: %v, want %v", !test.foreign, test.foreign)
			}
		})
	}
}
