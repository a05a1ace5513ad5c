// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package reporttest judges comments.
package reporttest

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/renderer/html"
	xhtml "golang.org/x/net/html"
)

// elements are those that a comment may have.
var elements = []string{"a", "h3", "p", "strong", "code", "pre", "details", "summary"}

// ourLink is the text of the one link that a comment may have.
const ourLink = "All of it"

// Objection says what is wrong with a comment as a forge shows it; empty for nothing: an
// element that we do not write, one that is not closed, or text outside of code that names
// somebody, or is an author's.
func Objection(markdown string, authored func(text string) bool) string {
	var page strings.Builder
	if err := goldmark.New(goldmark.WithRendererOptions(html.WithUnsafe())).Convert([]byte(markdown), &page); err != nil {
		return err.Error()
	}
	var open []string
	for z := xhtml.NewTokenizer(strings.NewReader(page.String())); ; {
		switch z.Next() {
		case xhtml.ErrorToken:
			if z.Err() != io.EOF {
				return z.Err().Error()
			}
			if len(open) > 0 {
				return fmt.Sprintf("%q is not closed", open)
			}
			return ""
		case xhtml.StartTagToken:
			name, more := z.TagName()
			if !slices.Contains(elements, string(name)) {
				return fmt.Sprintf("a <%s>", name)
			}
			for more {
				var key, value []byte
				if key, value, more = z.TagAttr(); authored(string(value)) {
					return fmt.Sprintf("an author's %s of a <%s>: %q", key, name, value)
				}
			}
			open = append(open, string(name))
		case xhtml.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				return fmt.Sprintf("</%s> in %q", name, open)
			}
			open = open[:len(open)-1]
		case xhtml.TextToken:
			text := string(z.Text())
			if len(open) > 0 && open[len(open)-1] == "a" && text != ourLink {
				return fmt.Sprintf("a link that is not ours: %q", text)
			}
			if !slices.Contains(open, "code") && (authored(text) || strings.Contains(text, "@")) {
				return fmt.Sprintf("text of an author outside of code: %q", text)
			}
		default:
			return fmt.Sprintf("%q", z.Raw())
		}
	}
}
