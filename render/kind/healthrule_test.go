// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
)

func healthRule(t *testing.T, healthy, failed, reason string) *HealthRule {
	t.Helper()
	rule, problems := CompileHealthRule(&config.HealthRule{Name: "x",
		Healthy: config.Expression{Text: healthy}, Failed: config.Expression{Text: failed}, Reason: config.Expression{Text: reason}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return rule
}

func live(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestHealthRuleJudges(t *testing.T) {
	const (
		conditions = "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"
		bad        = "object.status.phase == 'Bad'"
		notYet     = `not healthy by HealthRule "x"`
	)
	for _, test := range []struct {
		name, healthy, failed, reason, object string
		want                                  Verdict
	}{
		{name: "healthy", healthy: conditions, object: "{status: {conditions: [{type: Ready, status: 'True'}]}}", want: Verdict{Healthy: true}},
		{name: "not healthy", healthy: conditions, object: "{status: {conditions: [{type: Ready, status: 'False'}]}}", want: Verdict{Otherwise: notYet}},
		{name: "missing field", healthy: conditions, object: "{status: {}}", want: Verdict{Otherwise: `HealthRule "x": healthy: no such key: conditions`}},
		{name: "missing field with a reason", healthy: conditions, reason: "'phase ' + object.status.phase", object: "{status: {phase: New}}",
			want: Verdict{Reason: "phase New", Otherwise: `HealthRule "x": healthy: no such key: conditions`}},
		{name: "optional", healthy: "object.?status.ready.orValue(false)", object: "{}", want: Verdict{Otherwise: notYet}},
		{name: "failed", healthy: "true", failed: bad, reason: "object.status.message", object: "{status: {phase: Bad, message: gone}}",
			want: Verdict{Failed: true, Reason: "gone", Otherwise: `failed by HealthRule "x"`}},
		{name: "failed, missing reason", healthy: "true", failed: bad, reason: "object.status.message", object: "{status: {phase: Bad}}",
			want: Verdict{Failed: true, Otherwise: `failed by HealthRule "x"`}},
		{name: "nothing to fail by", healthy: "object.metadata.name == 'a'", failed: bad, object: "{metadata: {name: a}}", want: Verdict{Healthy: true}},
		{name: "failed cannot be told", healthy: "true", failed: "object.status.phase > 1", object: "{status: {phase: Bad}}",
			want: Verdict{Reason: `HealthRule "x": failed: no such overload`, Otherwise: `HealthRule "x": failed: no such overload`}},
		{name: "not a bool", healthy: "object.status.ready", object: "{status: {ready: 'True'}}",
			want: Verdict{Reason: `HealthRule "x": healthy: want a bool, got string`, Otherwise: `HealthRule "x": healthy: want a bool, got string`}},
		{name: "null", healthy: "object.status.ready", object: "{status: {ready: null}}",
			want: Verdict{Reason: `HealthRule "x": healthy: want a bool, got null_type`, Otherwise: `HealthRule "x": healthy: want a bool, got null_type`}},
		{name: "reason is no text", healthy: "false", reason: "object.status.code", object: "{status: {code: 7}}",
			want: Verdict{Reason: `HealthRule "x": reason: want a string, got double`, Otherwise: notYet}},
		{name: "numbers", healthy: "object.status.ready == object.spec.replicas && object.status.ready >= 2", object: "{spec: {replicas: 2}, status: {ready: 2}}", want: Verdict{Healthy: true}},
		{name: "functions", healthy: "object.spec.names.sort().join('+').matches('^a[+]b$') && ' X'.trim().lowerAscii() == 'x'", object: "{spec: {names: [b, a]}}", want: Verdict{Healthy: true}},
		{name: "maps are visited in order", healthy: "false", reason: "object.status.zones.map(z, z).join(',')",
			object: "{status: {zones: {d: 1, b: 1, a: 1, e: 1, c: 1, f: 1, g: 1}}}", want: Verdict{Reason: "a,b,c,d,e,f,g", Otherwise: notYet}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := healthRule(t, test.healthy, test.failed, test.reason).Judge(live(t, test.object)); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestHealthRuleThatTakesTooMuch: what an object holds is up to whoever may
// write it, so a rule that goes over it must end, and never says healthy then.
func TestHealthRuleThatTakesTooMuch(t *testing.T) {
	items := make([]any, 3000)
	for i := range items {
		items[i] = fmt.Sprint("item ", i)
	}
	object := map[string]any{"items": items, "text": strings.Repeat("x", 1<<20)}
	for expression, want := range map[string]string{
		"object.items.all(a, object.items.all(b, size(a) + size(b) > 0))": "takes more than 1000000 steps",
		"object.items.distinct().size() > 0":                              "takes more than",
		"object.text.replace('', object.text) != ''":                      "a value of more than",
		"object.text.matches('(x+x+)+y|(a|b|c|d|e|f|g|h)*')":              "too long for a pattern",
	} {
		for _, rule := range []*HealthRule{healthRule(t, expression, "", ""), healthRule(t, "true", expression, "")} {
			got := rule.Judge(object)
			if got.Healthy || got.Failed || !strings.HasPrefix(got.Reason, `HealthRule "x": `) || !strings.Contains(got.Reason, want) {
				t.Errorf("%s: %+v", expression, got)
			}
		}
	}
}

func TestHealthRuleBesideItself(t *testing.T) {
	rule := healthRule(t, "object.items.all(i, i > 0 && string(i).matches(object.pattern))", "object.items.exists(i, i > 100)", "object.items.map(i, string(i)).join(',')")
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			object := map[string]any{"items": []any{int64(n), int64(n + 1)}, "pattern": "^[0-9]+$"}
			for range 200 {
				want := Verdict{Healthy: true}
				if n == 0 {
					want = Verdict{Reason: "0,1", Otherwise: `not healthy by HealthRule "x"`}
				}
				if got := rule.Judge(object); got != want {
					t.Errorf("%d: %+v", n, got)
					return
				}
			}
		})
	}
	all.Wait()
}
