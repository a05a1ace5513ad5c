// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/kind"
)

// factFiles are the files of a unit whose object holds what an expression
// makes of data/net.yaml.
func factFiles(expression, net string) fstest.MapFS {
	files := richFiles()
	maps.DeleteFunc(files, func(name string, _ *fstest.MapFile) bool { // all that has nothing to do with it
		return strings.HasPrefix(name, "kinds/") || strings.HasPrefix(name, "services/p") || strings.HasPrefix(name, "services/shop/")
	})
	return with(files, map[string]string{
		"data/net.yaml":                net,
		"kinds/fact/fact.proto":        protoOf("Fact", ""),
		"kinds/fact/kind.yaml":         easyKind("Fact", "  objects:\n  - id: own\n    template:\n"+configMapTemplate+"      metadata: {name: \"fact-${target.cell}x\", namespace: shop}\n      data: {out: \"${"+expression+"}\"}\n"),
		"services/shop/fact/fact.yaml": easySpec("Fact", "fact", "{}"),
	})
}

// TestDataThere: that a mapping is there was read and not remembered, so that
// units stayed as they were when it went, in new processes too.
func TestDataThere(t *testing.T) {
	for expression, nets := range map[string][]string{
		"has(data.net.sas) ? 'yes' : 'no'":                                 {"sas: {a: x}", "sas: text", "vla: {}"},
		"'sas' in data.net ? 'yes' : 'no'":                                 {"sas: {a: x}", "vla: {}"},
		"data.net.?sas.hasValue() ? 'yes' : 'no'":                          {"sas: {a: x}", "vla: {}"},
		"type(data.net.?sas.orValue(1)) == map ? 'map' : 'other'":          {"sas: {a: x}", "sas: text", "vla: {}"},
		"data.net.?sas.?b.hasValue() ? 'yes' : 'no'":                       {"sas: {a: x}", "sas: {b: x}", "vla: {}"},
		"has(data.net.sas) ? (has(data.net.sas.b) ? 'b' : 'sas') : 'none'": {"sas: {a: x}", "sas: {b: {}}", "vla: {}"},
		"hash(data)": {"sas: {a: x}", "sas: {a: z}"},
		"string(data.size()) + json.encode(data)": {"sas: {a: x}", "sas: {a: z}"},
		`data.net[?'a\\x00b'].orValue('none')`:    {`{"a\0b": x}`, `{a: {b: x}}`, `{"a\0b": z}`, "{}"},
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			dataThere(t, expression, nets)
		})
	}
}

func dataThere(t *testing.T, expression string, nets []string) {
	kept := cache.Memory()
	running := Compiler{Cache: kept}
	for _, from := range nets {
		for _, to := range nets {
			snapshot(&running, factFiles(expression, from))
			var cold Compiler
			s := snapshot(&cold, factFiles(expression, to))
			if len(s.Problems) > 0 {
				t.Fatalf("%s: %s", expression, s.Problems)
			}
			want := s.text()
			if !strings.Contains(want, "ConfigMap/shop/fact-") {
				t.Fatalf("%s is not rendered: %s", expression, want)
			}
			later := Compiler{Cache: kept}
			for name, c := range map[string]*Compiler{"in memory": &running, "from the cache": &later} {
				if diff := differ(want, snapshot(c, factFiles(expression, to)).text()); diff != "" {
					t.Errorf("%s, from %s to %s, %s (-cold +kept):\n%s", expression, from, to, name, diff)
				}
			}
		}
	}
}

func TestDataName(t *testing.T) {
	seen := map[string]string{}
	for _, path := range [][]string{nil, {""}, {"a"}, {"a", "b"}, {"a", ""}, {"a\x00b"}, {"a\x01b"}, {"a\x01ab"}, {"a\x01", "b"}, {"\x00", "\x01"}} {
		name, text := dataName(path), fmt.Sprintf("%q", path)
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s have the same name", text, other)
		}
		seen[name] = text
		if got := dataPath(name); !slices.Equal(got, path) {
			t.Errorf("got %q, want %s", got, text)
		}
	}
}

// TestManyReads: each read was looked for among all that were there already,
// and what stands in a mapping was noted though the mapping was.
func TestManyReads(t *testing.T) {
	const size = 40_000
	var net strings.Builder
	for i := range size {
		fmt.Fprintf(&net, "k%d: 1\n", i)
	}
	data, problems := kind.LoadData(config.Files(fstest.MapFS{"data/net.yaml": {Data: []byte(net.String())}}), "data")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r := recorder{world: &world{data: data}}
	began := time.Now()
	for range 10 {
		for i := range size {
			r.noteData([]string{"net"}, true)
			r.noteData([]string{"net", fmt.Sprintf("k%d", i)}, false)
		}
	}
	if len(r.list) != size+1 {
		t.Errorf("%d reads, want %d", len(r.list), size+1)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	r = recorder{world: r.world}
	r.noteData([]string{"net"}, true)
	r.noteData([]string{"network", "x"}, false)
	r.noteData([]string{"net"}, false)
	for i := range size {
		r.noteData([]string{"net"}, true)
		r.noteData([]string{"net", fmt.Sprintf("k%d", i)}, false)
		r.noteData([]string{"net", "k1", "k2"}, true)
	}
	var got []string
	for _, read := range r.reads() {
		got = append(got, fmt.Sprintf("%c%s", read.what, strings.ReplaceAll(read.name, "\x00", ".")))
	}
	if want := "D.net D.network.x M.net"; strings.Join(got, " ") != want {
		t.Errorf("got %.200s, want %s", got, want)
	}
}
