// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"strings"
	"testing"
)

// TestBySchema: what no schema can judge is refused, with the reason.
func TestBySchema(t *testing.T) {
	for name, c := range map[string]struct{ schema, text, want string }{
		"good":            {`{"type": "integer"}`, "1", ""},
		"wrong":           {"type: integer", `"one"`, "got string, want integer"},
		"no JSON":         {`{}`, "{", "1:"},
		"no schema":       {"{", "1", "the schema does not compile: "},
		"another's":       {`{"$ref": "https://example.com/x.json"}`, "1", "a schema may refer to itself only"},
		"a file's":        {`{"$ref": "file:///etc/passwd"}`, "1", "a schema may refer to itself only"},
		"in a circle":     {`{"$ref": "#"}`, "1", "cycle"},
		"a bad pattern":   {`{"pattern": "("}`, `"x"`, "the schema does not compile: "},
		"an odd keyword":  {`{"multipleOf": 0}`, "1", "the schema does not compile: "},
		"a line of a map": {`{"properties": {"b": {"type": "integer"}}}`, "a: 1\nb: two\n", "b: got string"},
	} {
		t.Run(name, func(t *testing.T) {
			got := BySchema(c.schema)(c.text)
			var texts []string
			for _, f := range got.Findings {
				texts = append(texts, f.Text)
			}
			if text := strings.Join(texts, "; "); (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}
