// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
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

// hideInDocument hides the Secrets in the lines of one document.
func hideInDocument(lines []string) {
	text := strings.Join(lines, "\n")
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		if soundsSecret(text) || strings.Contains(text, "stringData") {
			for i := range lines {
				lines[i] = notShown
			}
		}
		return
	}
	h := hider{lines: lines, hidden: make([]bool, len(lines)), keys: map[int]string{}}
	h.walk(&root, len(lines)+1, false)
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

func soundsSecret(s string) bool { return strings.Contains(strings.ToLower(s), "secret") }

type hider struct {
	lines   []string
	hidden  []bool
	keys    map[int]string // by line from 1: the line up to the end of its first key
	found   bool           // a Secret
	aliases bool
}

// walk hides the Secrets at and below a node. next is the line of what comes
// after it.
func (h *hider) walk(n *yaml.Node, next int, inside bool) {
	if n.Kind == yaml.AliasNode {
		h.aliases = true
		return
	}
	if n.Kind == yaml.MappingNode && !inside && isSecret(n) {
		inside, h.found = true, true
		// A value that is left out may stand behind the last line.
		for line := max(1, n.Line); line <= min(len(h.lines), max(next-1, lastLine(n))); line++ {
			h.hidden[line-1] = true
		}
	}
	for i, child := range n.Content {
		after := next
		if i+1 < len(n.Content) {
			after = n.Content[i+1].Line
		}
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			h.key(child)
		}
		h.walk(child, after, inside)
	}
}

// isSecret says whether a mapping is a Secret, or was meant to be one.
func isSecret(n *yaml.Node) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if key.Value == "stringData" || key.Value == "kind" && soundsSecret(value.Value) {
			return true
		}
	}
	return false
}

func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, child := range n.Content {
		last = max(last, lastLine(child))
	}
	return last
}

// key notes the first key of a line, when nothing but structure is before it.
func (h *hider) key(n *yaml.Node) {
	if h.keys[n.Line] != "" || n.Line < 1 || n.Line > len(h.lines) {
		return
	}
	runes := []rune(h.lines[n.Line-1])
	if n.Column < 1 || n.Column > len(runes) {
		return
	}
	before, rest := string(runes[:n.Column-1]), string(runes[n.Column-1:])
	if strings.Trim(before, " -{[") != "" {
		return
	}
	for _, written := range []string{n.Value, `"` + n.Value + `"`, "'" + n.Value + "'"} {
		if written != "" && strings.HasPrefix(rest, written) {
			h.keys[n.Line] = before + written
			return
		}
	}
}
