// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitExpressions(t *testing.T) {
	for _, c := range []struct {
		in           string
		texts, codes []string
		err          string
	}{
		{in: "plain", texts: []string{"plain"}},
		{in: "${a}", texts: []string{"", ""}, codes: []string{"a"}},
		{in: "x-${a}-${ b }-y", texts: []string{"x-", "-", "-y"}, codes: []string{"a", "b"}},
		{in: "$${a} $ {a}", texts: []string{"${a} $ {a}"}},
		{in: "${{'a': {'b': 1}}}", texts: []string{"", ""}, codes: []string{"{'a': {'b': 1}}"}},
		{in: `${'}' + "\"}"}`, texts: []string{"", ""}, codes: []string{`'}' + "\"}"`}},
		{in: "${a", err: "not closed"},
		{in: "${ }", err: "an empty expression"},
	} {
		texts, codes, err := splitExpressions(c.in)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.in, err, c.err)
			}
			continue
		}
		if diff := cmp.Diff([][]string{c.texts, c.codes}, [][]string{texts, codes}); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.in, err, diff)
		}
	}
}

func FuzzSplitExpressions(f *testing.F) {
	for _, seed := range []string{"", "${", "${a}", "$${a}", "${'}'}", "a${b}c${d}e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		texts, codes, err := splitExpressions(s)
		if err == nil && len(texts) != len(codes)+1 {
			t.Errorf("%q: %d texts and %d expressions", s, len(texts), len(codes))
		}
	})
}
