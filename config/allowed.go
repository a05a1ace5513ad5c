// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/swell-sh/swell/config/document"

// AllowedChange is a breaking change of a kind or of a definition that is meant.
type AllowedChange struct {
	Position document.Position
	Rule     string // of render/schema/compat
	At       string // Runtime.spec.port
	Reason   string // never empty
}

// allowedChanges reads spec.checks.allowedChanges.
func (r *reading) allowedChanges(spec checksSpec) []AllowedChange {
	var allowed []AllowedChange
	for i, c := range spec.AllowedChanges {
		path := []any{"spec", "checks", "allowedChanges", i}
		for _, field := range [][2]string{{"rule", c.Rule}, {"at", c.At}, {"reason", c.Reason}} {
			if field[1] == "" {
				r.at(append(path, field[0])...).problem(document.CodeType, "missing: want the rule and the place as swell schema compat shows them, and a reason")
			}
		}
		allowed = append(allowed, AllowedChange{r.At(r.Deepest(path...)), c.Rule, c.At, c.Reason})
	}
	return allowed
}
