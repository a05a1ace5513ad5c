// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/blame"
	"github.com/swell-sh/swell/render/object"
)

// explained writes bundles with comments. It is an error when that is more
// than anyone reads.
func (w *blameWriter) explained(s *render.Snapshot, units []*render.Unit, unit string) (func(io.Writer, *object.Bundle) error, error) {
	if len(units) > 1 && unit == "" {
		return nil, fmt.Errorf("--explain: there are %d units; name one, or a folder of them, with --unit", len(units))
	}
	return func(out io.Writer, b *object.Bundle) error {
		blamed, err := s.Blame(b.Unit, b.Target)
		if err != nil {
			return err
		}
		for i := range blamed {
			text, err := w.explain(&blamed[i])
			if err != nil {
				return err
			}
			text = blamed[i].Object.Redactor().Redact(text) // keys and comments too
			if _, err := fmt.Fprintf(out, "---\n# %s on %s\n", b.Unit, b.Target); err != nil {
				return err
			}
			if masked(&blamed[i]) {
				if _, err := fmt.Fprintln(out, "# Its values are left out, so this is for reading and not for applying."); err != nil {
					return err
				}
			}
			for _, o := range blamed[i].Origins {
				comment, err := w.comment(o)
				if err != nil {
					return err
				}
				if o.Role == blame.RoleCondition {
					comment = "asked: " + comment
				}
				if _, err := fmt.Fprintf(out, "# %s\n", comment); err != nil {
					return err
				}
			}
			if _, err := io.WriteString(out, text); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func masked(b *render.Blamed) bool {
	return slices.ContainsFunc(b.Fields, func(f blame.Field) bool { return f.Hidden })
}

// explain is an object as YAML with a comment for each value: at the end of its
// line, or above it where the value goes over several lines in a way that no
// comment may stand in.
func (w *blameWriter) explain(b *render.Blamed) (string, error) {
	value := decodeObject(b.Object)
	for _, f := range b.Fields {
		if f.Hidden {
			value = replaced(value, f.Path, f.Value)
		}
	}
	plain, err := marshalYAML(value)
	if err != nil {
		return "", err
	}
	root, err := kyaml.Parse(string(plain))
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSuffix(string(plain), "\n"), "\n")
	behind, above := map[int]string{}, map[int]string{}
	for _, f := range b.Fields {
		comment, err := w.comment(f.Origins[0])
		if err != nil {
			return "", err
		}
		n := nodeOf(root.YNode(), f.Path)
		if ends(lines, n) {
			behind[n.Line-1] = comment
		} else {
			above[n.Line-1] = comment
		}
	}
	return withComments(lines, behind, above), nil
}

// replaced is the value with another one at a path.
func replaced(value any, path []any, by any) any {
	if len(path) == 0 {
		return by
	}
	switch v := value.(type) {
	case map[string]any:
		key := path[0].(string)
		v[key] = replaced(v[key], path[1:], by)
	case []any:
		i := path[0].(int)
		v[i] = replaced(v[i], path[1:], by)
	}
	return value
}

// nodeOf is the node at a path that is there.
func nodeOf(n *kyaml.Node, path []any) *kyaml.Node {
	for _, s := range path {
		if i, ok := s.(int); ok {
			n = n.Content[i]
		} else {
			n = document.Lookup(n, s.(string))
		}
	}
	return n
}

// ends says whether a comment may stand at the end of the line where the node
// begins: it is all in that line, or its text begins in the next one.
func ends(lines []string, n *kyaml.Node) bool {
	if n.Style&(kyaml.LiteralStyle|kyaml.FoldedStyle) != 0 {
		return true
	}
	// A value in one line is the end of it: what is more is on the lines below.
	one, err := kyaml.Parse("x: " + lines[n.Line-1][min(n.Column-1, len(lines[n.Line-1])):])
	if err != nil || n.Kind != kyaml.ScalarNode {
		return err == nil
	}
	value := document.Lookup(one.YNode(), "x")
	return value != nil && value.Value == n.Value && value.Kind == n.Kind
}

const commentColumn = 80 // where comments begin at most

// withComments puts comments behind and above lines, aligned.
func withComments(lines []string, behind, above map[int]string) string {
	column := 0
	for i, line := range lines {
		if width := utf8.RuneCountInString(line); behind[i] != "" && width <= commentColumn {
			column = max(column, width)
		}
	}
	var b strings.Builder
	for i, line := range lines {
		if above[i] != "" {
			indent := len(line) - len(strings.TrimLeft(line, " "))
			fmt.Fprintf(&b, "%s# %s\n", line[:indent], above[i])
		}
		b.WriteString(line)
		if behind[i] != "" {
			fmt.Fprintf(&b, "%s  # %s", strings.Repeat(" ", max(0, column-utf8.RuneCountInString(line))), behind[i])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// comment is an origin in a few words.
func (w *blameWriter) comment(o blame.Origin) (string, error) {
	text := placeText(o)
	switch o.Kind {
	case blame.FromSwell:
		return string(o.Kind), nil
	case blame.FromSpec, blame.FromFile, blame.FromTemplate, blame.FromDocument, blame.FromFleet:
	default:
		text += " " + string(o.Kind)
	}
	if o.Kind != blame.FromTemplate && o.Kind != blame.FromFile && o.Kind != blame.FromDefault && o.Text != "" {
		text += " " + oneLine(o.Text)
	}
	if w.history == nil {
		return text, nil
	}
	by, err := w.history.writer(w.ctx, o)
	if short := by.short(); short != "" {
		text += ", " + short
	}
	return text, err
}
