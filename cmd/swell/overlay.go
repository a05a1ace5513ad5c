// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"golang.org/x/tools/txtar"

	"github.com/swell-sh/swell/config"
)

// layOver replaces folders of a tree by those among the files.
func layOver(tree config.Tree, files []txtar.File, replaced ...string) (config.Tree, error) {
	top, err := txtar.FS(&txtar.Archive{Files: files})
	if err != nil {
		return nil, err
	}
	return config.Overlay(tree, config.Files(top), replaced...), nil
}
