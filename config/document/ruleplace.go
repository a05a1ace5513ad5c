// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// problem is at the value on the path: at its key where it is a mapping or a
// list, and at the nearest key above where it is not there.
func (c *ruleCheck) problem(path []step, ofKey bool, format string, args ...any) {
	at, _ := c.doc.find(path, ofKey)
	p := c.doc.Problem(at, CodeRule, format, args...)
	if len(path) > 0 {
		p.Message = pathText(path) + ": " + p.Message
	}
	c.problems.Add(p)
}

// find returns where a problem of the value on the path is shown, and the
// value, nil when it is not there.
func (d *Document) find(path []step, ofKey bool) (at, value *yaml.Node) {
	at, value = d.Node, d.Node
	for i, s := range path {
		key, next := s.below(value)
		if next == nil {
			return at, nil
		}
		switch {
		case key == nil:
			at = next
		case next.Kind == yaml.ScalarNode && !(ofKey && i == len(path)-1):
			at = next
		default:
			at = key
		}
		value = next
	}
	return at, value
}

// below is the key and the value at the step in a node; a list has no keys.
func (s step) below(n *yaml.Node) (key, value *yaml.Node) {
	switch {
	case s.item && n.Kind == yaml.SequenceNode && s.index < len(n.Content):
		return nil, n.Content[s.index]
	case s.item || n.Kind != yaml.MappingNode:
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == s.key {
			return n.Content[i], n.Content[i+1]
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 { // 0x1 is the key 1
		if v, err := strconv.ParseInt(n.Content[i].Value, 0, 64); err == nil && strconv.FormatInt(v, 10) == s.key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// text is what a violation says. A standard rule says what is wanted, so what
// was got is added. An expression may put values into its text: where one of
// them is secret or comes from a file, only the rule's name is said, unless the
// text is written in the .proto as it is.
func (c *ruleCheck) text(v *protovalidate.Violation, path []step) string {
	_, value := c.doc.find(path, false)
	secret := c.secret(path, value)
	own := isOwn(v.Proto.GetRule().GetElements())
	text := oneLine(v.Proto.GetMessage())
	if !own && isFloatRule(v.Proto.GetRule().GetElements()) {
		text = shortestIn(text)
	}
	switch {
	case own && secret && !c.rules.texts[v.Proto.GetMessage()], text == "":
		return fmt.Sprintf("rule %q is broken", Shorten(oneLine(v.Proto.GetRuleId())))
	case value == nil && isScalarRule(v.Proto.GetRule().GetElements()):
		return text + ": the field is missing; write it, or let the .proto say `optional`, which lets it be left out"
	case own, secret, value == nil, v.Proto.GetRuleId() == "required":
		return text
	case v.Proto.GetForKey():
		return text + ", got the key " + strconv.Quote(Shorten(path[len(path)-1].key))
	case value.Kind == yaml.ScalarNode:
		return text + ", got " + describe(value)
	}
	return text
}

// isScalarRule says whether a rule is about a text or a number. Without presence in the .proto,
// one that is missing is judged as empty.
func isScalarRule(rule []*validate.FieldPathElement) bool {
	scalars := []string{"string", "bytes", "int32", "int64", "uint32", "uint64", "float", "double"}
	return len(rule) > 1 && slices.Contains(scalars, rule[0].GetFieldName())
}

// isFloatRule says whether a rule compares numbers of 32 bits.
func isFloatRule(rule []*validate.FieldPathElement) bool {
	return slices.ContainsFunc(rule, func(e *validate.FieldPathElement) bool { return e.GetFieldName() == "float" })
}

var numberText = regexp.MustCompile(`[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?`)

// shortestIn writes the numbers of 32 bits in a text as people do.
func shortestIn(text string) string {
	return numberText.ReplaceAllStringFunc(text, func(digits string) string {
		wide, err := strconv.ParseFloat(digits, 64)
		if err != nil || float64(float32(wide)) != wide {
			return digits
		}
		return strconv.FormatFloat(Shortest(float32(wide)), 'g', -1, 64)
	})
}

// isOwn says whether a rule is an expression of the kind's, not one of
// validate.proto's. That of a message has no path.
func isOwn(rule []*validate.FieldPathElement) bool {
	if len(rule) == 0 {
		return true
	}
	last := rule[len(rule)-1].GetFieldName()
	return last == "cel" || last == "cel_expression" || strings.HasPrefix(last, "[") // an extension
}

// secret says whether a value on the path, or below it, must be in no message.
func (c *ruleCheck) secret(path []step, value *yaml.Node) bool {
	whole := value == nil || value.Kind != yaml.ScalarNode // an expression sees all of it
	return redactedPath(c.rules.envelope, path) || whole && c.rules.secrets || value != nil && namesFile(value)
}

// redactedPath says whether a field on the path is marked debug_redact.
func redactedPath(message protoreflect.MessageDescriptor, path []step) bool {
	var field protoreflect.FieldDescriptor
	for _, s := range path {
		if field != nil && (field.IsList() && s.item || field.IsMap()) {
			if field.IsMap() {
				message = field.MapValue().Message()
			}
			field = nil
			continue
		}
		if message == nil {
			break
		}
		if field = message.Fields().ByName(protoreflect.Name(s.key)); field == nil {
			break
		}
		if IsSecret(field) {
			return true
		}
		message = field.Message()
	}
	return false
}

// namesFile says whether the value is a fromFile or holds one.
func namesFile(n *yaml.Node) bool {
	if fileNamed(n) != nil {
		return true
	}
	for _, below := range n.Content {
		if below.Kind != yaml.ScalarNode && namesFile(below) {
			return true
		}
	}
	return false
}
