// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
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
func (d *draft) nameHook(id ObjectID) {
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
