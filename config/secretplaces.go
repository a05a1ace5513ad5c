// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
)

// MaySecret says whether an object of a kind is a Secret or may have been meant
// to be one: kind is missing, is an expression, or is near the word.
func MaySecret(kind string) bool {
	kind = strings.ToLower(strings.TrimSpace(kind))
	const word, near = "secret", 2
	return kind == "" || strings.Contains(kind, word) || strings.Contains(kind, "${") || len(kind) < document.LongestName && document.EditDistance(kind, word) <= near
}

// MaySecretObject is [MaySecret] of an object's kind.
func MaySecretObject(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	return MaySecret(kind)
}

// HidesAnnotation says that the value of a Secret's annotation is not for showing: it is no
// short plain word. Tools keep copies of the whole object in some: kubectl, kapp and Rancher do.
// With the name empty, the value is a mapping of all annotations; nil is none.
func HidesAnnotation(name string, value any) bool {
	if name == AnnotationLastApplied {
		return value != nil // however short the copy is
	}
	switch value := value.(type) {
	case nil:
		return false
	case string:
		return len(value) > longestPlain || strings.ContainsFunc(value, func(r rune) bool {
			return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:, ", r))
		})
	case map[string]any:
		for name, v := range value {
			if HidesAnnotation(name, v) {
				return true
			}
		}
		return false
	}
	return true
}

// AnnotationLastApplied is where kubectl apply keeps a copy of the whole object.
const AnnotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// longestPlain is in bytes: that of the value of a label. A whole object takes more.
const longestPlain = 63

// behindColon is what may be a secret of a key that is not plain: what stands
// behind `password:`.
func behindColon(key string) string {
	if before, after, ok := strings.Cut(key, ":"); ok && document.PlainKey(before) && strings.TrimSpace(after) != "" {
		return after
	}
	return key
}

// KindMessage is the message of documents of an easy kind. known is false for a
// kind that nothing is known of, and for none; the message is nil where no field
// is marked as secret.
type KindMessage func(apiVersion, kind string) (message protoreflect.MessageDescriptor, known bool)

// SecretPlace is a part of a document that may hold secrets.
type SecretPlace struct {
	// Key of Node; nil for a mapping that is or may be a Secret as a whole, and
	// for a text that holds one.
	Key, Node *yaml.Node
	why       secretReason
}

// OwnKeys are the keys of the place that may be secrets themselves: those of a map that is secret as a
// whole, and at the root of a Secret those that are no fields of it.
func (p SecretPlace) OwnKeys() (keys []*yaml.Node) {
	switch {
	case p.why == secretMap:
		eachKey(p.Node, 0, func(key *yaml.Node) { keys = append(keys, key) })
	case p.why == secretObject && textOf(document.Lookup(p.Node, "kind")) == "Secret":
		for i := 0; i < len(p.Node.Content); i += 2 {
			if key := p.Node.Content[i]; UnknownInSecret(key.Value) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// eachKey calls f with the keys at and below a node.
func eachKey(n *yaml.Node, depth int, f func(key *yaml.Node)) {
	if n = document.Resolved(n); depth > document.MaxDepth {
		return
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			f(child)
		} else {
			eachKey(child, depth+1, f)
		}
	}
}

type secretReason int

const (
	secretObject   secretReason = iota // it is or may be a Secret
	secretText                         // a text with one in it
	secretField                        // a field of a message is marked as secret
	secretMap                          // one with keys of its own
	secretValues                       // values of a chart, any of which may end in a Secret
	credentialText                     // a text with a credential in it
	secretOverride                     // it may change one
	secretSource                       // it makes one
	secretPath                         // it stands where a path is wanted and is none
	unknownKind                        // nobody knows what it is
)

// SecretPlaces finds what may be a secret in a document: Secrets wherever they
// stand, and what was meant to be one; what changes or makes them; fields that
// an easy kind marks as secret; the values of a HelmChart; texts with a credential in
// them, see [credentials]; all of an object whose kind is not known. This
// is the one place that says so. It does not look below what it found. kinds
// may be nil: then no kind has marked fields and all are known.
func SecretPlaces(root *yaml.Node, kinds KindMessage) []SecretPlace {
	f := &placeFinder{kinds: kinds}
	f.object(root)
	return f.places
}

type placeFinder struct {
	kinds  KindMessage
	places []SecretPlace
	depth  int // of texts in texts
	// inChart is set in a HelmChart.
	inChart bool
}

func (f *placeFinder) add(key, n *yaml.Node, why secretReason) {
	f.places = append(f.places, SecretPlace{key, n, why})
}

// object is the root of a document, or an item of a list of objects.
func (f *placeFinder) object(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && f.kinds != nil {
		f.add(nil, n, unknownKind) // no document at all
		return
	}
	apiVersion, kind := textOf(document.Lookup(n, "apiVersion")), textOf(document.Lookup(n, "kind"))
	if kind == HelmChartKind && strings.HasPrefix(apiVersion, Group+"/") {
		f.inChart = true
		f.walk(n)
		f.inChart = false
		return
	}
	if n.Kind != yaml.MappingNode || f.kinds == nil || document.IsList(n) || isSecretMapping(n) {
		f.walk(n)
		return
	}
	message, known := f.kinds(apiVersion, kind)
	if known && message == nil {
		f.walk(n)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], document.Resolved(n.Content[i+1])
		switch {
		case key.Value == "apiVersion" || key.Value == "kind" || key.Value == "metadata":
			f.walk(value)
		case !known:
			f.add(key, value, unknownKind)
			f.walk(&yaml.Node{Kind: yaml.MappingNode, Content: n.Content[i : i+2]})
		default:
			f.field(key, value, message)
		}
	}
}

// field looks for marked fields at and below a field of a message. One that the
// message does not have, or of another form, may be a marked one that somebody
// mistyped where the message has any.
func (f *placeFinder) field(key, n *yaml.Node, message protoreflect.MessageDescriptor) {
	field := message.Fields().ByName(protoreflect.Name(key.Value))
	switch {
	case field == nil && mayChangeSecret[key.Value]:
		f.add(key, n, secretOverride)
	case field != nil && document.IsSecret(field) && hasOwnKeys(field):
		f.add(key, n, secretMap)
	case (field == nil || wrongForm(field, n)) && document.HasSecrets(message), field != nil && document.IsSecret(field):
		f.add(key, n, secretField)
	case field == nil || !document.HasSecrets(elementOf(field)):
		f.walk(n)
	case field.IsMap() && n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			f.message(n.Content[i], document.Resolved(n.Content[i+1]), elementOf(field))
		}
	case field.IsList() && n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			f.message(nil, document.Resolved(item), field.Message())
		}
	case field.IsMap() || field.IsList():
		f.add(key, n, secretField)
	default:
		f.message(key, n, field.Message())
	}
}

// hasOwnKeys says whether the keys below a field are no names of the schema.
func hasOwnKeys(field protoreflect.FieldDescriptor) bool {
	return field.IsMap() || field.Message() != nil && field.Message().ParentFile().Path() == "google/protobuf/struct.proto"
}

// wrongForm says whether a field of scalars holds a mapping, or a list that it
// should not: `mode: {password:x}`.
func wrongForm(field protoreflect.FieldDescriptor, n *yaml.Node) bool {
	switch {
	case elementOf(field) != nil || field.IsMap():
		return false
	case field.IsList():
		return n.Kind == yaml.MappingNode || slices.ContainsFunc(n.Content, func(item *yaml.Node) bool { return item.Kind != yaml.ScalarNode })
	}
	return n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode
}

// elementOf is the message of a field's values; nil where they are scalars.
func elementOf(field protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	if field.IsMap() {
		return field.MapValue().Message()
	}
	return field.Message()
}

// message looks below a value that should be a message with marked fields.
func (f *placeFinder) message(key, n *yaml.Node, message protoreflect.MessageDescriptor) {
	switch {
	case n.Kind != yaml.MappingNode:
		f.add(key, n, secretField)
	case isSecretMapping(n):
		f.walk(n)
	default:
		for i := 0; i+1 < len(n.Content); i += 2 {
			f.field(n.Content[i], document.Resolved(n.Content[i+1]), message)
		}
	}
}

// mayChangeSecret are the fields below which values of Secrets may stand
// without saying so: of specs and of Defaults.
var mayChangeSecret = map[string]bool{"override": true, "overrides": true}

// walk looks for Secrets at and below a node that no message describes.
func (f *placeFinder) walk(n *yaml.Node) {
	switch {
	case n.Kind == yaml.MappingNode && isSecretMapping(n):
		f.add(nil, n, secretObject)
		return
	case n.Kind == yaml.ScalarNode && f.holdsSecret(n.Value):
		f.add(nil, n, secretText)
		return
	case n.Kind == yaml.ScalarNode && len(credentials(n.Value)) > 0:
		f.add(nil, n, credentialText)
		return
	case n.Kind == yaml.AliasNode: // what it stands for has been looked at
		return
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if child.Kind != yaml.ScalarNode {
				f.walk(child)
			} else if len(credentials(child.Value)) > 0 {
				f.add(child, n.Content[i+1], credentialText)
			}
			continue
		}
		if n.Kind == yaml.MappingNode {
			key := n.Content[i-1]
			if mayChangeSecret[key.Value] {
				f.add(key, child, secretOverride)
				continue
			}
			if f.inChart && key.Value == "values" {
				f.add(key, child, secretValues)
				continue
			}
			if key.Value == "secretGenerator" || key.Value == "configMapGenerator" {
				f.generators(key, child)
				continue
			}
			if key.Value == "items" && child.Kind == yaml.SequenceNode {
				for _, item := range child.Content {
					f.object(document.Resolved(item))
				}
				continue
			}
		}
		f.walk(child)
	}
}

// generators of Secrets are secret. Of those of ConfigMaps it is what stands
// where a path is wanted and is none.
func (f *placeFinder) generators(key, n *yaml.Node) {
	if key.Value == "secretGenerator" {
		f.add(key, n, secretSource)
		return
	}
	for _, item := range n.Content {
		for i := 0; item.Kind == yaml.MappingNode && i+1 < len(item.Content); i += 2 {
			for _, source := range sources(item.Content[i].Value, item.Content[i+1]) {
				if !PlainPath(source.Value) {
					f.add(item.Content[i], item.Content[i+1], secretPath)
					break
				}
			}
		}
	}
}

// sources are the scalars of a generator's field that name files.
func sources(field string, n *yaml.Node) []*yaml.Node {
	switch {
	case field != "files" && field != "envs" && field != "env":
		return nil
	case n.Kind == yaml.ScalarNode:
		return []*yaml.Node{n}
	}
	return slices.DeleteFunc(slices.Clone(n.Content), func(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode })
}

// PlainPath says whether a text is the path of a file, with a key before it or
// not, and no value in the place of one.
func PlainPath(text string) bool {
	if key, name, ok := strings.Cut(text, "="); ok {
		return document.PlainKey(key) && PlainPath(name)
	}
	text = strings.TrimPrefix(text, "/")
	return text == "" || !slices.ContainsFunc(strings.Split(text, "/"), func(part string) bool { return !document.PlainKey(part) })
}

// isSecretMapping says whether a mapping is a Secret, was meant to be one, or is
// an operation of a JSON patch, whose object is named elsewhere.
func isSecretMapping(n *yaml.Node) bool {
	op, path := false, false
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, document.Resolved(n.Content[i+1])
		const near = 2
		if len(key) < document.LongestName && document.EditDistance(strings.ToLower(key), "stringdata") <= near ||
			strings.EqualFold(key, "kind") && value.Kind == yaml.ScalarNode && value.Value != "" && MaySecret(value.Value) {
			return true
		}
		op, path = op || key == "op", path || key == "path"
	}
	return op && path
}

// holdsSecret says whether a text is YAML with a Secret, such as a patch in a
// kustomization.
func (f *placeFinder) holdsSecret(text string) bool {
	if !strings.Contains(text, ":") {
		return false
	}
	const deepest = 5
	roots, err := DecodeAll([]byte(text))
	if err != nil || f.depth == deepest {
		return TextMaySecret(text)
	}
	for _, root := range roots {
		if root.Kind == yaml.ScalarNode {
			continue
		}
		in := placeFinder{depth: f.depth + 1}
		if in.walk(root); len(in.places) > 0 {
			return true
		}
	}
	return false
}

// TextMaySecret says whether a text that is no YAML may have been meant to be,
// to hold or to change a Secret. Names may be written with escapes.
func TextMaySecret(text string) bool {
	return strings.Contains(strings.ToLower(text), "secret") || strings.Contains(text, "stringData") || strings.Contains(text, "override") ||
		strings.Contains(text, "op") && strings.Contains(text, "path") || strings.Contains(text, `\`) ||
		slices.ContainsFunc(WrittenKinds(text), MaySecret)
}

var kindWritten = regexp.MustCompile(`(?i)\bkind["']?\s*:\s*["']?([^\s"',}]*)`)

// WrittenKinds are what seems to be the kinds in a text that is no YAML.
func WrittenKinds(text string) (kinds []string) {
	for _, m := range kindWritten.FindAllStringSubmatch(text, -1) {
		kinds = append(kinds, m[1])
	}
	return kinds
}

// DecodeAll gives what the documents of a text hold, up to the first mistake.
func DecodeAll(text []byte) ([]*yaml.Node, error) {
	decoder := document.NewDecoder(text)
	var roots []*yaml.Node
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return roots, err
		}
		roots = append(roots, root.Content...)
	}
}

func textOf(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	if n = document.Resolved(n); n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}
