// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// doubled is a kind that doubles a value in n lets, and then does something
// with the last one.
func doubled(first, double string, n int, last string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  let:\n  - {name: v0, value: \"%s\"}\n", first)
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "  - {name: v%d, value: \"%s\"}\n", i, strings.ReplaceAll(double, "V", fmt.Sprintf("v%d", i-1)))
	}
	return b.String() + oneExpression(strings.ReplaceAll(last, "V", fmt.Sprintf("v%d", n)))
}

// maxRunaway is far above what an error takes on a slow and busy machine, and
// far below what any of the cases would take if nothing stopped it.
const maxRunaway = 20 * time.Second

// TestRunaway: kinds that would take hours or gigabytes are errors instead.
func TestRunaway(t *testing.T) {
	maps := strings.Repeat(".map(x, [x, x])", 40)
	loops := "range.map(a, range.map(b, range.map(c, a + b + c)))"
	for name, c := range map[string]struct{ spec, want string }{
		"range":            {oneExpression("string(lists.range(1000000000).size())"), "exceeds maximum allowed"},
		"text lets":        {doubled("self.spec.text", "V + V", 40, "V"), "more than 8 MiB"},
		"list lets":        {doubled("[1]", "V + V", 40, "string(V.size())"), "more than 8 MiB"},
		"nested lets":      {doubled("[1]", "[V, V]", 60, "json.encode(V)"), "more than 8 MiB"},
		"nested map lets":  {doubled("{'a': 1}", "{'a': V, 'b': V}", 60, "hash(V)"), "more than 8 MiB"},
		"nested maps":      {oneExpression("string([1]" + maps + " == [1]" + maps + ")"), "more than 8 MiB"},
		"nested in":        {oneExpression("string([1]" + maps + " in [[1]" + maps + "])"), "more than 8 MiB"},
		"nested encode":    {oneExpression("yaml.encode([1]" + maps + ")"), "more than 8 MiB"},
		"nested hash":      {oneExpression("hash([1]" + maps + ")"), "more than 8 MiB"},
		"nested format":    {oneExpression("'%s'.format([[1]" + maps + "])"), "more than 8 MiB"},
		"nested flatten":   {oneExpression("string(dyn([1]" + maps + ").flatten(50).size())"), "more than 8 MiB|no such overload|steps"},
		"nested template":  {oneExpression("template('x.tmpl', [1]" + maps + ")"), "more than 8 MiB"},
		"wide and shared":  {oneExpression("json.encode(lists.range(1000).map(x, lists.range(1000).map(y, lists.range(1000))))"), "steps|more than 8 MiB"},
		"precision":        {oneExpression("'%.99999999f'.format([1.0])"), "precision"},
		"computed format":  {oneExpression("('%.9999' + '9999f').format([1.0])"), "precision"},
		"replace":          {doubled("'aaaaaaaaaaaaaaaa'", "V + V", 14, "V.replace('', V)"), "more than 8 MiB"},
		"replace each":     {doubled("'aaaaaaaaaaaaaaaa'", "V + V", 14, "V.replace('a', V)"), "more than 8 MiB"},
		"join":             {doubled("'aaaaaaaaaaaaaaaa'", "V + V", 12, "lists.range(10000).map(x, string(x)).join(V)"), "more than 8 MiB"},
		"split":            {doubled("'aaaaaaaaaaaaaaaa'", "V + V", 18, "V.split('')[0]"), "more than 8 MiB"},
		"distinct":         {oneExpression("string(lists.range(100000).map(x, x).distinct().size())"), "too long to compare|steps"},
		"search":           {doubled("'aaaaaaaaaaaaaaaa'", "V + V", 13, "string(V.indexOf(V + 'b'))"), "too long to search|steps"},
		"matches":          {doubled("'aaaaaaaaaaaaaaaa'", "V + V", 18, "string(V.matches('(a*)*b'))"), "too long for a pattern"},
		"regular":          {doubled("'('", "V + V", 2, "string('x'.matches('((((x{30}){30}){30}){30}){30}'))"), "not a regular expression: invalid repeat count"},
		"loops":            {"  let:\n  - {name: range, value: lists.range(1000)}\n" + oneExpression("string(("+loops+").size())"), "takes more than 1000000 steps"},
		"many loops":       {"  let:\n" + manyLets(400, "lists.range(30000).map(x, x).size()") + oneExpression("'x'"), "more steps than one spec may"},
		"comparing":        {doubled("lists.range(90000)", "V", 1, "string(lists.range(90000).all(i, [V] == [V]))"), "steps"},
		"hashing":          {doubled("lists.range(90000)", "V", 1, "lists.range(90000).map(i, hash(V)).join()"), "steps"},
		"interpolation":    {doubled("'aaaaaaaaaaaaaaaa'", "V + V", 18, "V}"+strings.Repeat("${V}", 2000)+"${V"), "more than 8 MiB|hold more than 32 MiB"},
		"shared text":      {doubled("'aaaaaaaaaaaaaaaa'", "V + V", 18, "V") + sharedKeys(2000, "v18"), "hold more than 32 MiB"},
		"large each":       {"  objects:\n  - id: map\n    each: {i: lists.range(9999)}\n    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: x}, data: {x: " + strings.Repeat("x", 1<<19) + "}}\n", "hold more than 32 MiB"},
		"each":             {"  objects:\n  - id: map\n    each: {i: lists.range(90000)}\n    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: x}}\n", "more than 10000 items"},
		"shared data":      {oneExpression("hash(lists.range(400).map(i, data.big))"), "more than 8 MiB"},
		"shared data text": {oneExpression("json.encode(lists.range(400).map(i, data.big.a))"), "more than 8 MiB"},
		"shared small":     {oneExpression("yaml.encode(lists.range(400).map(a, lists.range(400).map(i, data.small)))"), "more than 8 MiB|steps"},
		"shared key":       {doubled("'aaaaaaaaaaaaaaaa'", "V + V", 16, "hash(lists.range(400).map(i, {V: 1}))"), "more than 8 MiB"},
		"base64":           {doubled("'aaaaaaaaaaaaaaaa'", "V + V", 19, "base64.encode(bytes(V))+base64.encode(bytes(V))"), "more than 8 MiB"},
		"template range":   {oneExpression("template('range.tmpl', 1)"), "range.tmpl:1:.*more than 100000 steps"},
		"template nested":  {oneExpression("template('loops.tmpl', 1)"), "more than 100000 steps"},
		"template calls":   {oneExpression("template('calls.tmpl', 1)"), "calls.tmpl:1:.*more than 100 levels deep"},
		"template text":    {oneExpression("template('text.tmpl', 1)"), "text.tmpl:1:.*more than 8 MiB|steps"},
		"template width":   {oneExpression("template('width.tmpl', 1)"), "want a width below 1000"},
		"template star":    {oneExpression("template('star.tmpl', 1)"), "is not known here"},
		"template out":     {oneExpression("template('out.tmpl', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')"), "makes more than 8 MiB"},
		"template indices": {oneExpression("template('index.tmpl', 1)"), "more than 8 MiB|steps"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := newTree(c.spec, map[string]string{
				"data/big.yaml":          "a: \"" + strings.Repeat("x", 1<<19) + "\"\n",
				"data/small.yaml":        "{a: [1, 2, {b: 3}], c: [4]}\n",
				"kinds/thing/x.tmpl":     "{{.}}",
				"kinds/thing/range.tmpl": "{{range 4000000000}}{{end}}",
				"kinds/thing/loops.tmpl": "{{range 1000}}{{range 1000}}{{range 1000}}{{if true}}{{end}}{{end}}{{end}}{{end}}",
				"kinds/thing/calls.tmpl": `{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}`,
				"kinds/thing/text.tmpl":  `{{$x := "aaaaaaaaaa"}}{{range 60}}{{$x = print $x $x}}{{end}}`,
				"kinds/thing/width.tmpl": `{{printf "%9999999d" 1}}`,
				"kinds/thing/star.tmpl":  `{{printf "%*d" 9999999 1}}`,
				"kinds/thing/out.tmpl":   "{{range 99999}}{{$}}{{end}}",
				"kinds/thing/index.tmpl": `{{$x := "aaaaaaaaaa"}}{{range 60}}{{$x = printf "%[1]s%[1]s" $x}}{{end}}`,
			})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			_, problems := evaluate(t, tree, Inputs{})
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			if len(problems) == 0 || !regexp.MustCompile(c.want).MatchString(problems[0].String()) {
				t.Errorf("got %.300s, want %q", problems, c.want)
			}
			if took > maxRunaway {
				t.Errorf("took %s", took)
			}
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 1500 {
				t.Errorf("allocated %d MiB in all", used)
			}
			t.Logf("%s, %d MiB", took, (after.TotalAlloc-before.TotalAlloc)>>20)
		})
	}
}

func manyLets(n int, value string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  - {name: v%d, value: %q}\n", i, value)
	}
	return b.String()
}

// sharedKeys are more entries of the data of oneExpression.
func sharedKeys(n int, name string) string {
	var b strings.Builder
	b.WriteString("  - id: more\n    template:\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: z, namespace: x}\n      data:\n")
	for i := range n {
		fmt.Fprintf(&b, "        k%d: ${%s}\n", i, name)
	}
	return b.String()
}
