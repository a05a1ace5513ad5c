// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/swell-sh/swell/config"
)

// lists are the values that stand for several names, with | between them.
var lists = map[string]bool{"clusters": true, "targets": true}

// unquoted is what may stand in a query outside of quotes: a part of a metric's or a label's name.
var unquoted = regexp.MustCompile(`^[a-zA-Z0-9_:]*$`)

// promQL puts values into a query so that they stay the values they are, whatever signs the names
// of folders have: escaped as the quotes around them want it, and as literal text where a regular
// expression is matched. Outside of quotes, and in backquotes, which have no escapes, it is an
// error when a value would end there.
func promQL(query string, values map[string]string) (string, error) {
	var b strings.Builder
	var quote byte // that is open; 0: none
	matched := false
	for i := 0; i < len(query); {
		if name := config.PlaceholderAt(query[i:]); name != "" {
			text, err := insert(name, values[name], quote, matched)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
			i += len("${}") + len(name)
			continue
		}
		switch c := query[i]; {
		case quote == 0 && c == '#': // up to the end of the line
			end := strings.IndexByte(query[i:], '\n')
			if end < 0 {
				end = len(query) - i
			}
			i += end
			continue
		case quote == 0 && strings.IndexByte("\"'`", c) >= 0:
			quote = c
			before := strings.TrimRight(query[:i], " \t\r\n")
			matched = strings.HasSuffix(before, "=~") || strings.HasSuffix(before, "!~")
		case quote == c:
			quote, matched = 0, false
		case c == '\\' && quote != 0 && quote != '`' && i+1 < len(query):
			b.WriteByte(c)
			i++
		}
		b.WriteByte(query[i])
		i++
	}
	return b.String(), nil
}

// insert is a value as it stands between quotes; matched says that a regular expression is there.
func insert(name, value string, quote byte, matched bool) (string, error) {
	if matched {
		value = literal(name, value)
	}
	switch {
	case quote == 0 && !unquoted.MatchString(value):
		return "", fmt.Errorf("${%s} is %q, which cannot stand outside of quotes", name, value)
	case quote == '`' && strings.ContainsRune(value, '`'):
		return "", fmt.Errorf("${%s} is %q, which cannot stand in backquotes", name, value)
	case quote == 0, quote == '`':
		return value, nil
	}
	return strings.NewReplacer(`\`, `\\`, string(quote), `\`+string(quote), "\n", `\n`).Replace(value), nil
}

// literal is a regular expression that matches the value alone, or one of those of a list.
func literal(name, value string) string {
	if !lists[name] {
		return regexp.QuoteMeta(value)
	}
	parts := strings.Split(value, "|")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return strings.Join(parts, "|")
}
