// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	_ "embed"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
)

// DecodeOwn reads the spec of one of swell's own documents, strictly, into a
// Go value whose fields are named as in documents.proto.
func DecodeOwn(doc *document.Document, spec any) document.Problems {
	return readOwn(doc, spec).problems()
}

// nullable are the fields of swell's own documents where null is a value: an
// override removes a field with it.
var nullable = []protoreflect.FullName{"swell.v1.PathValue.value", "swell.v1.PatchOperation.value"}

// narrowing are the fields that narrow something down, with what to write in
// place of an empty value. Without the field, everything is meant, or what is
// written further up; an empty list, mapping or text looks as if it meant nothing.
var narrowing = map[protoreflect.FullName]string{
	"swell.v1.ClusterSpec.tenants":       `name the tenants that may be placed here, or remove the field for all of them; labels and placements keep units away`,
	"swell.v1.RepositorySpec.units":      `name the folders that hold units, or remove the field for ["services"]`,
	"swell.v1.Placement.match":           allTargets,
	"swell.v1.Wave.match":                `say which labels are meant, or remove the field for every target that is in no wave yet`,
	"swell.v1.Wave.targets":              `name targets, or remove the field for every target that is in no wave yet`,
	"swell.v1.Wave.share":                `write a percentage, or remove the field for all targets that match`,
	"swell.v1.MaskSpec.where":            `say what is masked, like {targets: [sas-1]}`,
	"swell.v1.WindowSpec.where":          `say what it is about, like {targets: [sas-1]}, or remove the field for everything`,
	"swell.v1.Where.match":               allTargets,
	"swell.v1.Where.targets":             "name targets, or remove the field for all of them",
	"swell.v1.Where.units":               "name units or folders, or remove the field for all of them",
	"swell.v1.Where.tenants":             "name tenants, or remove the field for all of them",
	"swell.v1.Where.waves":               "name waves, or remove the field for all of them",
	"swell.v1.ApprovalGate.by":           "name operators, or remove the field for every one",
	"swell.v1.DriftRule.match":           allTargets,
	"swell.v1.IgnoreRule.match":          allTargets,
	"swell.v1.IgnoreRule.object":         "name the object, or remove the field for every object of the kind",
	"swell.v1.Override.object":           "name the object, or remove the field for every object of the kind",
	"swell.v1.DefaultsSpec.tenant":       "name the tenant, or remove the field for the one further up",
	"swell.v1.DefaultsSpec.rollout":      "name the Rollout, or remove the field for the one further up",
	"swell.v1.Override.match":            allTargets,
	"swell.v1.Match.labels":              `say which labels are meant, or remove match`,
	"swell.v1.TenantSpec.folders":        "name folders of units, or remove the field",
	"swell.v1.TenantSpec.owners":         "name owners, or remove the field: CODEOWNERS is not looked at then",
	"swell.v1.TenantSpec.clusters":       "name clusters, or remove the field for all that take the tenant",
	"swell.v1.TenantSpec.namespaces":     "name namespaces, or remove the field for all",
	"swell.v1.TenantSpec.kinds":          "name kinds, or remove the field for all",
	"swell.v1.TenantSpec.clusterKinds":   "name kinds, or remove the field for none",
	"swell.v1.TenantSpec.labels":         "name keys, or remove the field for all",
	"swell.v1.TenantSpec.annotations":    "name keys, or remove the field for all",
	"swell.v1.TenantSpec.images":         "name images, or remove the field for all",
	"swell.v1.TenantSpec.serviceAccount": `write {namespace: ..., name: ...}, or remove the field for the account of swell itself`,
}

const allTargets = `say which labels are meant, like {labels: {region: sas}}, or remove the field for all targets`

// OwnDocuments are the messages of swell's own documents, in the order of
// documents.proto. Each is named as its kind.
func OwnDocuments() []protoreflect.MessageDescriptor {
	var own []protoreflect.MessageDescriptor
	for i := range documents().Len() {
		if m := documents().Get(i); m.Fields().ByName("apiVersion") != nil {
			own = append(own, m)
		}
	}
	return own
}

// matchSpec is Match as it is written: values are a text or a list of texts.
type matchSpec struct {
	Labels map[string]any
}

func (m matchSpec) match(doc *document.Document, path ...any) (Match, document.Problems) {
	if len(m.Labels) == 0 {
		return Match{}, nil
	}
	match := Match{Labels: make(map[string][]string, len(m.Labels))}
	var problems document.Problems
	for key, value := range m.Labels {
		values, err := texts(value)
		if err != nil {
			at := append(slices.Clip(path), key)
			problems = append(problems, doc.Problem(doc.Deepest(at...), document.CodeType, "%s: %s", document.PathOf(at...), err))
		}
		match.Labels[key] = values
	}
	return match, problems
}

func texts(value any) ([]string, error) {
	items, ok := value.([]any)
	if !ok {
		items = []any{value}
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("an empty list matches nothing")
	}
	values := make([]string, len(items))
	for i, item := range items {
		if item == nil {
			return nil, fmt.Errorf("want a string or a list of strings, got nothing")
		}
		if values[i], ok = item.(string); !ok {
			return nil, fmt.Errorf("want a string or a list of strings, got %v", item)
		}
	}
	return values, nil
}

// amount reads a number of targets or a percentage, from least or least % on; nil
// is the zero Amount.
func amount(value any, least int) (Amount, error) {
	var a Amount
	ok, got := false, value
	switch v := value.(type) {
	case nil:
		return a, nil
	case float64:
		a.Count = int(v)
		ok = v == float64(a.Count) && a.Count >= least
	case string:
		_, err := fmt.Sscanf(v, "%d%%", &a.Percent)
		ok = err == nil && fmt.Sprintf("%d%%", a.Percent) == v && a.Percent >= least && a.Percent <= 100
		got = fmt.Sprintf("%q", v)
	}
	if !ok {
		return Amount{}, fmt.Errorf("want a whole number from %d or a percentage from %d%% to 100%%, got %v", least, least, got)
	}
	return a, nil
}

// duration reads what protojson made of a Duration: "600s"; empty is zero.
func duration(text string) time.Duration {
	d, _ := time.ParseDuration(text) // the decoder has checked it
	return d
}

//go:embed documents.proto
var documentsProto string

// documents compiles the schema of swell's own documents, once.
var documents = sync.OnceValue(func() protoreflect.MessageDescriptors {
	return document.CompileOwn("swell/documents.proto", documentsProto).Messages()
})

// saysNothing is [document.Decoding.Empty] of swell's own documents. A null never
// means what a missing field means: the author of `match:` had something in mind.
func saysNothing(n *yaml.Node, field protoreflect.FieldDescriptor) (instead string, wrong bool) {
	instead = narrowing[field.FullName()]
	switch {
	case document.IsNull(n) && !slices.Contains(nullable, field.FullName()):
		if instead == "" {
			instead = "write a value, or remove the field"
		}
	case n.Value != "" || len(n.Content) > 0 || instead == "":
		return "", false
	}
	return instead, true
}

// WantOne is a problem unless there is exactly one document, of that kind of
// swell's own. It is at the one that should not be there. more is added to what
// is wanted.
func WantOne(file string, docs []*document.Document, kind, more string) *document.Problem {
	p := document.Problem{Position: document.Position{File: file}, Code: document.CodeDocument, Message: fmt.Sprintf("want exactly one document, of kind %s (%s)%s", kind, APIVersion, more)}
	for i, doc := range docs {
		switch {
		case doc.Kind != kind || doc.APIVersion != APIVersion:
			p.Message += fmt.Sprintf(", got %s %s", document.Shorten(doc.APIVersion), document.Shorten(doc.Kind))
		case i > 0:
			p.Message += ", got another one"
		default:
			continue
		}
		p.Position, p.Message = doc.Position(), document.Printable(p.Message)
		return &p
	}
	if len(docs) == 0 {
		p.Message += ", got none"
		return &p
	}
	return nil
}
