// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"os"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/schema"
)

// example is every object that the example monorepo renders to, decoded, with
// its kind.
func example(tb testing.TB) (objects []map[string]any, kinds []*schema.Kind) {
	tb.Helper()
	var c render.Compiler
	s := c.Snapshot("", config.Files(os.DirFS("../../testdata/monorepo")))
	if len(s.Problems) > 0 {
		tb.Fatal(s.Problems)
	}
	set, err := schema.Kubernetes("")
	if err != nil {
		tb.Fatal(err)
	}
	for _, unit := range s.Units.All() {
		bundles, err := s.Bundles(unit)
		if err != nil {
			tb.Fatal(err)
		}
		for _, bundle := range bundles {
			for _, o := range bundle.Objects {
				var object map[string]any
				if err := utiljson.Unmarshal(o.JSON, &object); err != nil {
					tb.Fatal(err)
				}
				objects = append(objects, object)
				kinds = append(kinds, set.Kind(object["apiVersion"].(string), object["kind"].(string)))
			}
		}
	}
	if len(objects) < 100 {
		tb.Fatalf("the example renders to %d objects only", len(objects))
	}
	return objects, kinds
}

// BenchmarkCheck holds one object of the example against its kind.
func BenchmarkCheck(b *testing.B) {
	objects, kinds := example(b)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i = (i + 1) % len(objects)
		if found := kinds[i].Check(objects[i], false); len(found) > 0 {
			b.Fatal(found)
		}
	}
}
