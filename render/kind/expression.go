// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/schema"
)

// identifier is a name that `let` and `each` may bind.
var identifier = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// environment is the names and functions that expressions may use.
type environment struct {
	cel   *cel.Env
	names map[string]bool
}

func newEnvironment(envelope protoreflect.MessageDescriptor) (*environment, error) {
	options := append(orderedMacros(),
		cel.OptionalTypes(),
		ext.Strings(), ext.Lists(), ext.Encoders(),
		cel.Function("hash", cel.Overload("hash_dyn", []*cel.Type{cel.DynType}, cel.StringType, cel.UnaryBinding(hash))),
		cel.Variable("self", cel.ObjectType(string(envelope.FullName()))),
		cel.Variable("target", cel.ObjectType("swell.bound.Target")),
		cel.Variable("unit", cel.ObjectType("swell.bound.Unit")),
	)
	seen := map[string]bool{}
	for _, root := range []protoreflect.FileDescriptor{envelope.ParentFile(), boundFile()} {
		options = appendFiles(options, root, seen)
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, err
	}
	return &environment{cel: env, names: map[string]bool{"self": true, "target": true, "unit": true, "data": true}}, nil
}

// appendFiles registers a file after all that it imports. Google's well-known
// types are CEL's own.
func appendFiles(options []cel.EnvOption, file protoreflect.FileDescriptor, seen map[string]bool) []cel.EnvOption {
	if seen[file.Path()] || strings.HasPrefix(file.Path(), "google/protobuf/") {
		return options
	}
	seen[file.Path()] = true
	imports := file.Imports()
	for i := range imports.Len() {
		options = appendFiles(options, imports.Get(i).FileDescriptor, seen)
	}
	return append(options, cel.TypeDescs(file))
}

// reserved words of CEL cannot be names.
var reserved = map[string]bool{"as": true, "break": true, "const": true, "continue": true, "else": true, "false": true, "for": true,
	"function": true, "if": true, "import": true, "in": true, "let": true, "loop": true, "namespace": true, "null": true,
	"package": true, "return": true, "true": true, "var": true, "void": true, "while": true}

// free says whether `let` and `each` may bind the name.
func (e *environment) free(name string) bool {
	return identifier.MatchString(name) && !reserved[name] && !e.names[name]
}

// with is the environment with one more name.
func (e *environment) with(name string, typ *cel.Type) (*environment, error) {
	extended, err := e.cel.Extend(cel.Variable(name, typ))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{name: true}
	for n := range e.names {
		names[n] = true
	}
	return &environment{cel: extended, names: names}, nil
}

// expression is one compiled CEL expression.
type expression struct {
	text    string
	name    string // when the expression is just a name
	at      config.Position
	typ     *cel.Type
	program cel.Program
}

// compile checks and plans an expression. The error is one line, with the
// column inside the expression where CEL knows it.
func (e *environment) compile(text string, at config.Position) (*expression, error) {
	checked, issues := e.cel.Compile(text)
	if err := issues.Err(); err != nil {
		first := issues.Errors()[0]
		message, _, _ := strings.Cut(first.Message, "\n")
		return nil, fmt.Errorf("%q: %s", text, strings.TrimSpace(message))
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if loops(checked) {
		options = append(options, cel.CostLimit(costLimit))
	}
	program, err := e.cel.Program(checked, options...)
	if err != nil {
		return nil, fmt.Errorf("%q: %s", text, oneLine(err))
	}
	x := &expression{text: text, at: at, typ: checked.OutputType(), program: program}
	if e.names[text] {
		x.name = text
	}
	return x, nil
}

// costLimit bounds an expression with a loop in CEL's own unit, about one for
// each step. What it allows takes well under a second. An expression without a
// loop is bounded by its own length; counting would only slow it down.
const costLimit = 1_000_000

// loops says whether the expression goes over a list or a map.
func loops(checked *cel.Ast) bool {
	found := false
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.ComprehensionKind
	}))
	return found
}

func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (x *expression) wantBool() error {
	if x.typ.Kind() != cel.BoolKind && x.typ.Kind() != cel.DynKind {
		return fmt.Errorf("%q: want a bool, got %s", x.text, x.typ)
	}
	return nil
}

// itemType is what `each` binds: a list's item or a map's key; nothing for an
// optional that is absent.
func (x *expression) itemType() (*cel.Type, error) {
	switch x.typ.Kind() {
	case cel.ListKind, cel.MapKind:
		return x.typ.Parameters()[0], nil
	case cel.DynKind:
		return cel.DynType, nil
	case cel.OpaqueKind:
		if isOptional(x.typ) {
			return (&expression{text: x.text, typ: x.typ.Parameters()[0]}).itemType()
		}
	}
	return nil, fmt.Errorf("%q: want a list or a map, got %s", x.text, x.typ)
}

// fits says whether results of the expression can have a form. What is only
// known at run time is checked there.
func (x *expression) fits(t *schema.Type) error {
	if typ := mismatch(x.typ, t); typ != nil {
		return fmt.Errorf("%q: want %s, got %s", x.text, t.Form, typ)
	}
	return nil
}

func isOptional(typ *cel.Type) bool {
	return typ.Kind() == cel.OpaqueKind && typ.TypeName() == "optional_type"
}

func mismatch(typ *cel.Type, t *schema.Type) *cel.Type {
	if t == nil || t.Form == schema.Any {
		return nil
	}
	if isOptional(typ) {
		return mismatch(typ.Parameters()[0], t)
	}
	var ok bool
	switch typ.Kind() {
	case cel.StringKind, cel.TimestampKind, cel.DurationKind:
		ok = t.Form == schema.String || t.Form == schema.IntOrString || t.Form == schema.Quantity || t.Form == schema.Base64
	case cel.BytesKind:
		ok = t.Form == schema.Base64 || t.Form == schema.String
	case cel.IntKind, cel.UintKind:
		ok = t.Form == schema.Integer || t.Form == schema.Number || t.Form == schema.IntOrString || t.Form == schema.Quantity
	case cel.DoubleKind:
		ok = t.Form == schema.Number || t.Form == schema.Quantity
	case cel.BoolKind:
		ok = t.Form == schema.Boolean
	case cel.ListKind:
		if t.Form == schema.List {
			return mismatch(typ.Parameters()[0], t.Elem)
		}
	case cel.MapKind:
		if t.Form == schema.Map {
			return mismatch(typ.Parameters()[1], t.Elem)
		}
		ok = t.Form == schema.Object
	case cel.StructKind:
		ok = t.Form == schema.Map || t.Form == schema.Object
	default: // dyn, null, errors: known only at run time
		ok = true
	}
	if ok {
		return nil
	}
	return typ
}

// value evaluates the expression to plain values: map[string]any, []any,
// string, int64, float64, bool, nil. An absent optional is not present.
func (x *expression) value(scope *scope) (value any, present bool, err error) {
	if x.name != "" {
		return scope.plain(x.name)
	}
	result, _, err := x.program.Eval(scope)
	if err != nil {
		return nil, false, fmt.Errorf("%q: %s", x.text, oneLine(err))
	}
	if value, present, err = plain(result); err != nil {
		return nil, false, fmt.Errorf("%q: %s", x.text, err)
	}
	return value, present, nil
}

var errUnplain = errors.New("not a value that JSON can hold")

func plain(v ref.Val) (value any, present bool, err error) {
	switch v := v.(type) {
	case types.String:
		return string(v), true, nil
	case types.Int:
		return int64(v), true, nil
	case types.Bool:
		return bool(v), true, nil
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, false, fmt.Errorf("%w: an integer above %d", errUnplain, math.MaxInt64)
		}
		return int64(v), true, nil
	case types.Double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, false, fmt.Errorf("%w: %g", errUnplain, float64(v))
		}
		return float64(v), true, nil
	case types.Null:
		return nil, true, nil
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), true, nil
	case types.Duration:
		return v.Duration.String(), true, nil
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), true, nil
	case *types.Optional:
		if !v.HasValue() {
			return nil, false, nil
		}
		return plain(v.GetValue())
	case traits.Mapper:
		return plainMap(v)
	case traits.Lister:
		return plainList(v)
	}
	if message, ok := v.Value().(proto.Message); ok {
		return plainMessage(message.ProtoReflect())
	}
	return nil, false, fmt.Errorf("%w: %s", errUnplain, v.Type().TypeName())
}

func plainList(l traits.Lister) (any, bool, error) {
	size, _ := l.Size().(types.Int)
	list := make([]any, 0, int(size))
	for it := l.Iterator(); it.HasNext() == types.True; {
		item, present, err := plain(it.Next())
		if err != nil {
			return nil, false, err
		}
		if present {
			list = append(list, item)
		}
	}
	return list, true, nil
}

func plainMap(m traits.Mapper) (any, bool, error) {
	keys := sortedKeys(m)
	plainMap := make(map[string]any, len(keys))
	for _, key := range keys {
		value, present, err := plain(m.Get(key))
		if err != nil {
			return nil, false, err
		}
		if !present {
			continue
		}
		text := keyText(key)
		if _, taken := plainMap[text]; taken {
			return nil, false, fmt.Errorf("%w: two keys that both read %q", errUnplain, text)
		}
		plainMap[text] = value
	}
	return plainMap, true, nil
}

// plainMessage is the fields of a message that are set, under their names, or
// what CEL takes a well-known type for.
func plainMessage(m protoreflect.Message) (any, bool, error) {
	if likeCEL[m.Descriptor().FullName()] {
		return plain(boundAdapter().NativeToValue(m.Interface()))
	}
	plainFields := map[string]any{}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if !m.Has(field) {
			continue
		}
		value, present, err := plainField(field, m.Get(field))
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", field.Name(), err)
		}
		if present {
			plainFields[string(field.Name())] = value
		}
	}
	return plainFields, true, nil
}

// likeCEL are the well-known types that CEL has values of its own for.
var likeCEL = map[protoreflect.FullName]bool{
	"google.protobuf.Duration": true, "google.protobuf.Timestamp": true,
	"google.protobuf.Struct": true, "google.protobuf.Value": true, "google.protobuf.ListValue": true,
	"google.protobuf.DoubleValue": true, "google.protobuf.FloatValue": true, "google.protobuf.BoolValue": true,
	"google.protobuf.Int64Value": true, "google.protobuf.UInt64Value": true, "google.protobuf.Int32Value": true,
	"google.protobuf.UInt32Value": true, "google.protobuf.StringValue": true, "google.protobuf.BytesValue": true,
}

func plainField(field protoreflect.FieldDescriptor, value protoreflect.Value) (any, bool, error) {
	switch {
	case field.IsMap():
		return plainProtoMap(field.MapValue(), value.Map())
	case field.IsList():
		return plainProtoList(field, value.List())
	}
	return plainProtoValue(field, value)
}

func plainProtoList(field protoreflect.FieldDescriptor, l protoreflect.List) (any, bool, error) {
	list := make([]any, l.Len())
	for i := range list {
		var err error
		if list[i], _, err = plainProtoValue(field, l.Get(i)); err != nil {
			return nil, false, err
		}
	}
	return list, true, nil
}

func plainProtoMap(field protoreflect.FieldDescriptor, m protoreflect.Map) (any, bool, error) {
	mapping := make(map[string]any, m.Len())
	errs := map[string]error{}
	m.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		v, _, err := plainProtoValue(field, value)
		if err != nil {
			errs[key.String()] = err
		}
		mapping[key.String()] = v
		return true
	})
	if len(errs) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(errs)))
		return nil, false, fmt.Errorf("%s: %w", first, errs[first])
	}
	return mapping, true, nil
}

// plainProtoValue is one value of a field. An enum is its name, or its number
// where it has none.
func plainProtoValue(field protoreflect.FieldDescriptor, v protoreflect.Value) (any, bool, error) {
	switch native := v.Interface().(type) {
	case protoreflect.Message:
		return plainMessage(native)
	case protoreflect.EnumNumber:
		if known := field.Enum().Values().ByNumber(native); known != nil {
			return string(known.Name()), true, nil
		}
		return int64(native), true, nil
	default:
		return plain(types.DefaultTypeAdapter.NativeToValue(native))
	}
}

// text is a value inside a longer string.
func text(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		if size := math.Abs(v); size == 0 || size >= 1e-6 && size < 1e21 {
			return strconv.FormatFloat(v, 'f', -1, 64), nil // as in JSON that people write
		}
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", fmt.Errorf("want a value that can stand inside a text, got %s", schema.Describe(value))
}

// hashDigits is the length of hash(x): 40 bits tell apart what one unit ever
// renders, and leave room in a name of 63.
const hashDigits = 10

// hash is the function of that name: the first hexadecimal digits of the
// SHA-256 of a value's canonical JSON.
func hash(v ref.Val) ref.Val {
	value, _, err := plain(v)
	if err != nil {
		return types.NewErr("hash: %s", err)
	}
	sum := sha256.Sum256(schema.AppendJSON(nil, value))
	return types.String(hex.EncodeToString(sum[:])[:hashDigits])
}
