// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"testing/fstest"
)

// treeFiles are the files of a monorepo that a test writes.
type treeFiles fstest.MapFS

// oneCluster is a monorepo with the cluster sas-1, a Rollout and no units.
func oneCluster(name string) treeFiles {
	files := treeFiles{}
	files.write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: %s}\n", name)
	files.write("fleet/fleet.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: sas-1}\n---\n"+
		"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n")
	return files
}

// write writes a file. Without args the text is none of a format.
func (f treeFiles) write(name, text string, args ...any) {
	if len(args) > 0 {
		text = fmt.Sprintf(text, args...)
	}
	f[name] = &fstest.MapFile{Data: []byte(text)}
}
