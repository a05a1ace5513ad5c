// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package order

import "strings"

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
			args = append(args, part.flag+part.name)
		}
	}
	if len(args) == 0 {
		return "--all"
	}
	return strings.Join(args, " ")
}
