// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const notShown = "(a line of a Secret is not shown)"

// hideSecrets cuts the lines of Secrets in a YAML file behind their first key.
// Where it cannot be told what belongs to a Secret, all that may is hidden.
func hideSecrets(lines []string) {
	start := 0
	for i := 1; i <= len(lines); i++ {
		if i < len(lines) && !startsDocument(lines[i]) {
			continue
		}
		hideInDocument(lines[start:i])
		start = i
	}
}

func startsDocument(line string) bool {
	rest, ok := strings.CutPrefix(line, "---")
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// hideInDocument hides the Secrets in the lines between two `---`. Behind a
// `...` in them there is another document, which our YAML reader refuses.
func hideInDocument(lines []string) {
	text := strings.Join(lines, "\n")
	roots, err := decodeAll(text)
	if err != nil {
		if maySecret(text) {
			for i := range lines {
				lines[i] = notShown
			}
		}
		return
	}
	h := hider{lines: lines, hidden: make([]bool, len(lines)), keys: map[int]string{}}
	for _, root := range roots {
		h.walk(root, textPlace{line: len(lines) + 1}, false)
	}
	if h.found && h.aliases { // what an alias stands for may be anywhere
		for i := range h.hidden {
			h.hidden[i] = true
		}
	}
	for i := range lines {
		switch key := h.keys[i+1]; {
		case !h.hidden[i] || strings.TrimSpace(lines[i]) == "":
		case key != "":
			lines[i] = key + ": ..."
		default:
			lines[i] = notShown
		}
	}
}

// decodeAll gives what the documents of a text hold.
func decodeAll(text string) ([]*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var roots []*yaml.Node
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return nil, err
		}
		roots = append(roots, root.Content...)
	}
}

// maySecret says whether a text that is no YAML may have been meant to be, to
// hold or to change a Secret. Names may be written with escapes.
func maySecret(text string) bool {
	return soundsSecret(text) || strings.Contains(text, "stringData") || strings.Contains(text, "override") ||
		strings.Contains(text, "op") && strings.Contains(text, "path") || strings.Contains(text, `\`)
}

func soundsSecret(s string) bool { return strings.Contains(strings.ToLower(s), "secret") }

// textPlace is a line and a column in it, from 1.
type textPlace struct{ line, column int }

type hider struct {
	lines   []string
	hidden  []bool
	keys    map[int]string // by line from 1: the line up to the end of its first key
	found   bool           // a Secret
	aliases bool
}

// walk hides the Secrets at and below a node. next is where what comes after
// it begins.
func (h *hider) walk(n *yaml.Node, next textPlace, inside bool) {
	if n.Kind == yaml.AliasNode {
		h.aliases = true
		return
	}
	if !inside && (n.Kind == yaml.MappingNode && isSecret(n) || n.Kind == yaml.ScalarNode && holdsSecret(n.Value, 0)) {
		inside = true
		h.hide(n.Line, n, next)
	}
	for i, child := range n.Content {
		after := next
		if i+1 < len(n.Content) {
			after = textPlace{n.Content[i+1].Line, n.Content[i+1].Column}
		}
		inside := inside
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			h.key(child)
		} else if n.Kind == yaml.MappingNode && !inside && mayChangeSecret[n.Content[i-1].Value] {
			inside = true
			h.hide(n.Content[i-1].Line, child, after)
		}
		h.walk(child, after, inside)
	}
}

// hide hides the lines from one on to the end of a node, which is somewhere
// before next.
func (h *hider) hide(from int, n *yaml.Node, next textPlace) {
	h.found = true
	// A value that is left out may stand behind the last line.
	to := max(next.line-1, lastLine(n))
	if next.line <= len(h.lines) && !onlyStructure(h.before(next)) {
		to = max(to, next.line) // a text of several lines may end there
	}
	for line := max(1, from); line <= min(len(h.lines), to); line++ {
		h.hidden[line-1] = true
	}
}

// mayChangeSecret are the fields below which values of Secrets may stand
// without saying so: of kustomizations, of specs and of Defaults.
var mayChangeSecret = map[string]bool{"secretGenerator": true, "override": true, "overrides": true}

// isSecret says whether a mapping is a Secret, was meant to be one, or is an
// operation of a JSON patch, whose object is named elsewhere.
func isSecret(n *yaml.Node) bool {
	op, path := false, false
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if key.Value == "stringData" || key.Value == "kind" && soundsSecret(value.Value) {
			return true
		}
		op, path = op || key.Value == "op", path || key.Value == "path"
	}
	return op && path
}

// holdsSecret says whether a text is YAML with a Secret, such as a patch in a
// kustomization. depth is how many texts it is inside of.
func holdsSecret(text string, depth int) bool {
	if !strings.Contains(text, ":") {
		return false
	}
	const deepest = 5
	roots, err := decodeAll(text)
	if err != nil || depth == deepest {
		return maySecret(text)
	}
	var holds func(n *yaml.Node) bool
	holds = func(n *yaml.Node) bool {
		if n.Kind == yaml.MappingNode && isSecret(n) || n.Kind == yaml.ScalarNode && n.Value != text && holdsSecret(n.Value, depth+1) {
			return true
		}
		for i, child := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 && mayChangeSecret[child.Value] || holds(child) {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(roots, holds)
}

func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, child := range n.Content {
		last = max(last, lastLine(child))
	}
	return last
}

// before is what stands in a line before a column.
func (h *hider) before(at textPlace) string {
	runes := []rune(h.lines[at.line-1])
	return string(runes[:max(0, min(at.column-1, len(runes)))])
}

func onlyStructure(text string) bool { return strings.Trim(text, " -{[") == "" }

// key notes the first key of a line, when nothing but structure is before it.
func (h *hider) key(n *yaml.Node) {
	if h.keys[n.Line] != "" || n.Line < 1 || n.Line > len(h.lines) {
		return
	}
	before := h.before(textPlace{n.Line, n.Column})
	if !onlyStructure(before) {
		return
	}
	rest := strings.TrimPrefix(h.lines[n.Line-1], before)
	for _, written := range []string{n.Value, `"` + n.Value + `"`, "'" + n.Value + "'"} {
		if written != "" && strings.HasPrefix(rest, written) {
			h.keys[n.Line] = before + written
			return
		}
	}
}
