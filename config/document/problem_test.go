// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"encoding/json"
	"testing"
)

// TestProblemTargets: text names the first target, JSON all of them.
func TestProblemTargets(t *testing.T) {
	p := Problem{Position: Position{"a.yaml", 1, 2}, Code: CodeRender, Message: "no", Via: []Position{{"k.yaml", 3, 4}}}
	for _, test := range []struct {
		targets    []string
		text, json string
	}{
		{nil, "a.yaml:1:2: no (from k.yaml:3:4)", ""},
		{[]string{"c/a"}, "a.yaml:1:2: no (on target c/a) (from k.yaml:3:4)", `,"targets":["c/a"]`},
		{[]string{"c/a", "c/b", "d"}, "a.yaml:1:2: no (on target c/a and 2 more) (from k.yaml:3:4)", `,"targets":["c/a","c/b","d"]`},
	} {
		p.Targets = test.targets
		if p.String() != test.text {
			t.Errorf("%q, want %q", p, test.text)
		}
		got, err := json.Marshal(p)
		want := `{"file":"a.yaml","line":1,"column":2,"code":"SW1008","message":"no","via":[{"file":"k.yaml","line":3,"column":4}]` + test.json + `}`
		if err != nil || string(got) != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
	}
}
