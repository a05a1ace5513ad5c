// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func TestOwners(t *testing.T) {
	const gitlab = `# of GitLab
*  @all
[Shop][2] @example/shop
/services/shop/
/services/shop/cart/ @example/cart ops@example.com
^[Pay] @example/pay
/services/pay/
/services/shop/pay.yaml
[SHOP] @example/legacy
/services/shop/legacy/
`
	sections, problems := readOwners("CODEOWNERS", gitlab)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	owners := Owners{sections: sections}
	for file, want := range map[string]string{
		"README.md":                    "@all",
		"services/shop/a/x.yaml":       "@all @example/shop",
		"services/shop/legacy/x.yaml":  "@all @example/legacy",
		"services/shop/cart/x.yaml":    "@all @example/cart ops@example.com",
		"services/shop/pay.yaml":       "@all @example/pay @example/shop",
		"other/services/shop/pay.yaml": "@all",
	} {
		if got := strings.Join(owners.Of(file), " "); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}

// TestOwnersLine: a mistake is at its line, and says nothing of another one.
func TestOwnersLine(t *testing.T) {
	_, problems := readOwners("CODEOWNERS", "* @a\n!/services/ @b\n")
	const want = `CODEOWNERS:2: "!/services/ @b": unexpected character '!' at position 1`
	if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), want) {
		t.Errorf("got %s, want %s", problems, want)
	}
}

// FuzzOwners: whatever stands in CODEOWNERS, it is read or refused.
func FuzzOwners(f *testing.F) {
	f.Add("* @a\n/b c@d\n[e] @f\n", "b/c")
	f.Add("/a/***/b @c\n\\ @d\n\x00 @e", "/")
	f.Fuzz(func(t *testing.T, content, file string) {
		sections, _ := readOwners("CODEOWNERS", content)
		owners := Owners{sections: sections}
		owners.Of(file)
	})
}
