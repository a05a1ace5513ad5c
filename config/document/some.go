// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"strings"
)

// Some names the first of many: "a, b and 3 more".
func Some(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// SomeTexts is [Some] of texts that may hold commas: "a; b (and 3 more)".
func SomeTexts(texts []string, most int) string {
	if more := len(texts) - most; more > 0 {
		return fmt.Sprintf("%s (and %d more)", strings.Join(texts[:most], "; "), more)
	}
	return strings.Join(texts, "; ")
}

// Count is a number with its noun: "1 unit", "2 units".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
