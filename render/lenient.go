// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/schema"
)

// dropStatus leaves the status of a written object out, as the server does with what
// anybody applies. In a template it is a mistake.
func (d *draft) dropStatus() {
	if d.template == nil && d.object["status"] != nil {
		d.object = maps.Clone(d.object)
		delete(d.object, "status")
	}
}

// maxGenerated is how much of generateName a name begins with: an API server keeps as
// much, so that the name is a label (MaxGeneratedNameLength of apiserver's names package,
// which appends five characters).
const maxGenerated = 63 - 2*generatedBytes

const generatedBytes = 4

// nameHook gives a Job that runs once a name from metadata.generateName: that and a hash
// of the Job. So another Job has another name, and the same one has the same.
func (d *draft) nameHook(id object.ID) {
	metadata, _ := d.object["metadata"].(map[string]any)
	prefix, _ := metadata["generateName"].(string)
	if prefix == "" {
		return
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	spec, _ := d.object["spec"].(map[string]any)
	switch {
	case metadata["name"] != nil && d.template == nil: // the server ignores generateName then
	case id.IsJob() && (annotations[config.AnnotationHook] != nil || spec["ttlSecondsAfterFinished"] != nil):
	default:
		d.problem(document.CodeObject, []any{"metadata", "generateName"},
			"an object that is applied again and again needs a name of its own: write metadata.name; only a Job that is a hook (annotation %s) may have generateName", config.AnnotationHook)
		return
	}
	sum := sha256.Sum256(schema.AppendObject(nil, d.object))
	d.object, metadata = maps.Clone(d.object), maps.Clone(metadata)
	delete(metadata, "generateName")
	if metadata["name"] == nil {
		metadata["name"] = prefix[:min(len(prefix), maxGenerated)] + hex.EncodeToString(sum[:generatedBytes])
	}
	d.object["metadata"] = metadata
}

// place gives a written object the namespace of its Defaults where it names none, and
// takes away what kustomize or a chart gave to one that lives in none.
func (d *draft) place(namespaced bool) {
	metadata, isMap := d.object["metadata"].(map[string]any)
	if d.template != nil || !isMap {
		return
	}
	switch there := metadata["namespace"] != nil; {
	case namespaced && !there && d.space != "":
		metadata = maps.Clone(metadata)
		metadata["namespace"] = d.space
	case !namespaced && there && d.anywhere:
		metadata = maps.Clone(metadata)
		delete(metadata, "namespace")
	default:
		return
	}
	d.object = maps.Clone(d.object)
	d.object["metadata"] = metadata
}

// namespaceFor is the namespace that the unit's Defaults give on a target; empty when
// they give none, or after a problem.
func (u *unitRenderer) namespaceFor(at *kind.Place) string {
	d := u.unit.Defaults
	if d.Namespace == "" {
		return ""
	}
	compiled, known := u.texts.Load(d.Namespace)
	if !known {
		text, err := kind.CompilePlaceText(d.Namespace, d.NamespaceAt)
		compiled, _ = u.texts.LoadOrStore(d.Namespace, compiledText{text, err})
	}
	c := compiled.(compiledText)
	var space string
	if c.err == nil {
		space, c.err = c.text.At(at)
	}
	if c.err == nil && !document.IsLabel(space) {
		c.err = fmt.Errorf("want a namespace, got %q", document.Shorten(space))
	}
	if c.err != nil {
		u.found.add(document.Problem{Position: d.NamespaceAt, Code: document.CodeType, Message: document.Printable("spec.namespace: " + c.err.Error())})
		return ""
	}
	return space
}

// compiledText is what became of a text of Defaults.
type compiledText struct {
	text *kind.PlaceText
	err  error
}
