// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path"
	"strings"
)

// writeAnnotations writes problems as workflow commands of GitHub Actions,
// which shows them beside the lines of a pull request.
func writeAnnotations(w io.Writer, c *checked) error {
	for _, p := range c.Problems {
		properties := "file=" + annotationProperty(path.Join(c.folder, p.File))
		if p.Line > 0 {
			properties += fmt.Sprintf(",line=%d", p.Line)
		}
		if column := c.column(p.Position); p.Line > 0 && column > 0 {
			properties += fmt.Sprintf(",col=%d", column)
		}
		text := p.Text() + viaText(p)
		if _, err := fmt.Fprintf(w, "::error %s,title=%s::%s\n", properties, annotationProperty("swell "+string(p.Code)), annotationText(text)); err != nil {
			return err
		}
	}
	return nil
}

// annotationText escapes what would end a command. The runner reads exactly
// these escapes back.
func annotationText(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// annotationProperty also escapes what would end a property.
func annotationProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
