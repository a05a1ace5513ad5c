// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"fmt"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/compat"
)

// allow lets the changes through that head says are meant. What it says of others is in
// the notes.
func (r *Report) allow(allowed []config.AllowedChange) {
	for _, a := range allowed {
		found := false
		for i, f := range r.Findings {
			if string(f.Rule) == a.Rule && f.At == a.At && f.Severity == compat.Breaking {
				found, r.Findings[i].Allowed = true, a.Reason
			}
		}
		why := "there is no such change since the base: remove it"
		if _, known := compat.Rules[compat.Rule(a.Rule)]; !known {
			var names []string
			for name := range compat.Rules {
				names = append(names, string(name))
			}
			why = "no such rule" + document.DidYouMean(a.Rule, names)
		}
		if !found {
			r.Notes = append(r.Notes, document.Problem{Position: a.Position, Code: document.CodeCompat,
				Message: fmt.Sprintf("spec.checks.allowedChanges: %s at %s: %s", document.Shorten(a.Rule), document.Shorten(a.At), why)})
		}
	}
}
