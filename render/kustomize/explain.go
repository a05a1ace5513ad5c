// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"regexp"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

var (
	// kustomize tells the way to the cause from the outside in.
	wrapped = regexp.MustCompile(`^.*recursed (?:accumulation|merging) (?:of|from) path '([^']*)': `)
	// objectID is how kustomize writes an object: Kind.version.group/name.namespace.
	objectID = regexp.MustCompile(`\b([A-Z]\w*)\.(?:[\w-]+|\[noVer\])\.(?:[\w.-]+|\[noGrp\])/([^\s/"\[\]]+)\.(?:\[noNs\]|[a-z0-9-]+)`)
	// goID is the same as Go prints it.
	goID = regexp.MustCompile(`resid\.ResId\{Gvk:resid\.Gvk\{[^}]*?Kind:"([^"]*)"[^}]*\}, Name:"([^"]*)"[^}]*\}`)
	// dumps are Go values with their addresses, which differ each time.
	dumps = regexp.MustCompile(`&\{0x[0-9a-f]+ <nil>\}|\b0x[0-9a-f]{8,}\b`)
	// harmless are causes that only hold names, and so may be shown where
	// Secrets are in play: others quote what they stumbled over.
	harmless = regexp.MustCompile(`^(no (resource )?matches|may not add resource|id |kustomization\.yaml is empty|namespace transformation produces ID conflict|unable to find|multiple matches|found multiple)`)
)

// longest is how much of a cause is shown, in bytes.
const longest = 300

// explain makes one problem of an error of kustomize, at the patch or the
// resource that it speaks of where there is one.
func (c *closure) explain(root *kustomization, err error) document.Problem {
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	k := root
	if m := wrapped.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if inner := c.folders[strings.TrimPrefix(m[1], "/")]; inner != nil {
			k = inner
		}
	}
	for folder := range c.folders {
		text = regexp.MustCompile(`(^|[\s'"(\[])/(`+regexp.QuoteMeta(folder)+`(?:[/\s'")\]:]|$))`).ReplaceAllString(text, "$1$2")
	}
	p := k.doc.Problem(k.doc.Node, document.CodeRender, "kustomize: ")
	text = strings.TrimPrefix(dumps.ReplaceAllString(text, ""), "merging from generator : ")
	m := objectID.FindStringSubmatch(text)
	if m == nil {
		m = goID.FindStringSubmatch(text)
	}
	if m != nil {
		if doc := named(c.patches, m[1], m[2]); doc != nil {
			p.Position = doc.Position()
		} else if doc := named(c.origins, m[1], m[2]); doc != nil {
			p.Position = doc.Position()
		}
	}
	text = goID.ReplaceAllString(objectID.ReplaceAllString(text, "$1 $2"), "$1 $2")
	if strings.HasPrefix(text, "no resource matches") {
		text, _, _ = strings.Cut(text, ": ") // the same again, twice
	}
	if c.secret && !harmless.MatchString(text) {
		text = "cannot build this folder; the cause is not shown, as it may hold the value of a Secret: run kustomize build to see it"
	}
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "..."
	}
	p.Message += strings.TrimSpace(text)
	return p
}

func named(docs []*document.Document, kind, name string) *document.Document {
	for _, doc := range docs {
		if doc.Kind == kind && doc.Name == name {
			return doc
		}
	}
	return nil
}
