// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
)

// Variant are targets on which a created object has other values than on the first target.
type Variant struct {
	Targets []config.TargetName `json:"targets"`
	// Fields are from the first target's object to that of these targets. They are nil for the last one
	// where there are more variants than are told: these targets have yet other values.
	Fields []Field `json:"fields,omitempty"`
}

// asFirst stands for the first target's object where others are variants by their index.
const asFirst = -1

// created is how a created object was found on the targets so far.
type created struct {
	first *object.Object        // see [itself]
	texts []string              // of the first and of each variant, see [itself]
	known map[object.Digest]int // variants by their whole objects
}

// addContent takes in a created object on one more target.
func (g *group) addContent(target config.TargetName, o *object.Object) {
	variant, isKnown := g.created.known[o.Digest]
	if !isKnown {
		variant = g.variant(o)
		g.created.known[o.Digest] = variant
	}
	if variant != asFirst {
		v := &g.change.Variants[variant]
		v.Targets = append(v.Targets, target)
	}
}

// variant finds the variant that an object is, or makes one.
func (g *group) variant(o *object.Object) int {
	found := itself(o)
	if g.created.first == nil {
		g.created = created{found, []string{string(found.JSON)}, map[object.Digest]int{}}
		g.change.Content = content(found)
		return asFirst
	}
	if i := slices.Index(g.created.texts, string(found.JSON)); i >= 0 {
		return i - 1 // the first stands before the variants
	}
	count := len(g.change.Variants)
	if count > maxVariants {
		return maxVariants
	}
	fields := Fields(g.created.first, found)
	if len(fields) == 0 {
		return asFirst
	}
	isSame := func(v Variant) bool { return reflect.DeepEqual(v.Fields, fields) } // hidden values look the same
	if i := slices.IndexFunc(g.change.Variants, isSame); i >= 0 {
		return i
	}
	if count == maxVariants {
		fields = nil
	}
	g.change.Variants = append(g.change.Variants, Variant{Fields: fields})
	g.created.texts = append(g.created.texts, string(found.JSON))
	return count
}

// itself is an object without the fields that name it, its namespace and the marks of swell. It is
// the same on all targets where nobody asked for a difference.
func itself(o *object.Object) *object.Object {
	var b strings.Builder
	b.WriteByte('{')
	for _, m := range members(o.JSON) {
		switch m.key {
		case "apiVersion", "kind":
		case "metadata":
			write(&b, m.key, withoutMarks(m.value))
		default:
			write(&b, m.key, m.value)
		}
	}
	b.WriteByte('}')
	return &object.Object{ID: o.ID, Version: o.Version, JSON: []byte(b.String()), Secrets: o.Secrets}
}

// marksOfSwell are labels and annotations that each object gets.
var marksOfSwell = append(slices.Clone(config.LabelsSet), config.AnnotationUnit, config.LabelManagedBy)

// withoutMarks is the metadata of an object but for names and marks; nothing where there is nothing else.
func withoutMarks(metadata []byte) []byte {
	var b strings.Builder
	b.WriteByte('{')
	for _, m := range members(metadata) {
		switch {
		case m.key == "name", m.key == "namespace":
		case (m.key == "labels" || m.key == "annotations") && kindOf(m.value) == '{':
			var marks strings.Builder
			marks.WriteByte('{')
			for _, mark := range members(m.value) {
				if !slices.Contains(marksOfSwell, mark.key) {
					write(&marks, mark.key, mark.value)
				}
			}
			marks.WriteByte('}')
			write(&b, m.key, []byte(marks.String()))
		default:
			write(&b, m.key, m.value)
		}
	}
	b.WriteByte('}')
	return []byte(b.String())
}

// write adds a member to a mapping under way, unless it is empty.
func write(b *strings.Builder, key string, value []byte) {
	if string(value) == "{}" {
		return
	}
	if b.Len() > 1 {
		b.WriteByte(',')
	}
	name, err := json.Marshal(key)
	if err != nil {
		panic(err) // texts encode
	}
	b.Write(name)
	b.WriteByte(':')
	b.Write(value)
}

// content are the fields of what [itself] returned; nil where it has none. Values of a Secret are replaced.
func content(o *object.Object) map[string]any {
	if string(o.JSON) == "{}" {
		return nil
	}
	fields := map[string]any{}
	redactor, credentials := o.Redactor(), object.Credentials(o)
	for _, m := range members(o.JSON) {
		value := decode(m.value)
		if config.MaySecret(o.ID.Kind) && hidden(m.key, nil, value) {
			value = mask(value, "(value)")
		}
		fields[m.key] = credentials.RedactField(m.key, redactor.RedactField(m.key, value))
	}
	return fields
}

const (
	maxContent  = 40    // lines of a created object that are shown
	maxColumns  = 1_000 // bytes of such a line; a longer one ends in dots
	maxVariants = 5     // of a created object that are told
)

// writeContent shows what an object is created with, whole up to a bound.
func (c *Change) writeContent(b *strings.Builder, most int) {
	if len(c.Content) > 0 {
		lines := yamlLines(decoded(c.Content))
		shown := lines
		if len(lines) > maxContent+1 {
			shown = lines[:maxContent]
		}
		for _, line := range shown {
			fmt.Fprintf(b, "    + %s\n", document.Cut(document.Printable(line), maxColumns))
		}
		if left := len(lines) - len(shown); left > 0 {
			fmt.Fprintf(b, "    and %d more lines\n", left)
		}
	}
	for _, v := range c.Variants {
		if len(v.Fields) == 0 {
			fmt.Fprintf(b, "    and %s with other values\n", document.Count(len(v.Targets), "more target"))
			continue
		}
		fmt.Fprintf(b, "    but on %s\n", Targets(v.Targets, most))
		for _, f := range v.Fields {
			f.write(b)
		}
	}
}

// yamlLines are the lines of a value, for people to read.
func yamlLines(value any) []string {
	var text strings.Builder
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(value); err != nil {
		panic(err) // it came out of JSON
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// decoded is a value of JSON with numbers as YAML takes them.
func decoded(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		n, _ := v.Float64()
		return n
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, item := range v {
			all[key] = decoded(item)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			all[i] = decoded(item)
		}
		return all
	}
	return value
}
