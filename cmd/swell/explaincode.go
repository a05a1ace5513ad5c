// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

var problemCode = regexp.MustCompile(`^(?i:SW)\d+$`)

// explainCode explains a class of problems.
func explainCode(w io.Writer, output, name string) error {
	code := document.Code(strings.ToUpper(name))
	explained, known := document.Explanations[code]
	if !known {
		codes := slices.Sorted(maps.Keys(document.Codes))
		return hinted{fmt.Errorf("%s: no such code", code), fmt.Sprintf("codes are %s to %s; swell check shows them behind each problem", codes[0], codes[len(codes)-1])}
	}
	if output != formatText {
		return writeData(w, output, codeExplanation{code, document.Codes[code], explained.Cause, explained.Example.File, explained.Example.Text, explained.WayOut})
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n\n%s", code, document.Codes[code], wrap(explained.Cause, ""))
	if e := explained.Example; e.File != "" {
		fmt.Fprintf(&text, "\nExample, %s:\n\n", e.File)
		for line := range strings.Lines(e.Text) {
			text.WriteString("  " + line)
		}
	}
	fmt.Fprintf(&text, "\nWay out:\n%s", wrap(explained.WayOut, ""))
	_, err := io.WriteString(w, text.String())
	return err
}

// codeExplanation is an explanation as data.
type codeExplanation struct {
	Code        document.Code `json:"code"`
	Summary     string        `json:"summary"`
	Cause       string        `json:"cause"`
	ExampleFile string        `json:"exampleFile,omitempty"`
	Example     string        `json:"example,omitempty"`
	WayOut      string        `json:"wayOut"`
}
