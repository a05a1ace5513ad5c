// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

const notShown = "(a line of a Secret is not shown)"

// hideSecrets cuts the lines of a YAML file that may hold a secret, see
// [config.SecretPlaces], behind their first key. Where it cannot be told what
// belongs to one, all that may is hidden.
func hideSecrets(lines []string, kinds config.KindMessage) {
	inKey := config.InPrivateKey(lines)
	defer func() { // however wrong the YAML around them is
		for i := range lines {
			if inKey[i] && strings.TrimSpace(lines[i]) != "" && !strings.HasSuffix(lines[i], ": ...") {
				lines[i] = notShown
			}
		}
	}()
	start := 0
	for i := 1; i <= len(lines); i++ {
		if i < len(lines) && !startsDocument(lines[i]) {
			continue
		}
		hideInDocument(lines[start:i], kinds)
		start = i
	}
}

func startsDocument(line string) bool {
	rest, ok := strings.CutPrefix(line, "---")
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// hideInDocument hides the Secrets in the lines between two `---`. Behind a
// `...` in them there is another document, which our YAML reader refuses.
func hideInDocument(lines []string, kinds config.KindMessage) {
	text := strings.Join(lines, "\n")
	roots, err := config.DecodeAll([]byte(text))
	if err != nil {
		if config.TextMaySecret(text) || kinds != nil && !shownKind(text, kinds) {
			for i := range lines {
				lines[i] = notShown
			}
		}
		return
	}
	h := hider{lines: lines, hidden: make([]bool, len(lines)), keys: map[int]string{}, secrets: map[*yaml.Node]bool{},
		ownKeys: map[*yaml.Node]bool{}}
	for _, root := range roots {
		for _, place := range config.SecretPlaces(root, kinds) {
			for _, key := range place.OwnKeys() {
				h.ownKeys[key] = true
			}
			if place.Key != nil {
				h.secrets[place.Key] = true
			} else {
				h.secrets[place.Node] = true
			}
		}
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

var apiVersionWritten = regexp.MustCompile(`\bapiVersion["']?\s*:\s*["']?([^\s"',}]*)`)

// shownKind says whether a text that is no YAML seems to be of a kind whose
// documents may be shown.
func shownKind(text string, kinds config.KindMessage) bool {
	apiVersion := ""
	if m := apiVersionWritten.FindStringSubmatch(text); m != nil {
		apiVersion = m[1]
	}
	written := append(config.WrittenKinds(text), "")
	message, known := kinds(apiVersion, written[0])
	return known && message == nil
}

// textPlace is a line and a column in it, from 1.
type textPlace struct{ line, column int }

type hider struct {
	lines   []string
	hidden  []bool
	keys    map[int]string // by line from 1: the line up to the end of its first key
	secrets map[*yaml.Node]bool
	ownKeys map[*yaml.Node]bool // keys that may be secrets themselves
	found   bool                // a secret
	aliases bool
}

// walk hides the Secrets at and below a node. next is where what comes after
// it begins.
func (h *hider) walk(n *yaml.Node, next textPlace, inside bool) {
	if n.Kind == yaml.AliasNode {
		h.aliases = true
		return
	}
	if !inside && h.secrets[n] {
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
			if child.Kind == yaml.ScalarNode {
				h.key(child, n.Content[i+1])
				continue
			}
		} else if n.Kind == yaml.MappingNode && !inside && h.secrets[n.Content[i-1]] {
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

// key notes the first key of a line, when nothing but structure is before it
// and it is no value in the wrong place.
func (h *hider) key(n, value *yaml.Node) {
	if h.keys[n.Line] != "" || n.Line < 1 || n.Line > len(h.lines) {
		return
	}
	before := h.before(textPlace{n.Line, n.Column})
	if !onlyStructure(before) || !document.PlainKey(n.Value) || value.Tag == "!!null" || h.ownKeys[n] {
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
