// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

// standsFor is a kind with n objects of another easy kind, or a ConfigMap at
// depth 0.
func standsFor(kindName, other string, n int, when string) fstest.MapFS {
	folder := "kinds/" + strings.ToLower(kindName)
	return fstest.MapFS{
		folder + "/" + strings.ToLower(kindName) + ".proto": {Data: []byte(protoOf(kindName, "  int32 depth = 1;\n"))},
		folder + "/kind.yaml": {Data: []byte(easyKind(kindName, fmt.Sprintf(`  objects:
  - id: more
    each: {i: lists.range(%d)}
    when: %s
    template:
      apiVersion: easy.example.com/v1
      kind: %s
      metadata: {name: "${self.metadata.name}-${i}"}
      spec: {depth: "${self.spec.depth - 1}"}
  - id: leaf
    when: self.spec.depth == 0
    template:
`+configMapTemplate+`      metadata: {name: "${self.metadata.name}", namespace: boxes}
`, n, when, other)))},
	}
}

// TestKindsThatMultiply: kinds that stand for each other many times had a bound
// for each spec and none for all of them: no answer within half a minute, or
// gibibytes.
func TestKindsThatMultiply(t *testing.T) {
	for name, test := range map[string]struct {
		n, m       int
		when, want string
		depth      int
	}{
		"ten by ten, seven deep":       {10, 10, "self.spec.depth > 0", "the spec stands for more than 10000 objects on one target, easy specs among them (from kinds/ping/kind.yaml:", 7},
		"a thousand by a thousand":     {1000, 1000, "self.spec.depth > 0", "more steps than one spec may on one target (from kinds/ping/kind.yaml:", 2},
		"many items and none of them":  {10_000, 10_000, "self.spec.depth > 1", "more steps than one spec may on one target (from kinds/ping/kind.yaml:", 2},
		"as many as a spec may render": {60, 60, "self.spec.depth > 0", "", 2},
	} {
		files := richFiles()
		maps.Copy(files, standsFor("Ping", "Pong", test.n, test.when))
		maps.Copy(files, standsFor("Pong", "Ping", test.m, test.when))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var c Compiler
		s := snapshot(&c, with(files, map[string]string{"services/platform/ping/x.yaml": easySpec("Ping", "p", fmt.Sprintf("{depth: %d}", test.depth))}))
		runtime.ReadMemStats(&after)
		unit := s.Units.Get("services/platform/ping")
		switch {
		case test.want == "":
			if len(unit.Problems) > 0 || unit.Placements[0].Objects != test.n*test.m {
				t.Errorf("%s: %d objects, %v", name, unit.Placements[0].Objects, unit.Problems)
			}
		case len(unit.Problems) != 1 || !strings.Contains(unit.Problems.String(), test.want):
			t.Errorf("%s: got %v, want one problem: %s", name, unit.Problems, test.want)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 2000 {
			t.Errorf("%s: allocated %d MiB in all", name, used)
		}
	}
}
