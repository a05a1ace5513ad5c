// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// sameToReaders writes a value and reads it with a YAML reader of each school.
func sameToReaders(t *testing.T, value any) {
	t.Helper()
	text, err := marshalYAML(value)
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(string(text), func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%q is in the YAML as it is", text[i:min(len(text), i+4)])
	}
	var old, modern any
	if err := yaml.Unmarshal(text, &old); err != nil {
		t.Errorf("YAML 1.1: %v", err)
	} else if diff := cmp.Diff(value, old); diff != "" {
		t.Errorf("YAML 1.1 (-want +got):\n%s", diff)
	}
	if err := kyaml.Unmarshal(text, &modern); err != nil {
		t.Errorf("YAML 1.2: %v", err)
	} else if diff := cmp.Diff(value, modern); diff != "" {
		t.Errorf("YAML 1.2 (-want +got):\n%s", diff)
	}
}

// TestYAMLOfAllCharacters: whatever a text holds, readers get it back, alone,
// inside, at the ends, in keys and in texts of several lines.
func TestYAMLOfAllCharacters(t *testing.T) {
	const step = 512 // code points in one value
	for from := rune(0); from <= unicode.MaxRune; from += step {
		if from >= 0xd800 && from < 0xe000 { // halves of pairs, which no text has
			continue
		}
		value := map[string]any{}
		var all strings.Builder
		for r := from; r < from+step; r++ {
			c := string(r)
			all.WriteString(c)
			// In planes without characters one in 64 is enough.
			if r < 0x3000 || r > 0xd7ff && r < 0x11000 || r%64 == 0 || r&0xfffe == 0xfffe || r >= 0xe0000 && r < 0xe0200 {
				value["k"+c] = []any{c, "a" + c + "b", c + "\nx\n", "x\n" + c + "y"}
			}
		}
		value["all"] = all.String()
		sameToReaders(t, value)
	}
}

func FuzzYAML(f *testing.F) {
	f.Add(`{"a":"\u0080\n"}`)
	f.Add(`{"\ud83d\ude00":["\u2028","no"," \ufeff"]}`)
	f.Add("no JSON: \u0085 \ufffe")
	f.Fuzz(func(t *testing.T, text string) {
		var value map[string]any
		if json.Unmarshal([]byte(text), &value) != nil || value == nil {
			text = strings.ToValidUTF8(text, "?")
			value = map[string]any{"a": text, text: "a"}
		}
		sameToReaders(t, withoutNumbers(value))
	})
}

// withoutNumbers has texts in place of numbers, of which readers make different
// types.
func withoutNumbers(value any) any {
	switch v := value.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		for i, item := range v {
			v[i] = withoutNumbers(item)
		}
	case map[string]any:
		for key, item := range v {
			v[key] = withoutNumbers(item)
		}
	}
	return value
}
