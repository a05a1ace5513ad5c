// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"fmt"
	"strings"
	"testing"
)

// TestSchema: what no schema can judge is refused, with the reason; each document of a text is
// judged. A message is one line, and names nothing that the author did not write.
func TestSchema(t *testing.T) {
	const numbers = `{"additionalProperties": {"type": "integer"}}`
	for name, c := range map[string]struct{ schema, text, want string }{
		"good":        {`{"type": "integer"}`, "1", ""},
		"wrong":       {"type: integer", `"one"`, "1: got string, want integer"},
		"no JSON":     {`{}`, "{", "1: did not find expected node content"},
		"a key twice": {`{}`, "a: 1\nb: 1\na: 2\n", `3: key "a" already set in map`},
		"no schema":   {"{", "", "schema 1: did not find expected node content"},
		"another's": {`{"$ref": "https://example.com/x.json"}`, "",
			`schema 0: failing loading "https://example.com/x.json": https://example.com/x.json: a schema may refer to itself only`},
		"a file's": {`{"$ref": "file:///etc/passwd"}`, "",
			`schema 0: failing loading "file:///etc/passwd": file:///etc/passwd: a schema may refer to itself only`},
		"nowhere":     {`{"$ref": "#/definitions/no"}`, "", `schema 0: json-pointer in "#/definitions/no" not found`},
		"in a circle": {`{"$ref": "#"}`, "1", `1: both /$ref and  resolve to "#" causing reference cycle`},
		"a bad pattern": {"type: string\npattern: (\n", "",
			"schema 2: pattern: '(' is not valid regex: error parsing regexp: missing closing ): `(`"},
		"an odd keyword":  {`{"multipleOf": 0}`, "", "schema 1: multipleOf: exclusiveMinimum: got 0, want 0"},
		"a line of a map": {`{"properties": {"b": {"type": "integer"}}}`, "a: 1\nb: two\n", "2: b: got string, want integer"},
		"second document": {numbers, "a: 1\n---\nb: two\n", "3: b: got string, want integer"},
		"each document": {numbers, "# first\n---\na: one\n--- # second\nb: two\n---\n---\r\n{c: three}\n",
			"3: a: got string, want integer; 5: b: got string, want integer; 8: c: got string, want integer"},
		"on the marker": {numbers, "--- {a: 1}\n--- {a: one}\n", "2: a: got string, want integer"},
		"a broken one":  {numbers, "a: 1\n---\n{\n", "3: did not find expected node content"},
		"in a text":     {`{"additionalProperties": {"type": "string"}}`, "a: |\n  ---\n  b\nc: d\n", ""},
		"nothing":       {`{"type": "object"}`, "# nothing\n", "0: got null, want object"},
	} {
		t.Run(name, func(t *testing.T) {
			schema, broken := NewSchema(c.schema)
			var texts []string
			if broken != nil {
				texts = append(texts, fmt.Sprintf("schema %d: %s", broken.Line, broken.Text))
			} else {
				for _, f := range schema.Judge(c.text).Findings {
					texts = append(texts, fmt.Sprintf("%d: %s", f.Line, f.Text))
				}
			}
			if text := strings.Join(texts, "; "); text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}
