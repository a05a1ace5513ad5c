// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestTextsGrow: each variable makes a text many times as long as that of the one before,
// for which an API server counts next to nothing.
func TestTextsGrow(t *testing.T) {
	for name, step := range map[string]string{
		"+":       "variables.%[1]s + variables.%[1]s",
		"join":    "[variables.%[1]s, variables.%[1]s].join('-')",
		"format":  "'%%s%%s'.format([variables.%[1]s, variables.%[1]s])",
		"replace": "variables.%[1]s.replace('a', 'aa')",
		"quote":   "strings.quote(variables.%[1]s + variables.%[1]s)",
	} {
		t.Run(name, func(t *testing.T) {
			variables := []any{map[string]any{"name": "v0", "expression": "object.metadata.name"}}
			last := "v0"
			for i := range 24 { // 2 to the 24th is four times maxText
				variables = append(variables, map[string]any{"name": fmt.Sprintf("v%d", i+1), "expression": fmt.Sprintf(step, last)})
				last = fmt.Sprintf("v%d", i+1)
			}
			found := judgeBy(t, variables, fmt.Sprintf("variables.%s.size() < 100", last))
			if len(found) != 1 || !strings.Contains(found[0].Message, "a text of more than 4 MiB") && !strings.Contains(found[0].Message, "cost limit exceeded") {
				t.Errorf("got %v, want a refusal for the length of the text", found)
			}
		})
	}
}

// TestManyTexts: a policy makes many texts that are each short enough.
func TestManyTexts(t *testing.T) {
	variables := []any{map[string]any{"name": "v0", "expression": "'" + strings.Repeat("a", 1<<16) + "' + object.metadata.name"},
		map[string]any{"name": "v1", "expression": "[variables.v0, variables.v0, variables.v0, variables.v0, variables.v0, variables.v0, variables.v0, variables.v0].join()"}}
	var all []string
	for i := range 1000 {
		variables = append(variables, map[string]any{"name": fmt.Sprintf("w%d", i), "expression": "variables.v1 + variables.v1"})
		all = append(all, fmt.Sprintf("variables.w%d.size() > 0", i))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found := judgeBy(t, variables, "["+strings.Join(all, ", ")+"].all(x, x)")
	runtime.ReadMemStats(&after)
	if len(found) != 1 || !strings.Contains(found[0].Message, "budget") {
		t.Errorf("got %v, want a refusal for the budget", found)
	}
	if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 500 {
		t.Errorf("it took %d MiB", made)
	}
}

// TestTextsOfUse: what is measured is computed as before.
func TestTextsOfUse(t *testing.T) {
	for _, expression := range []string{
		"object.metadata.name + '-' + object.kind == 'a-Deployment'",
		"[1, 2] + [3] == [1, 2, 3] && 1 + 2 == 3 && 1.5 + 1.5 == 3.0 && b'a' + b'b' == b'ab'",
		"object.spec.replicas + 1 == 4",
		"duration('1h') + duration('1m') == duration('61m')",
		"['a', 'b'].join('-') == 'a-b' && ['a', 'b'].join() == 'ab'",
		"'aaa'.replace('a', 'b') == 'bbb' && 'aaa'.replace('a', 'b', 1) == 'baa'",
		`'%s is %d'.format([object.metadata.name, object.spec.replicas]) == 'a is 3'`,
		`strings.quote('a') == '"a"'`,
		"'a b'.split(' ') == ['a', 'b']",
	} {
		if found := judgeBy(t, nil, expression); len(found) > 0 {
			t.Errorf("%s: %s", expression, found[0].Message)
		}
	}
	if found := judgeBy(t, nil, "object.spec + 1 == 2"); len(found) != 1 || !strings.Contains(found[0].Message, "no such overload") {
		t.Errorf("a map and a number: got %v", found)
	}
}

// judgeBy has a policy with one validation judge a Deployment.
func judgeBy(t *testing.T, variables []any, expression string) []Finding {
	t.Helper()
	docs := some(t, 1, "apps", "deployments")
	spec := docs[0].Object["spec"].(map[string]any)
	spec["variables"], spec["validations"] = variables, []any{map[string]any{"expression": expression}}
	policies, flaws := Compile(docs)
	if len(flaws) > 0 {
		t.Fatal(flaws[0].Text())
	}
	object := newDeployment(t)
	return policies.Judge(object, object.in(nil))
}
