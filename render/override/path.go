// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jmespath-community/go-jmespath/pkg/parsing"
	"github.com/jmespath-community/go-jmespath/pkg/util"

	"github.com/swell-sh/swell/config/document"
)

// maxPath is how long a path may be, in bytes: it bounds how deep the parser
// recurses and what a filter can compute.
const maxPath = 1000

// path leads to places in an object. The empty path is the object itself.
type path []step

// step is one step of a path.
type step struct {
	kind   stepKind
	text   string // as written, for messages
	name   string
	index  int
	slice  []util.SliceParam
	filter *filter
}

type stepKind int

const (
	byName   stepKind = iota
	byIndex           // [1], [-1]
	bySlice           // [0:2]
	byFilter          // [?...]
	byItem            // [*]
	byValue           // * of a mapping
)

var (
	namePart   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)
	quotedPart = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)
	indexPart  = regexp.MustCompile(`^-?[0-9]+$`)
	slicePart  = regexp.MustCompile(`^(-?[0-9]+)?:(-?[0-9]+)?(?::(-?[0-9]+)?)?$`)
	// oddName is a name that JMESPath wants in double quotes.
	oddName = regexp.MustCompile(`^[^\s.\[\](){}|&=!<>'"` + "`" + `@*,:]+`)
)

// parsePath reads a path. What is accepted is JMESPath, but not all of it.
func parsePath(text string) (path, error) {
	switch {
	case text == "":
		return nil, fmt.Errorf("empty: want a path like spec.replicas")
	case len(text) > maxPath:
		return nil, fmt.Errorf("%s: %d bytes, want at most %d", quoted(document.Shorten(text)), len(text), maxPath)
	}
	rest := text
	if text == "@" || strings.HasPrefix(text, "@.") {
		rest = strings.TrimPrefix(text[1:], ".")
	}
	var steps path
	for rest != "" {
		if len(steps) > 0 {
			var err error
			if rest, err = separator(rest); err != nil {
				return nil, fmt.Errorf("%s: %w", quoted(text), err)
			}
		}
		s, length, err := parseStep(rest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", quoted(text), err)
		}
		s.text = rest[:length]
		steps = append(steps, s)
		rest = rest[length:]
	}
	if len(steps) > 0 && steps[0].kind != byName && steps[0].kind != byValue {
		return nil, fmt.Errorf("%s: want a field's name first", quoted(text))
	}
	if _, err := parsing.NewParser().Parse(text); err != nil {
		return nil, fmt.Errorf("%s: no JMESPath: %s", quoted(text), strings.TrimPrefix(err.Error(), "SyntaxError: "))
	}
	return steps, nil
}

// quoted is a part of a path for a message, up to its first filter or text: the
// object may be a Secret, whose values may stand there.
func quoted(text string) string {
	if i := strings.IndexAny(text, "?='`"); i >= 0 {
		text = text[:i] + "..."
	}
	return strconv.Quote(text)
}

// separator takes away what stands between two steps.
func separator(rest string) (string, error) {
	trimmed := strings.TrimLeft(rest, " ")
	switch {
	case strings.HasPrefix(rest, ".["):
		return "", fmt.Errorf("want a name after the dot at %s: an index or a filter stands without one", quoted(rest))
	case rest[0] == '.':
		return rest[1:], nil
	case rest[0] == '[':
		return rest, nil
	case strings.HasPrefix(trimmed, "("):
		return "", fmt.Errorf("a function gives a value and no place, at %s: functions stand in filters, like [?contains(name, 'x')]", quoted(rest))
	case strings.HasPrefix(trimmed, "|") && !strings.HasPrefix(trimmed, "||"):
		return "", fmt.Errorf("a pipe gives a value and no place, at %s: write one path", quoted(rest))
	case rest[0] != ' ' && oddName.MatchString(rest):
		return "", fmt.Errorf("want . or [ before %s: a name with other characters than letters, digits and _ stands in double quotes", quoted(rest))
	}
	return "", fmt.Errorf("want . or [ before %s", quoted(rest))
}

func parseStep(rest string) (step, int, error) {
	if m := namePart.FindString(rest); m != "" {
		return step{kind: byName, name: m}, len(m), nil
	}
	switch {
	case rest != "" && rest[0] == '*':
		return step{kind: byValue}, 1, nil
	case rest != "" && rest[0] == '[':
		return parseBrackets(rest)
	case rest != "" && rest[0] == '{':
		return step{}, 0, fmt.Errorf("several fields at once make a value and no place, at %s: write an operation for each", quoted(rest))
	}
	if m := quotedPart.FindString(rest); m != "" {
		var name string
		err := json.Unmarshal([]byte(m), &name)
		if err != nil {
			return step{}, 0, fmt.Errorf("%s: not a string in double quotes as JSON has it", m)
		}
		if name == "" {
			err = fmt.Errorf("want a name between the quotes at %s", quoted(rest))
		}
		return step{kind: byName, name: name}, len(m), err
	}
	if m := oddName.FindString(rest); m != "" {
		return step{}, 0, fmt.Errorf("want a name, [index] or [?name=='value'] at %s: write %q in double quotes", quoted(rest), m)
	}
	return step{}, 0, fmt.Errorf(`want a name, [index] or [?name=='value'] at %s`, quoted(rest))
}

func parseBrackets(rest string) (step, int, error) {
	length := bracketed(rest)
	if length == 0 {
		return step{}, 0, fmt.Errorf("the [ is never closed at %s", quoted(rest))
	}
	s, err := parseInner(rest[1 : length-1])
	return s, length, err
}

// parseInner reads what stands between brackets.
func parseInner(inner string) (step, error) {
	switch {
	case inner == "":
		return step{}, fmt.Errorf("[] makes a new list, which is no place: write [*] for every item")
	case inner == "*":
		return step{kind: byItem}, nil
	case indexPart.MatchString(inner):
		i, err := strconv.Atoi(inner)
		if err != nil {
			return step{}, fmt.Errorf("[%s]: no list is that long", inner)
		}
		return step{kind: byIndex, index: i}, nil
	case slicePart.MatchString(inner):
		return parseSlice(inner)
	case inner[0] == '?':
		f, err := parseFilter(inner[1:])
		if err != nil {
			return step{}, fmt.Errorf("[?...]: %w", err)
		}
		return step{kind: byFilter, filter: f}, nil
	}
	if quotedPart.FindString(inner) == inner || namePart.FindString(inner) == inner {
		return step{}, fmt.Errorf("[%s]: want .%s for a field", inner, inner)
	}
	return step{}, fmt.Errorf("want a name, [index] or [?name=='value'] at %s", quoted("["+inner+"]"))
}

func parseSlice(inner string) (step, error) {
	params := make([]util.SliceParam, 3)
	for i, text := range slicePart.FindStringSubmatch(inner)[1:] {
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32) // the library adds them up
		if err != nil {
			return step{}, fmt.Errorf("[%s]: no list is that long", inner)
		}
		params[i] = util.SliceParam{N: int(n), Specified: true}
	}
	if params[2].Specified && params[2].N <= 0 {
		return step{}, fmt.Errorf("[%s]: want a step from 1", inner)
	}
	return step{kind: bySlice, slice: params}, nil
}

// bracketed is the length up to the bracket that closes the one at the start;
// 0 when none does. Brackets in quotes do not count.
func bracketed(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '\'', '"', '`':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return 0
}

// text is the path as it was written. In messages about a Secret filters are
// left out: they may hold its values.
func (p path) text(secret bool) string {
	var b strings.Builder
	for i, s := range p {
		if i > 0 && (s.kind == byName || s.kind == byValue) {
			b.WriteByte('.')
		}
		if secret && s.kind == byFilter {
			b.WriteString("[?...]")
			continue
		}
		b.WriteString(s.text)
	}
	return b.String()
}
