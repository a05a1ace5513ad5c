// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"cel.dev/cel-go/cel"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/swell-sh/swell/config/bounds"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Rules are the rules of buf/validate/validate.proto that a kind's messages
// carry, compiled. They are safe for concurrent use. The nil Rules are those
// of messages without any, and cost nothing.
type Rules struct {
	envelope  protoreflect.MessageDescriptor
	validator protovalidate.Validator                                  // nil where there are required fields alone
	required  map[protoreflect.FullName][]protoreflect.FieldDescriptor // by the message that has them
	loops     map[protoreflect.FullName][]*loop                        // by the message that has them
	texts     map[string]bool                                          // what expressions may say that is written in the .proto
	secrets   bool                                                     // a field somewhere below is marked as secret
}

// CompileRules compiles the rules of an envelope and of the messages below it.
// declared is the message that the envelope was made of. Rules that do not
// compile are problems of the kind at the line of their message or field.
func CompileRules(envelope, declared protoreflect.MessageDescriptor) (*Rules, Problems) {
	messages := reachable(envelope)
	required := requiredFields(messages)
	if !slices.ContainsFunc(messages, hasRules) {
		if len(required) > 0 {
			return &Rules{envelope: envelope, required: required}, nil
		}
		return nil, nil
	}
	c := ruleCompiler{declared: declared, envs: map[protoreflect.FullName]*cel.Env{}, rules: &Rules{envelope: envelope, required: required, loops: map[protoreflect.FullName][]*loop{}, texts: map[string]bool{}}}
	extensions := c.extensions(envelope.ParentFile())
	if len(c.problems) > 0 {
		return nil, c.problems.Sorted() // nothing of them may run
	}
	for _, m := range messages {
		c.expressions(m)
	}
	if len(c.problems) > 0 {
		return nil, c.problems.Sorted()
	}
	options := []protovalidate.ValidatorOption{
		protovalidate.WithExtensionTypeResolver(extensions),
		protovalidate.WithMessageDescriptors(envelope),
		protovalidate.WithNowFunc(func() *timestamppb.Timestamp { return &timestamppb.Timestamp{} }), // no rule may use it
	}
	if slices.ContainsFunc(messages, hasRulesOfWrappers) {
		options = append(options, protovalidate.WithDisableNativeRules())
	}
	validator, err := protovalidate.New(options...)
	if err != nil {
		c.problem(envelope, "rules: %s", err)
		return nil, c.problems
	}
	c.rules.validator = validator
	for _, m := range messages {
		c.try(m)
	}
	if len(c.problems) > 0 {
		return nil, c.problems.Sorted()
	}
	return c.rules, nil
}

// reachable are the message and those of its fields, all the way down, each
// once.
func reachable(message protoreflect.MessageDescriptor) []protoreflect.MessageDescriptor {
	seen := map[protoreflect.MessageDescriptor]bool{message: true}
	all := []protoreflect.MessageDescriptor{message}
	for i := 0; i < len(all); i++ {
		fields := all[i].Fields()
		for j := range fields.Len() {
			field := fields.Get(j)
			if field.IsMap() {
				field = field.MapValue()
			}
			if m := field.Message(); m != nil && !seen[m] {
				seen[m] = true
				all = append(all, m)
			}
		}
	}
	return all
}

// hasRules says whether the message, one of its oneofs or of its fields has a
// rule.
func hasRules(m protoreflect.MessageDescriptor) bool {
	if !knowsRules(m.ParentFile()) {
		return false
	}
	if rules, _ := protovalidate.ResolveMessageRules(m); rules != nil {
		return true
	}
	for i := range m.Oneofs().Len() {
		if rules, _ := protovalidate.ResolveOneofRules(m.Oneofs().Get(i)); rules != nil {
			return true
		}
	}
	for i := range m.Fields().Len() {
		if rules, _ := protovalidate.ResolveFieldRules(m.Fields().Get(i)); rules != nil {
			return true
		}
	}
	return false
}

// hasRulesOfWrappers says whether a list or a map of wrappers, such as
// google.protobuf.Int64Value, has rules of its items or values. The rules that
// protovalidate 1.4.0 has in Go take such an item for the number in it, and panic
// or give a wrong verdict; those in CEL do not.
func hasRulesOfWrappers(m protoreflect.MessageDescriptor) bool {
	if !knowsRules(m.ParentFile()) {
		return false
	}
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		rules, _ := protovalidate.ResolveFieldRules(field)
		switch {
		case field.IsMap() && isWrapper(field.MapValue()) && rules.GetMap().HasValues():
			return true
		case field.IsList() && isWrapper(field) && rules.GetRepeated().HasItems():
			return true
		}
	}
	return false
}

func isWrapper(field protoreflect.FieldDescriptor) bool {
	m := field.Message()
	return m != nil && m.ParentFile().Path() == "google/protobuf/wrappers.proto"
}

// knowsRules says whether the file imports buf/validate/validate.proto, itself
// or through others. In one that does not, the numbers of its options may mean
// something else.
func knowsRules(file protoreflect.FileDescriptor) bool {
	found := false
	eachFile(file, map[string]bool{}, func(f protoreflect.FileDescriptor) {
		found = found || f.Path() == rulesProto
	})
	return found
}

// eachFile calls do for the file and everything it imports, once each.
func eachFile(file protoreflect.FileDescriptor, seen map[string]bool, do func(protoreflect.FileDescriptor)) {
	if seen[file.Path()] {
		return
	}
	seen[file.Path()] = true
	do(file)
	for i := range file.Imports().Len() {
		eachFile(file.Imports().Get(i).FileDescriptor, seen, do)
	}
}

type ruleCompiler struct {
	declared protoreflect.MessageDescriptor
	rules    *Rules
	envs     map[protoreflect.FullName]*cel.Env // by the message that the rule is of
	problems Problems
}

func (c *ruleCompiler) problem(of protoreflect.Descriptor, format string, args ...any) {
	// An envelope has no lines of its own: the message declared by the kind does.
	if of.ParentFile() == c.rules.envelope.ParentFile() {
		if _, isField := of.(protoreflect.FieldDescriptor); isField && c.declared.Fields().ByName(of.Name()) != nil {
			of = c.declared.Fields().ByName(of.Name())
		} else {
			of = c.declared
		}
	}
	c.problems = append(c.problems, Problem{
		Position: DeclaredAt(of),
		Code:     CodeKind,
		Message:  oneLine(string(of.Name()) + ": " + fmt.Sprintf(format, args...)),
	})
}

// oneLine is a text without line breaks, and printable.
func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' })
	return Printable(strings.Join(lines, " "))
}

// extensions are the extensions of all files: rules that a kind defines for
// itself are among them. Their expressions must be bounded by their own length,
// as they are run while rules are compiled.
func (c *ruleCompiler) extensions(file protoreflect.FileDescriptor) *protoregistry.Types {
	found := new(protoregistry.Types)
	eachFile(file, map[string]bool{}, func(f protoreflect.FileDescriptor) {
		c.addExtensions(found, f.Extensions())
		for i := range f.Messages().Len() {
			for _, m := range nested(f.Messages().Get(i)) {
				c.addExtensions(found, m.Extensions())
			}
		}
	})
	return found
}

// nested are the message and those declared in it.
func nested(m protoreflect.MessageDescriptor) []protoreflect.MessageDescriptor {
	all := []protoreflect.MessageDescriptor{m}
	for i := range m.Messages().Len() {
		all = append(all, nested(m.Messages().Get(i))...)
	}
	return all
}

func (c *ruleCompiler) addExtensions(to *protoregistry.Types, extensions protoreflect.ExtensionDescriptors) {
	for i := range extensions.Len() {
		extension := extensions.Get(i)
		_ = to.RegisterExtension(dynamicpb.NewExtensionType(extension)) // the linker has refused doubles
		if !knowsRules(extension.ParentFile()) || extension.ParentFile().Path() == rulesProto {
			continue
		}
		predefined, _ := protovalidate.ResolvePredefinedRules(extension)
		for _, rule := range predefined.GetCel() {
			c.text(rule)
			parsed, issues := ruleEnvironment().Parse(rule.GetExpression())
			if issues.Err() != nil {
				c.problem(extension, "rule %q: %s", ruleName(rule), firstIssue(issues))
				continue
			}
			if bounds.HasLoop(parsed) {
				c.problem(extension, "rule %q: a predefined rule may not go over lists or maps", ruleName(rule))
			}
			if err := refuse(parsed); err != nil {
				c.problem(extension, "rule %q: %s", ruleName(rule), err)
			}
		}
	}
}

// expressions compiles the message's own expressions, to refuse those that
// read the clock and to know those with loops.
func (c *ruleCompiler) expressions(m protoreflect.MessageDescriptor) {
	if !knowsRules(m.ParentFile()) {
		return
	}
	rules, _ := protovalidate.ResolveMessageRules(m)
	c.add(m, m, onMessage, rules.GetCel(), rules.GetCelExpression())
	c.rules.texts["exactly one field is required in oneof"] = true // protovalidate's own texts
	for _, oneof := range rules.GetOneof() {
		names := strings.Join(oneof.GetFields(), ", ")
		c.rules.texts["only one of "+names+" can be set"] = true
		c.rules.texts["one of "+names+" must be set"] = true
	}
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		rules, _ := protovalidate.ResolveFieldRules(field)
		c.add(m, field, onField, rules.GetCel(), rules.GetCelExpression())
		if items := rules.GetRepeated().GetItems(); items != nil && field.IsList() {
			c.add(m, field, onItems, items.GetCel(), items.GetCelExpression())
			c.clock(field, items)
		}
		if keys := rules.GetMap().GetKeys(); keys != nil && field.IsMap() {
			c.add(m, field, onKeys, keys.GetCel(), keys.GetCelExpression())
		}
		if values := rules.GetMap().GetValues(); values != nil && field.IsMap() {
			c.add(m, field, onValues, values.GetCel(), values.GetCelExpression())
			c.clock(field, values)
		}
		c.clock(field, rules)
	}
}

// clock refuses the standard rules that compare with the present time: the
// same commit would be good today and bad tomorrow.
func (c *ruleCompiler) clock(field protoreflect.FieldDescriptor, rules *validate.FieldRules) {
	t := rules.GetTimestamp()
	if t.GetLtNow() || t.GetGtNow() || t.HasWithin() {
		c.problem(field, "a rule that reads the clock: the same spec must be good at any time")
	}
}

// try finds what protovalidate could not compile: it keeps such an error until
// the rule is used, so each is used once, on an empty message.
func (c *ruleCompiler) try(m protoreflect.MessageDescriptor) {
	if !knowsRules(m.ParentFile()) {
		return
	}
	before := len(c.problems)
	all := []protoreflect.Descriptor{m}
	for i := range m.Fields().Len() {
		all = append(all, m.Fields().Get(i))
		c.rules.secrets = c.rules.secrets || IsSecret(m.Fields().Get(i))
	}
	halve(all, func(some map[protoreflect.Descriptor]bool, only protoreflect.Descriptor) bool {
		filter := protovalidate.FilterFunc(func(_ protoreflect.Message, d protoreflect.Descriptor) bool { return some[d] })
		err := c.rules.validator.Validate(dynamicpb.NewMessage(m), protovalidate.WithFilter(filter))
		if err == nil || errors.As(err, new(*protovalidate.ValidationError)) {
			return true
		}
		if broken := (*protovalidate.CompilationError)(nil); only != nil && errors.As(err, &broken) {
			c.problem(only, "rules: %s", strings.TrimPrefix(broken.Error(), "compilation error: "))
		}
		return false
	})
	if len(c.problems) == before {
		return
	}
	// A field of a message that does not compile says so again.
	first := c.problems[:before]
	for _, p := range c.problems[before:] {
		if !strings.Contains(p.Message, "failed to compile embedded type") {
			first = append(first, p)
		}
	}
	c.problems = first
}

// halve tries all descriptors together, and the halves of those that failed,
// down to single ones, for which only is set: to try each one alone would take
// the square of their number.
func halve(all []protoreflect.Descriptor, try func(some map[protoreflect.Descriptor]bool, only protoreflect.Descriptor) bool) {
	some := make(map[protoreflect.Descriptor]bool, len(all))
	for _, d := range all {
		some[d] = true
	}
	if len(all) == 1 {
		try(some, all[0])
	} else if !try(some, nil) {
		halve(all[:len(all)/2], try)
		halve(all[len(all)/2:], try)
	}
}

// Check returns what the message, which was decoded from the document, breaks,
// each at the line of its field, or of the nearest one above that is there.
func (r *Rules) Check(doc *Document, message protoreflect.Message) Problems {
	if r == nil {
		return nil
	}
	c := ruleCheck{rules: r, doc: doc}
	c.message(message, nil)
	c.written(message, nil)
	spec := message.Descriptor().Fields().ByName("spec")
	if spec != nil && spec.Message() != nil && !message.Has(spec) { // none is an empty one
		empty, at := dynamicpb.NewMessage(spec.Message()), []step{{key: "spec"}}
		if !ignored(spec) {
			c.message(empty, at)
		}
		c.written(empty, at)
	}
	return c.problems.Sorted()
}

// ignored says whether no rule holds for the field, nor for what is in it.
func ignored(field protoreflect.FieldDescriptor) bool {
	rules, _ := protovalidate.ResolveFieldRules(field)
	return knowsRules(field.ParentFile()) && rules.GetIgnore() == validate.Ignore_IGNORE_ALWAYS
}

type ruleCheck struct {
	rules    *Rules
	doc      *Document
	problems Problems
}

func (c *ruleCheck) message(m protoreflect.Message, at []step) {
	if c.rules.validator == nil || !c.charge(m, at) {
		return
	}
	err := c.rules.validator.Validate(m.Interface())
	if err == nil || c.violations(err, at) {
		return
	}
	// A rule that failed on a value hides all others: look at each alone.
	visit(m, at, func(m protoreflect.Message, at []step) {
		all := []protoreflect.Descriptor{m.Descriptor()}
		for i := range m.Descriptor().Oneofs().Len() {
			all = append(all, m.Descriptor().Oneofs().Get(i))
		}
		for i := range m.Descriptor().Fields().Len() {
			all = append(all, m.Descriptor().Fields().Get(i))
		}
		halve(all, func(some map[protoreflect.Descriptor]bool, only protoreflect.Descriptor) bool {
			return c.alone(m, some, only, at)
		})
	})
}

// alone checks the rules of one message, of its oneofs or of its fields, and
// not those of what is in them. It returns false when one of them could not be
// evaluated; only is set when there is just one.
func (c *ruleCheck) alone(m protoreflect.Message, some map[protoreflect.Descriptor]bool, only protoreflect.Descriptor, at []step) bool {
	filter := protovalidate.FilterFunc(func(of protoreflect.Message, d protoreflect.Descriptor) bool {
		return some[d] && of.Interface() == m.Interface()
	})
	err := c.rules.validator.Validate(m.Interface(), protovalidate.WithFilter(filter))
	if err == nil || c.violations(err, at) {
		return true
	}
	if only != nil {
		if field, ok := only.(protoreflect.FieldDescriptor); ok {
			at = append(slices.Clone(at), step{key: string(field.Name())})
		}
		// Which value it was, and what of it stands in the error, is not known.
		c.problem(at, false, "a rule of %s cannot be evaluated for this value", only.FullName())
	}
	return false
}

// violations turns the error of a validation into problems; false when it is
// of another sort.
func (c *ruleCheck) violations(err error, at []step) bool {
	var broken *protovalidate.ValidationError
	if !errors.As(err, &broken) {
		return false
	}
	for _, v := range broken.Violations {
		path := slices.Clone(at)
		for _, e := range v.Proto.GetField().GetElements() {
			path = append(path, steps(e)...)
		}
		c.problem(path, v.Proto.GetForKey(), "%s", c.text(v, path))
	}
	return true
}

// steps are those of one element of a violation's path.
func steps(e *validate.FieldPathElement) []step {
	s := []step{{key: e.GetFieldName()}}
	switch e.WhichSubscript() {
	case validate.FieldPathElement_Index_case:
		s = append(s, step{index: int(e.GetIndex()), item: true})
	case validate.FieldPathElement_StringKey_case:
		s = append(s, step{key: e.GetStringKey()})
	case validate.FieldPathElement_BoolKey_case:
		s = append(s, step{key: fmt.Sprint(e.GetBoolKey())})
	case validate.FieldPathElement_IntKey_case:
		s = append(s, step{key: fmt.Sprint(e.GetIntKey())})
	case validate.FieldPathElement_UintKey_case:
		s = append(s, step{key: fmt.Sprint(e.GetUintKey())})
	}
	return s
}

// visit calls do for the message and every one below it, in the order of
// fields and of keys.
func visit(m protoreflect.Message, at []step, do func(protoreflect.Message, []step)) {
	do(m, at)
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if !m.Has(field) {
			continue
		}
		below := append(slices.Clone(at), step{key: string(field.Name())})
		switch {
		case field.IsMap() && field.MapValue().Message() != nil:
			values := m.Get(field).Map()
			for _, key := range sortedKeys(values) {
				visit(values.Get(key).Message(), append(slices.Clone(below), step{key: key.String()}), do)
			}
		case field.IsList() && field.Message() != nil:
			for j := range m.Get(field).List().Len() {
				visit(m.Get(field).List().Get(j).Message(), append(slices.Clone(below), step{index: j, item: true}), do)
			}
		case !field.IsMap() && field.Message() != nil:
			visit(m.Get(field).Message(), below, do)
		}
	}
}

func sortedKeys(m protoreflect.Map) []protoreflect.MapKey {
	keys := map[string]protoreflect.MapKey{}
	m.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		keys[key.String()] = key
		return true
	})
	sorted := make([]protoreflect.MapKey, 0, len(keys))
	for _, text := range slices.Sorted(maps.Keys(keys)) {
		sorted = append(sorted, keys[text])
	}
	return sorted
}
