// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// readAlike reads an encoded value with a YAML reader of each school and with
// that of JSON, and says where they differ from the value.
func readAlike(t *testing.T, value any) {
	t.Helper()
	want := string(appendJSON(nil, value))
	if !json.Valid([]byte(want)) {
		t.Fatalf("%v: not valid JSON: %s", value, want)
	}
	text := appendYAML(nil, value)
	var old any // sigs.k8s.io/yaml, which is what kubectl reads with: YAML 1.1
	asJSON, err := yaml.YAMLToJSON(text)
	if err == nil {
		err = json.Unmarshal(asJSON, &old)
	}
	if err != nil {
		t.Errorf("YAML 1.1: %v\n%s", err, text)
		return
	}
	var modern any
	if err := kyaml.Unmarshal(text, &modern); err != nil {
		t.Errorf("YAML 1.2: %v\n%s", err, text)
		return
	}
	modernJSON, err := json.Marshal(modern)
	if err == nil {
		modern = nil
		err = json.Unmarshal(modernJSON, &modern)
	}
	var original any
	if err := json.Unmarshal([]byte(want), &original); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(original, old); diff != "" {
		t.Errorf("YAML 1.1 (-want +got):\n%s\n%s", diff, text)
	}
	if diff := cmp.Diff(original, modern); diff != "" || err != nil {
		t.Errorf("YAML 1.2: %v (-want +got):\n%s\n%s", err, diff, text)
	}
}

func TestEncode(t *testing.T) {
	for _, s := range []string{"", "y", "N", "no", "On", "off", "TRUE", "null", "~", "0o17", "017", "1_000", "1e3", "1:30", "0x1f", ".5", "-", "--- a", "? a",
		"a: b", "a #b", "#b", "*a", "&a", "!t", "%d", "@a", "`a", "[a", "{a", "'a", `"a`, "|", ">", "<<", "=", "2026-01-02", "a\n", "a\nb", "a\nb\n", "a\n\nb\n\n",
		" a\nb", "\ta\nb", "a\n b\n  c\n", "a\n\n  b\n", "a \nb ", "a\r\nb", "\n", "\na", "a\u0085b\nc", "\u2028\nx", "\ufeffa\nb", "\x00", "\x7f\na", "日本\n語\n", "-a\n- b\n", "# c\nx\n", "a\n---\nb\n", "a\n...\n", "nan", ".inf", "Infinity",
		strings.Repeat("k", maxKey), strings.Repeat("<", maxKey-1), strings.Repeat("<", 1023), strings.Repeat("k", 2000)} {
		readAlike(t, s)
		readAlike(t, map[string]any{s: s, "list": []any{s, []any{s}, map[string]any{"a": s, "b": []any{s}}}})
	}
	for _, v := range []any{nil, true, int64(1) << 62, 0.1, 1e21, 1e-7, 12345678.0, -0.5, map[string]any{}, []any{}, map[string]any{"a": map[string]any{}, "b": []any{}, "c": nil},
		[]any{[]any{[]any{}}, map[string]any{"a": map[string]any{"b": []any{map[string]any{"c": int64(1), "d": "x\ny\n"}}}}}} {
		readAlike(t, v)
	}
	got := string(appendYAML(nil, map[string]any{"a": []any{map[string]any{"b": int64(1), "c": "x\n  y\n"}, []any{"d"}, "no"}, "empty": map[string]any{}}))
	if want := "a:\n- b: 1\n  c: |\n    x\n      y\n- - d\n- \"no\"\nempty: {}\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("a", "b\nc")
	f.Add("on", " \n")
	f.Fuzz(func(t *testing.T, key, s string) {
		key, s = strings.ToValidUTF8(key, "?"), strings.ToValidUTF8(s, "?")
		readAlike(t, map[string]any{key: []any{s, map[string]any{"x": s}}, "t": s})
	})
}
