// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"os"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/schema"
)

// BenchmarkLoad compiles the kinds of the example.
func BenchmarkLoad(b *testing.B) {
	hard, err := schema.Kubernetes("")
	if err != nil {
		b.Fatal(err)
	}
	tree := config.Files(os.DirFS("../../testdata/monorepo"))
	for b.Loop() {
		if kinds := LoadAll(tree, []config.Folder{{Path: "kinds/runtime"}, {Path: "kinds/space"}}, hard, nil); len(kinds.Problems) > 0 {
			b.Fatal(kinds.Problems)
		}
	}
}
