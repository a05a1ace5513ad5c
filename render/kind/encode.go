// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// appendJSON is the JSON of a plain value: keys sorted, no spaces, numbers in
// their shortest form, nothing left out.
func appendJSON(dst []byte, value any) []byte {
	switch v := value.(type) {
	case map[string]any:
		dst = append(dst, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendQuoted(dst, key), ':')
			dst = appendJSON(dst, v[key])
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, item)
		}
		return append(dst, ']')
	case string:
		return appendQuoted(dst, v)
	}
	return appendScalar(dst, value)
}

// appendQuoted is a text in double quotes, as JSON has it, which YAML reads
// alike: characters that nobody sees are escaped, since some readers of YAML
// refuse them or take them for the end of a line.
func appendQuoted(dst []byte, s string) []byte {
	return appendEscaped(dst, s, utf8.AppendRune)
}

// appendEscaped is appendQuoted with another form for characters of more than
// 16 bits, which JSON and YAML escape in different ways. No reader refuses those.
func appendEscaped(dst []byte, s string, beyond func(dst []byte, r rune) []byte) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // texts always encode
	for _, r := range string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))) {
		switch {
		case unicode.IsPrint(r):
			dst = utf8.AppendRune(dst, r)
		case r < 0x10000:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = beyond(dst, r)
		}
	}
	return dst
}

// appendScalar is a value that is no text, in a form that JSON, YAML 1.1 and
// YAML 1.2 read alike.
func appendScalar(dst []byte, value any) []byte {
	switch v := value.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		const exact = 1 << 53
		if v == math.Trunc(v) && math.Abs(v) <= exact {
			return strconv.AppendInt(dst, int64(v), 10)
		}
		s := strconv.FormatFloat(v, 'g', -1, 64)
		if mantissa, exponent, ok := strings.Cut(s, "e"); ok && !strings.Contains(mantissa, ".") {
			s = mantissa + ".0e" + exponent // a text to YAML 1.1 without the point
		}
		return append(dst, s...)
	}
	return append(dst, "null"...)
}

// YAML is a plain value, see [document.Document.Plain], in block style. Readers of
// YAML 1.1 and 1.2 take it for the same value, whatever characters its texts
// have; those that nobody sees are escaped.
func YAML(value any) []byte { return appendYAML(nil, value) }

// appendYAML is the block-style YAML of a plain value with its last newline:
// keys sorted, two spaces to a level. Readers of YAML 1.1 and 1.2 take it for
// the same value.
func appendYAML(dst []byte, value any) []byte { return yamlBlock(dst, value, 0, false) }

// yamlBlock writes a value that starts at the current column: after "- " or
// "key:" or at the start of a line. inKey tells the second from the others.
func yamlBlock(dst []byte, value any, indent int, inKey bool) []byte {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			return append(spaced(dst, inKey), "{}\n"...)
		}
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if inKey && i == 0 {
				dst = append(dst, '\n')
			}
			if i > 0 || inKey {
				dst = pad(dst, indent)
			}
			dst = yamlKey(dst, key, indent)
			dst = yamlBlock(dst, v[key], indent+2, true)
		}
		return dst
	case []any:
		if len(v) == 0 {
			return append(spaced(dst, inKey), "[]\n"...)
		}
		if inKey { // the items of a key's list stand below the key
			dst = append(dst, '\n')
			indent -= 2
		}
		for i, item := range v {
			if i > 0 || inKey {
				dst = pad(dst, indent)
			}
			dst = yamlBlock(append(dst, "- "...), item, indent+2, false)
		}
		return dst
	case string:
		if isBlockText(v) {
			return blockText(spaced(dst, inKey), v, indent)
		}
		return append(yamlText(spaced(dst, inKey), v), '\n')
	}
	return append(appendScalar(spaced(dst, inKey), value), '\n')
}

// maxKey is how long a key may be, as it is written, before it needs a mark of
// its own: YAML allows 1024 characters for one that only its colon marks.
const maxKey = 1000

// yamlKey writes a key with its colon.
func yamlKey(dst []byte, key string, indent int) []byte {
	start := len(dst)
	dst = yamlText(dst, key)
	if len(dst)-start > maxKey {
		dst = slices.Insert(dst, start, '?', ' ')
		dst = pad(append(dst, '\n'), indent)
	}
	return append(dst, ':')
}

func spaced(dst []byte, inKey bool) []byte {
	if inKey {
		dst = append(dst, ' ')
	}
	return dst
}

func pad(dst []byte, indent int) []byte {
	for range indent {
		dst = append(dst, ' ')
	}
	return dst
}

// plainText is what is surely a text to every reader: it starts with a letter
// and is longer than the words of YAML, or has a character that no word has.
var plainText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// words are texts that some reader takes for something else.
var words = map[string]bool{"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true, "true": true, "false": true, "null": true}

func yamlText(dst []byte, s string) []byte {
	if plainText.MatchString(s) && !words[strings.ToLower(s)] {
		return append(dst, s...)
	}
	return appendEscaped(dst, s, func(dst []byte, r rune) []byte { return fmt.Appendf(dst, `\U%08x`, r) })
}

// isBlockText says whether a text reads the same as a literal block: lines of
// printable characters, of which the first starts with a visible one.
func isBlockText(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasSuffix(s, "\n\n") {
		return false
	}
	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && strings.TrimLeft(line, " \t") == "" {
			return false
		}
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && (!unicode.IsPrint(r) || r == '\ufeff' || r == '\ufffd') {
			return false
		}
	}
	return s[0] > ' '
}

func blockText(dst []byte, s string, indent int) []byte {
	dst = append(dst, '|')
	if !strings.HasSuffix(s, "\n") {
		dst = append(dst, '-')
	}
	dst = append(dst, '\n')
	for line := range strings.Lines(s) {
		if line != "\n" {
			dst = pad(dst, max(indent, 2))
		}
		dst = append(dst, line...)
	}
	if !strings.HasSuffix(s, "\n") {
		dst = append(dst, '\n')
	}
	return dst
}
