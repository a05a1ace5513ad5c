// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/rapidtest"
)

// TestUniqueFromCommitToCommit changes hosts and ports of a few specs at random: a
// compiler that saw every commit finds the same collisions as a new one.
func TestUniqueFromCommitToCommit(t *testing.T) {
	archive, err := txtar.ParseFile("../testdata/bad/unique.txtar")
	if err != nil {
		t.Fatal(err)
	}
	base := exampleFiles(t, "swell.yaml", "fleet")
	for _, f := range archive.Files {
		switch f.Name {
		case "kinds/web/web.proto", "kinds/web/kind.yaml", "services/swell.yaml":
			base[f.Name] = &fstest.MapFile{Data: f.Data}
		}
	}
	collisions := 0
	rapidtest.Check(t, 10, time.Second, func(t *rapid.T) {
		files := maps.Clone(base)
		var kept Compiler
		for range 6 {
			unit := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "unit")
			name := "services/" + unit + "/x.yaml"
			switch rapid.SampledFrom([]string{"write", "write", "write", "break", "remove"}).Draw(t, "edit") {
			case "write":
				files[name] = &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: easy.example.com/v1\nkind: Web\nmetadata: {name: %s}\nspec: {host: h%d, ports: [%d, %d]}\n",
					unit, rapid.IntRange(0, 3).Draw(t, "host"), rapid.IntRange(1, 5).Draw(t, "port"), rapid.IntRange(1, 5).Draw(t, "port"))}
			case "break":
				files[name] = &fstest.MapFile{Data: []byte("apiVersion: easy.example.com/v1\nkind: Web\nmetadata: {name: x}\nspec: {hots: h1}\n")}
			case "remove":
				delete(files, name)
			}
			files["services/always/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: always, namespace: \"always\"}\n")}
			var fresh Compiler
			commit := config.Files(maps.Clone(files))
			want, got := fresh.Snapshot("", commit), kept.Snapshot("", commit)
			if diff := cmp.Diff(want.Problems.String(), got.Problems.String()); diff != "" {
				t.Fatalf("problems (-new +kept):\n%s", diff)
			}
			collisions += len(got.Problems)
		}
	})
	if collisions == 0 {
		t.Error("nothing collided")
	}
}
