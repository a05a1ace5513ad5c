// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// ambiguous are the values of a unit's documents that YAML readers read in different
// ways, as far as they are refused: all in easy specs and swell's own documents, and in
// others where the monorepo says so.
func (w *world) ambiguous(docs []*document.Document, reads *recorder) (problems document.Problems) {
	for _, doc := range docs {
		if len(doc.Ambiguous) == 0 {
			continue
		}
		reads.note(readYAML, "")
		strict := strings.HasPrefix(doc.APIVersion, config.Group+"/")
		if w.kinds != nil {
			reads.note(readKind, doc.APIVersion+" "+doc.Kind)
			strict = strict || w.kinds.ByName(doc.APIVersion, doc.Kind) != nil || w.kinds.Broken(doc.APIVersion, doc.Kind) != ""
		}
		for _, p := range doc.Ambiguous {
			if !strict && w.repository.StrictYAML {
				p.Message += "; " + config.SettingsFile + " has yaml: strict, and yaml: kubernetes reads it as kubectl does"
			}
			if strict || w.repository.StrictYAML {
				problems = append(problems, p)
			}
		}
	}
	return problems
}
