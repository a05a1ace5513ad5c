// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
)

// TestNamesAreCommonWords: a secret that is the name of a field or of a kind hides
// it nowhere. A new version of Kubernetes may bring words that go into
// config/commonwords.txt.
func TestNamesAreCommonWords(t *testing.T) {
	document, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, below := range v {
				walk(below)
			}
		case map[string]any:
			properties, _ := v["properties"].(map[string]any)
			for name := range properties {
				if len(name) > 2 && !strings.HasPrefix(name, "x-") && name[0] != '$' && !config.CommonWords(name) {
					missing[name] = true
				}
			}
			for _, below := range v {
				walk(below)
			}
		}
	}
	walk(document)
	if len(missing) > 0 {
		t.Errorf("words are missing of %q", slices.Sorted(maps.Keys(missing)))
	}
}
