// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/preview"
	"github.com/swell-sh/swell/testdata/large"
)

// BenchmarkPreviewer is what the process that renders previews takes for one, with a base
// that it knows: of one spec of many, and of a kind.
func BenchmarkPreviewer(b *testing.B) {
	specs := specsOf(b)
	dir := b.TempDir()
	repo := filepath.Join(dir, "fleet.git")
	if err := (large.Monorepo{Example: "../../testdata/monorepo", Specs: specs}).Repository(repo); err != nil {
		b.Fatal(err)
	}
	settings := &config.Daemon{State: filepath.Join(dir, "state"), Guard: config.DefaultGuard, Repository: config.GitRepository{URL: repo, Branch: "main"}}
	p, err := openPreviewer(b.Context(), settings, false)
	if err != nil {
		b.Fatal(err)
	}
	defer p.close()
	base := config.Commit(gitIn(b, repo, "rev-parse", "main"))
	for _, ref := range []string{"spec", "kind"} {
		b.Run(fmt.Sprintf("%s/specs=%d", ref, specs), func(b *testing.B) {
			look := func(ref string) {
				answer, err := p.answer(b.Context(), preview.Ask{Base: preview.Base{Commit: base}, Branch: "main", Ref: "refs/heads/" + ref})
				if err != nil || answer.Failed != "" || answer.Bad {
					b.Fatal(answer, err)
				}
			}
			look("main")
			for b.Loop() {
				look("main") // another pull request was looked at meanwhile
				look(ref)
			}
		})
	}
}
