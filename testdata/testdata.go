// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package testdata carries the example monorepo, so that swell demo needs no
// checkout.
package testdata

import (
	"embed"
	"io/fs"
)

//go:embed all:monorepo
var files embed.FS

// Monorepo is the example monorepo.
func Monorepo() fs.FS {
	sub, err := fs.Sub(files, "monorepo")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}
