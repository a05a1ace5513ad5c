// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"strings"
	"unicode"

	"github.com/swell-sh/swell/config"
)

// EndCommand is the command that ends a standing order; empty where none does.
func (o *Order) EndCommand() string {
	verb := string(o.Verb.EndVerb())
	switch {
	case verb == "":
		return ""
	case o.Verb == Retire:
		verb = "target " + verb
	}
	return "swell " + verb + " " + o.Scope.arguments()
}

// arguments are those of a command that is about the scope.
func (s Scope) arguments() string {
	var args []string
	for _, part := range []struct{ flag, name string }{{"", string(s.Unit)}, {"", string(s.Target)}, {"--tenant ", s.Tenant}, {"--wave ", s.Wave}} {
		if part.name != "" {
			args = append(args, part.flag+argument(part.name))
		}
	}
	if len(args) == 0 {
		return "--all"
	}
	return strings.Join(args, " ")
}

// Command is a command about a unit, as an operator can paste it into a shell.
func Command(verb string, unit config.UnitPath) string {
	return "swell " + verb + " " + argument(string(unit))
}

// argument is a text as one word of a shell: folders and waves are named by whoever may
// commit.
func argument(text string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/-._@:+,=%", r) || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}
