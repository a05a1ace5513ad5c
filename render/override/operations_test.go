// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/render/schema"
)

// pod and service are small objects with lists that have keys.
const (
	pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":{"a":"1"}},"spec":{"containers":[
		{"name":"main","image":"i","livenessProbe":{"periodSeconds":5},"ports":[{"containerPort":80},{"containerPort":53,"protocol":"UDP"}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},
		{"name":"side","image":"s"}]}}`
	service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"ports":[{"name":"http","port":80},{"name":"dns","port":53,"protocol":"UDP"},{"name":"web","port":8080}]}}`
	secret  = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"data":{"a":"c2VjcmV0"},"stringData":{"b":"hunter2"}}`
	widget  = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"items":[{"name":"a","v":1},{"name":"b","v":2}],"grid":[[1,2],[3]],"nodes":{"z":{"v":1},"w":{"v":2}}}}`
)

// TestOperations compares the spec of what comes out.
func TestOperations(t *testing.T) {
	for _, c := range []struct{ name, object, override, want string }{
		{"set replaces a whole map", pod, "    set:\n    - {path: 'spec.containers[1]', value: {name: new}}\n    - {path: 'spec.containers[0]', value: {name: one}}",
			`{"containers":[{"name":"one"},{"name":"new"}]}`},
		{"set replaces a list that has keys", pod, "    set: [{path: spec.containers, value: [{name: one}]}]", `{"containers":[{"name":"one"}]}`},
		{"set makes the last name", widget, "    remove: [spec.grid, spec.nodes]\n    set: [{path: 'spec.items[*].n', value: 3}]",
			`{"items":[{"n":3,"name":"a","v":1},{"n":3,"name":"b","v":2}]}`},
		{"remove as string and as map", widget, "    remove:\n    - spec.grid\n    - {path: spec.nodes.z}\n    - 'spec.items[-1]'",
			`{"items":[{"name":"a","v":1}],"nodes":{"w":{"v":2}}}`},
		{"remove passes over items without the field", pod, "    remove: ['spec.containers[*].livenessProbe', 'spec.containers[*].ports', 'spec.containers[*].env']",
			`{"containers":[{"image":"i","name":"main"},{"image":"s","name":"side"}]}`},
		{"remove several items", service, "    remove: ['spec.ports[?port > `60`]']", `{"ports":[{"name":"dns","port":53,"protocol":"UDP"}]}`},
		{"remove every item", widget, "    remove: ['spec.items[*]', spec.grid, spec.nodes]", `{"items":[]}`},
		{"append", widget, "    remove: [spec.grid, spec.nodes]\n    append: [{path: spec.items, value: {name: c}}, {path: spec.more, value: 1}, {path: spec.more, value: 2}]",
			`{"items":[{"name":"a","v":1},{"name":"b","v":2},{"name":"c"}],"more":[1,2]}`},
		{"the order of the kinds of operations is fixed", widget, "    patch: [{op: test, path: /spec/items/0/v, value: 7}, {op: remove, path: /spec/items}]\n" +
			"    append: [{path: spec.items, value: {v: 7}}]\n    remove: ['spec.items[*]', spec.grid, spec.nodes]\n    set: [{path: 'spec.items[0].v', value: 5}]\n    update: [{path: 'spec.items[0].v', value: 4}]",
			`{}`},
		{"a filter with a number and a function", service, "    update: [{path: \"spec.ports[?port==`80` && contains(name, 'tt')].port\", value: 81}]",
			`{"ports":[{"name":"http","port":81},{"name":"dns","port":53,"protocol":"UDP"},{"name":"web","port":8080}]}`},
		{"or, not, comparison with null", service, "    update: [{path: \"spec.ports[?!(protocol) && (port<`80` || name=='web')].port\", value: 1}]",
			`{"ports":[{"name":"http","port":80},{"name":"dns","port":53,"protocol":"UDP"},{"name":"web","port":1}]}`},
		{"a filter in a filter", pod, "    remove: [\"spec.containers[?!(env[?name=='B'])]\", \"spec.containers[?ports[1].protocol=='UDP'].ports\", 'spec.containers[0].env']",
			`{"containers":[{"image":"i","livenessProbe":{"periodSeconds":5},"name":"main"}]}`},
		{"a filter below a filter", pod, "    update: [{path: \"spec.containers[?name=='main'].env[?name=='B'].value\", value: '3'}]\n    remove: ['spec.containers[*].ports', 'spec.containers[*].livenessProbe']",
			`{"containers":[{"env":[{"name":"A","value":"1"},{"name":"B","value":"3"}],"image":"i","name":"main"},{"image":"s","name":"side"}]}`},
		{"a slice", service, "    remove: ['spec.ports[:2]']", `{"ports":[{"name":"web","port":8080}]}`},
		{"a slice with a step", service, "    remove: ['spec.ports[::2]']", `{"ports":[{"name":"dns","port":53,"protocol":"UDP"}]}`},
		{"lists in lists and every value", widget, "    set: [{path: 'spec.grid[*][0]', value: 0}, {path: 'spec.nodes.*.v', value: 9}]\n    remove: [spec.items]",
			`{"grid":[[0,2],[0]],"nodes":{"w":{"v":9},"z":{"v":9}}}`},
		{"two keys, one with a default", pod, "    update: [{path: spec, value: {containers: [{name: main, livenessProbe: null, env: null, ports: [{containerPort: 53, name: tcp}, {containerPort: 80, protocol: TCP, name: http}]}]}}]",
			`{"containers":[{"image":"i","name":"main","ports":[{"containerPort":80,"name":"http","protocol":"TCP"},{"containerPort":53,"protocol":"UDP"},{"containerPort":53,"name":"tcp"}]},{"image":"s","name":"side"}]}`},
		{"a list of an unknown type is replaced", widget, "    update: [{path: spec, value: {items: [{name: b}], grid: null, nodes: null}}]", `{"items":[{"name":"b"}]}`},
		{"nulls in what is new are nothing", widget, "    update: [{path: spec, value: {items: null, grid: null, nodes: {w: null, new: {a: null, b: 1}}}}]", `{"nodes":{"new":{"b":1},"z":{"v":1}}}`},
		{"the whole object", widget, "    update: [{path: '@', value: {spec: {grid: null, items: null}}}]\n    remove: ['@.spec.nodes.w']", `{"nodes":{"z":{"v":1}}}`},
		{"an update of nothing", service, "    update: [{path: spec, value: {}}, {path: '@', value: {}}]",
			`{"ports":[{"name":"http","port":80},{"name":"dns","port":53,"protocol":"UDP"},{"name":"web","port":8080}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, problems := run(t, c.override, c.object)
			if problems != "" {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(c.want, string(schema.AppendJSON(nil, got["spec"]))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPatch is RFC 6902, on the spec of widget.
func TestPatch(t *testing.T) {
	const before = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"l":[1,2],"m":{"a/b":1,"c~d":2},"n":1.5}}`
	for _, c := range []struct{ patch, want string }{
		{`{op: add, path: /spec/new, value: {x: 1}}`, `{"l":[1,2],"m":{"a/b":1,"c~d":2},"n":1.5,"new":{"x":1}}`},
		{`{op: add, path: /spec/n, value: 2}`, `{"l":[1,2],"m":{"a/b":1,"c~d":2},"n":2}`},
		{`{op: add, path: /spec/l/0, value: 0}`, `{"l":[0,1,2],"m":{"a/b":1,"c~d":2},"n":1.5}`},
		{`{op: add, path: /spec/l/2, value: 3}`, `{"l":[1,2,3],"m":{"a/b":1,"c~d":2},"n":1.5}`},
		{`{op: add, path: /spec/l/-, value: 3}`, `{"l":[1,2,3],"m":{"a/b":1,"c~d":2},"n":1.5}`},
		{`{op: remove, path: /spec/l/0}`, `{"l":[2],"m":{"a/b":1,"c~d":2},"n":1.5}`},
		{`{op: remove, path: /spec/m/a~1b}`, `{"l":[1,2],"m":{"c~d":2},"n":1.5}`},
		{`{op: replace, path: /spec/m/c~0d, value: [x]}`, `{"l":[1,2],"m":{"a/b":1,"c~d":["x"]},"n":1.5}`},
		{`{op: replace, path: /spec/l/1, value: 9}`, `{"l":[1,9],"m":{"a/b":1,"c~d":2},"n":1.5}`},
		{`{op: move, from: /spec/l/0, path: /spec/l/1}`, `{"l":[2,1],"m":{"a/b":1,"c~d":2},"n":1.5}`},
		{`{op: move, from: /spec/m, path: /spec/o}`, `{"l":[1,2],"n":1.5,"o":{"a/b":1,"c~d":2}}`},
		{`{op: copy, from: /spec/m, path: /spec/l/0}`, `{"l":[{"a/b":1,"c~d":2},1,2],"m":{"a/b":1,"c~d":2},"n":1.5}`},
		{`{op: test, path: /spec/m, value: {c~d: 2.0, a/b: 1}}`, `{"l":[1,2],"m":{"a/b":1,"c~d":2},"n":1.5}`},
		{`{op: copy, from: /spec/m, path: /spec/o}, {op: remove, path: /spec/o/a~1b}`, `{"l":[1,2],"m":{"a/b":1,"c~d":2},"n":1.5,"o":{"c~d":2}}`},
	} {
		got, _, problems := run(t, "    patch: ["+c.patch+"]", before)
		if problems != "" {
			t.Errorf("%s: %s", c.patch, problems)
			continue
		}
		if diff := cmp.Diff(c.want, string(schema.AppendJSON(nil, got["spec"]))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.patch, diff)
		}
	}
}

func TestProblems(t *testing.T) {
	doubling := "    set: [{path: spec.l, value: [x]}]\n    patch:" + strings.Repeat("\n    - {op: copy, from: /spec, path: /spec/l/-}", 60)
	long := strings.Repeat("a", maxPath+1)
	for _, c := range []struct{ name, object, override, want string }{
		{"nothing there", widget, "    set: [{path: spec.itms.x, value: 1}]", `f.yaml:5:18: spec.override.o: "spec.itms.x" matches nothing: spec is there, but there is only grid, items, nodes, did you mean "items"?`},
		{"what could be there", pod, "    set: [{path: spec.securityContext.runAsUser, value: 1}]", "spec is there, but it has no securityContext yet: update spec with a value of {securityContext: ...}"},
		{"remove of nothing", pod, "    remove: [spec.securityContext]", `"spec.securityContext" matches nothing: spec is there, but there is only containers`},
		{"remove of nothing in items", pod, "    remove: ['spec.containers[*].tty']", "spec.containers[*] is there, but there is only env, image"},
		{"null for nothing", pod, "    update: [{path: spec.hostname, value: null}]", "matches nothing"},
		{"the furthest miss", pod, "    remove: ['spec.containers[*].livenessProbe.httpGet']", "spec.containers[*].livenessProbe is there, but there is only periodSeconds"},
		{"no item of the filter", service, "    remove: ['spec.ports[?port==`81`]']", "spec.ports is there, but the list there has 3 items, with port 80, 53, 8080"},
		{"a list of nothing", widget, "    remove: ['spec.items[*]', 'spec.items[*]']", "spec.items is there, but the list there has 0 items"},
		{"far index", service, "    remove: ['spec.ports[4294967295]']", "the list there has 3 items"},
		{"far negative index", service, "    remove: ['spec.ports[-4]']", "the list there has 3 items"},
		{"huge index", service, "    remove: ['spec.ports[99999999999999999999]']", "[99999999999999999999]: no list is that long"},
		{"empty slice", service, "    remove: ['spec.ports[3:]']", "the list there has 3 items"},
		{"slice backwards", service, "    remove: ['spec.ports[::-1]']", "want a step from 1"},
		{"into a scalar", service, "    remove: ['spec.ports[*].port.x']", "spec.ports[*].port is there, but it is a number and no map"},
		{"index of a map", service, "    remove: ['spec[0]']", "spec is there, but it is a map and no list"},
		{"values of a list", service, "    remove: ['spec.ports.*']", "it is a list and no map"},
		{"append to a map", service, "    append: [{path: spec, value: 1}]", `"spec": cannot append: spec is a map and no list`},
		{"append what is there", service, "    append: [{path: spec.ports, value: {port: 80}}]", "cannot append: the list has an item with port 80, protocol TCP already, use update to change it"},
		{"merge without a key", service, "    update: [{path: spec, value: {ports: [{name: x}]}}]", `"spec": value: item 0 of spec.ports has no port and protocol, which tells the items of this list apart: use set to replace the list`},
		{"merge twice", service, "    update: [{path: spec.ports, value: [{port: 1}, {port: 1, protocol: TCP}]}]", "items 0 and 1 of spec.ports have the same port and protocol"},
		{"null to set", service, "    set: [{path: spec, value: null}]", "set[0]: want a value, got nothing: use remove"},
		{"the whole object to set", service, "    set: [{path: '@', value: {}}]", "@ is the whole object, which cannot be replaced or removed"},
		{"the whole object to remove", service, "    remove: ['@']", "@ is the whole object, which cannot be replaced or removed"},
		{"a scalar into the whole object", service, "    update: [{path: '@', value: 1}]", "want a map to merge into it"},
		{"api version", service, "    set: [{path: apiVersion, value: v2}]", "apiVersion: an override cannot change which object it is"},
		{"all of metadata", service, "    remove: [metadata]", "metadata.name: an override cannot change which object it is"},
		{"a new namespace", service, "    patch: [{op: add, path: /metadata/namespace, value: x}]", "f.yaml:5:29: spec.override.o: metadata.namespace: an override cannot change"},
		{"swell's label", service, "    update: [{path: metadata.labels, value: {swell.sh/unit: x}}]", `metadata.labels["swell.sh/unit"]: swell sets it on everything that it applies`},
		{"swell's repository", pod, "    set: [{path: 'metadata.labels.\"swell.sh/repository\"', value: x}]", `metadata.labels["swell.sh/repository"]: swell sets it`},
		{"swell's annotation", service, "    update: [{path: '@', value: {metadata: {annotations: {swell.sh/unit: x}}}}]", `metadata.annotations["swell.sh/unit"]: swell sets it`},

		{"filter of everything", service, "    remove: ['spec.ports[?`true`]']", "picks every item or none, whatever they are: write [*]"},
		{"filter of items", service, "    remove: ['spec.ports[?@]']", "picks every item or none"},
		{"filter of itself", service, "    remove: ['spec.ports[?port==port]']", "picks every item or none"},
		{"empty filter", service, "    remove: ['spec.ports[?]']", "want a condition like name=='main'"},
		{"function of null", service, "    remove: [\"spec.ports[?starts_with(protocol, 'U')]\"]", "the filter cannot be computed for item 0 of spec.ports: a function got what it does not take; test the field first"},
		{"unknown function", service, "    remove: [\"spec.ports[?start_with(name, 'U')]\"]", `start_with: no function of filters, did you mean "starts_with"?`},
		{"growing function", service, "    remove: [\"spec.ports[?pad_left(name, `1000000000`, ' ')]\"]", "pad_left: no function of filters, want one of abs, avg"},
		{"new lists", service, "    remove: ['spec.ports[?[@, @][]]']", "a filter cannot make new lists"},
		{"order of a map", service, "    remove: [\"spec.ports[?*=='x']\"]", "* has no order in a filter"},
		{"sums", service, "    remove: ['spec.ports[?port-name]']", "a name with - in it stands in double quotes"},
		{"variables", service, "    remove: ['spec.ports[?let $a = port in $a]']", "and nothing else"},

		{"hyphen", widget, "    remove: [spec.foo-bar]", `want . or [ before "-bar": a name with other characters than letters, digits and _ stands in double quotes`},
		{"slash", widget, "    remove: [spec.1foo]", `write "1foo" in double quotes`},
		{"a field in brackets", widget, "    remove: ['spec[\"items\"]']", `["items"]: want ."items" for a field`},
		{"flatten", widget, "    remove: ['spec.grid[]']", "write [*] for every item"},
		{"multi-select", widget, "    remove: ['spec.{a: b}']", "write an operation for each"},
		{"multi-select list", widget, "    remove: ['spec[a, b]']", "want a name, [index]"},
		{"dot and index", widget, "    remove: ['spec.items.[0]']", "an index or a filter stands without one"},
		{"pipe", widget, "    remove: ['spec.items | [0]']", "a pipe gives a value and no place"},
		{"function", widget, "    remove: ['sort(spec.items)']", "a function gives a value and no place"},
		{"or", widget, "    remove: ['spec.a || spec.b']", `want . or [ before " || spec.b"`},
		{"open bracket", widget, "    remove: [\"spec.items[?name=='a]'\"]", "the [ is never closed"},
		{"long", widget, "    remove: [" + long + "]", "1001 bytes, want at most 1000"},
		{"bad escape", widget, `    remove: ['spec."\x"']`, "not a string in double quotes as JSON has it"},
		{"a number as path", widget, "    remove: [1]", "remove[0].path: want a string"},
		{"a list as path", widget, "    remove: [[spec]]", "remove[0]: want a path, and nothing else"},
		{"remove with a value", widget, "    remove: [{path: spec, value: 1}]", "remove[0]: want a path, and nothing else"},
		{"unknown kind of operation", widget, "    apend: []", `apend: unknown field, did you mean "append"?`},
		{"no list", widget, "    remove: spec", "remove: want a list of paths"},
		{"no map", widget, "    []", "spec.override.o: want a map with update, set, remove, append or patch"},

		{"patch test", widget, "    patch: [{op: test, path: /spec/items/0/v, value: 2}, {op: test, path: /spec/x, value: 2}]",
			"f.yaml:5:30: spec.override.o: patch[0]: test /spec/items/0/v: want the number 2, got the number 1"},
		{"patch test of a map", widget, "    patch: [{op: test, path: /spec/nodes, value: {}}]", "patch[0]: test /spec/nodes: a map is there, but with other content"},
		{"patch into nothing", widget, "    patch: [{op: add, path: /spec/x/y, value: 1}]", "patch[0]: add /spec/x/y: /spec is there, but there is only grid, items, nodes"},
		{"patch into a scalar", widget, "    patch: [{op: remove, path: /kind/x}]", "/kind is there, but it is a string and has nothing below it"},
		{"patch behind the end", widget, "    patch: [{op: add, path: /spec/items/3, value: 1}]", "/spec/items is there, but it is a list and takes an index from 0 to 2 there"},
		{"patch of the item behind the last", widget, "    patch: [{op: remove, path: /spec/items/-}]", "takes an index from 0 to 1 there"},
		{"patch with a leading zero", widget, "    patch: [{op: remove, path: /spec/items/01}]", "takes an index from 0 to 1 there"},
		{"patch of all", widget, "    patch: [{op: replace, path: '', value: {}}]", "replace: the empty path is the whole object"},
		{"patch into itself", widget, "    patch: [{op: move, from: /spec, path: /spec/x}]", `move: "/spec/x" is inside of what is moved`},
		{"patch without a value", widget, "    patch: [{op: add, path: /spec/x}]", "patch[0]: add: value is missing"},
		{"patch with too much", widget, "    patch: [{op: remove, path: /spec/x, value: 1}]", "patch[0]: remove: value does not belong here"},
		{"patch of no known form", widget, "    patch: [{op: ad, path: /spec/x, value: 1}]", `patch[0].op: unknown operation, did you mean "add"?`},
		{"patch with a path of the other kind", widget, "    patch: [{op: remove, path: spec.x}]", `patch[0].path: "spec.x": want a JSON pointer like /spec/replicas`},
		{"patch with a bad escape", widget, "    patch: [{op: remove, path: /spec/a~2}]", "want ~0 for ~ and ~1 for /"},
		{"a large value in many places", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x"},"l":[` + strings.Repeat("1,", 20_000) + `1]}`,
			"    set: [{path: 'l[*]', value: " + strings.Repeat("x", 1000) + "}]", "the overrides of this object look at and write more than 16 MiB"},
		{"patch that doubles", widget, doubling, "the overrides of this object look at and write more than 16 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, problems := run(t, c.override, c.object); !strings.Contains(problems, c.want) {
				t.Errorf("\n got %q\nwant %q", problems, c.want)
			}
		})
	}
}

// TestPatchStopsAtOnce: what comes after a failed operation of a patch is not
// tried, what comes after another failed operation is.
func TestPatchStopsAtOnce(t *testing.T) {
	_, _, problems := run(t, "    patch: [{op: remove, path: /spec/a}, {op: remove, path: /spec/b}]", widget)
	if n := strings.Count(problems, "\n"); n != 0 {
		t.Errorf("want one problem, got %s", problems)
	}
	_, _, problems = run(t, "    remove: [spec.a, spec.b]", widget)
	if n := strings.Count(problems, "\n"); n != 1 {
		t.Errorf("want two problems, got %s", problems)
	}
}

// TestSecret: no value of a Secret is in any message about it.
func TestSecret(t *testing.T) {
	for _, override := range []string{
		"    patch: [{op: test, path: /stringData/b, value: topsecret}]",
		"    patch: [{op: test, path: /stringData, value: {b: topsecret}}]",
		"    update: [{path: stringData.b.c, value: topsecret}]",
		"    append: [{path: stringData.b, value: topsecret}]",
		"    set: [{path: data.x.y, value: topsecret}]",
		"    remove: [\"stringData.b[?@=='topsecret']\"]",
		"    set: [{path: stringData.list, value: [{name: hunter2}]}]\n    remove: [\"stringData.list[?name=='topsecret']\"]",
		"    set: [{path: stringData.list, value: [{name: hunter2}]}]\n    remove: [\"stringData.list[?abs(name)==`1`]\"]",
		"    set: [{path: kind, value: topsecret}]",
	} {
		_, _, problems := run(t, override, secret)
		if problems == "" {
			t.Errorf("%s: no problem", override)
		}
		for _, value := range []string{"hunter2", "topsecret", "c2VjcmV0"} {
			if strings.Contains(problems, value) {
				t.Errorf("%s: %q is in %s", override, value, problems)
			}
		}
	}
}

func TestTrace(t *testing.T) {
	_, touched, problems := run(t, `    update:
    - {path: "spec.containers[?name=='side']", value: {image: t, env: [{name: X, value: "1"}]}}
    - {path: metadata, value: {labels: {b: "2", a: null}}}
    set:
    - {path: "spec.containers[1].image", value: u}
    - {path: "spec.containers[0].image", value: v}
    remove:
    - spec.containers[0]
    append:
    - {path: spec.containers, value: {name: new, image: m}}
    patch:
    - {op: add, path: /spec/containers/0, value: {name: first}}
    - {op: add, path: /spec/containers/0/image, value: f}
`, pod)
	if problems != "" {
		t.Fatal(problems)
	}
	var got []string
	for _, one := range touched {
		line := schema.PathText(one.Path) + " " + one.At.String()
		if one.Removed {
			line += " removed"
		}
		got = append(got, line)
	}
	want := []string{
		"metadata.labels.a f.yaml:7:14 removed",
		"metadata.labels.b f.yaml:7:14",
		"spec.containers[0] f.yaml:16:23",
		"spec.containers[0].image f.yaml:17:23",
		"spec.containers[1].env f.yaml:6:14",
		"spec.containers[1].image f.yaml:9:14",
		"spec.containers[2] f.yaml:14:14",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
