// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/bounds"
)

var errUnplain = errors.New("not a value that JSON can hold")

// plain makes plain values of CEL's: map[string]any, []any, string, int64,
// float64, bool, nil. An absent optional is not present.
func plain(v ref.Val) (value any, present bool, err error) {
	var c conversion
	return c.plain(v)
}

// conversion counts what it makes. Values of CEL share their parts, so that a
// small one may be without end when it is written out.
type conversion struct {
	nodes, bytes int
	most         int // times what one value may hold; 0 is once
}

func (c *conversion) spend(bytes int) error {
	c.nodes++
	c.bytes += bytes
	if c.over() {
		return bounds.ErrTooLarge
	}
	return nil
}

func (c *conversion) add(size conversion) {
	c.nodes += size.nodes
	c.bytes += size.bytes
}

// sizeOf is what converting a plain value would count.
func sizeOf(value any) conversion {
	size := conversion{nodes: 1}
	switch v := value.(type) {
	case string:
		size.bytes = len(v)
	case []any:
		for _, item := range v {
			size.add(sizeOf(item))
		}
	case map[string]any:
		for key, item := range v {
			size.add(sizeOf(item))
			size.bytes += len(key)
		}
	}
	return size
}

func (c *conversion) over() bool {
	times := max(c.most, 1)
	return c.nodes > bounds.Parts*times || c.bytes > bounds.Text*times
}

func (c *conversion) plain(v ref.Val) (value any, present bool, err error) {
	text, isText := v.(types.String)
	if err := c.spend(len(text)); err != nil {
		return nil, false, err
	}
	if isText {
		return string(text), true, nil
	}
	switch v := v.(type) {
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
		if err := c.spend(base64.StdEncoding.EncodedLen(len(v))); err != nil {
			return nil, false, err
		}
		return base64.StdEncoding.EncodeToString(v), true, nil
	case types.Duration:
		return v.Duration.String(), true, nil
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), true, nil
	case *types.Optional:
		if !v.HasValue() {
			return nil, false, nil
		}
		return c.plain(v.GetValue())
	case *facts:
		value := v.Plain() // notes that it was read: its size decides too
		c.nodes--          // of itself, which its size has
		if c.add(v.size); c.over() {
			return nil, false, bounds.ErrTooLarge
		}
		return value, true, nil
	case traits.Mapper:
		return c.plainMap(v)
	case traits.Lister:
		return c.plainList(v)
	}
	if message, ok := v.Value().(proto.Message); ok {
		return c.plainMessage(message.ProtoReflect())
	}
	return nil, false, fmt.Errorf("%w: %s", errUnplain, v.Type().TypeName())
}

func (c *conversion) plainList(l traits.Lister) (any, bool, error) {
	size, _ := l.Size().(types.Int)
	list := make([]any, 0, min(int(size), bounds.Parts))
	for it := l.Iterator(); it.HasNext() == types.True; {
		item, present, err := c.plain(it.Next())
		if err != nil {
			return nil, false, err
		}
		if present {
			list = append(list, item)
		}
	}
	return list, true, nil
}

func (c *conversion) plainMap(m traits.Mapper) (any, bool, error) {
	keys := sortedKeys(m)
	plainMap := make(map[string]any, len(keys))
	for _, key := range keys {
		c.bytes += len(keyText(key))
		value, present, err := c.plain(m.Get(key))
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
func (c *conversion) plainMessage(m protoreflect.Message) (any, bool, error) {
	if m.Descriptor().FullName() == fieldMask {
		return c.plain(types.String(maskText(m)))
	}
	if m.Descriptor().FullName() == floatValue {
		return c.plain(types.Double(float(protoreflect.ValueOfMessage(m))))
	}
	if likeCEL[m.Descriptor().FullName()] {
		return c.plain(boundAdapter().NativeToValue(m.Interface()))
	}
	plainFields := map[string]any{}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if !m.Has(field) {
			continue
		}
		value, present, err := c.plainField(field, m.Get(field))
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", field.Name(), err)
		}
		if present {
			plainFields[string(field.Name())] = value
		}
	}
	return plainFields, true, nil
}

const fieldMask protoreflect.FullName = "google.protobuf.FieldMask"

// maskText is a FieldMask as it is written: its paths with commas between them.
func maskText(m protoreflect.Message) string {
	paths := m.Get(m.Descriptor().Fields().ByName("paths")).List()
	all := make([]string, paths.Len())
	for i := range all {
		all[i] = paths.Get(i).String()
	}
	return strings.Join(all, ",")
}

// likeCEL are the well-known types that CEL has values of its own for.
var likeCEL = map[protoreflect.FullName]bool{
	"google.protobuf.Duration": true, "google.protobuf.Timestamp": true,
	"google.protobuf.Struct": true, "google.protobuf.Value": true, "google.protobuf.ListValue": true,
	"google.protobuf.DoubleValue": true, "google.protobuf.FloatValue": true, "google.protobuf.BoolValue": true,
	"google.protobuf.Int64Value": true, "google.protobuf.UInt64Value": true, "google.protobuf.Int32Value": true,
	"google.protobuf.UInt32Value": true, "google.protobuf.StringValue": true, "google.protobuf.BytesValue": true,
}

func (c *conversion) plainField(field protoreflect.FieldDescriptor, value protoreflect.Value) (any, bool, error) {
	switch {
	case field.IsMap():
		return c.plainProtoMap(field.MapValue(), value.Map())
	case field.IsList():
		return c.plainProtoList(field, value.List())
	}
	return c.plainProtoValue(field, value)
}

func (c *conversion) plainProtoList(field protoreflect.FieldDescriptor, l protoreflect.List) (any, bool, error) {
	list := make([]any, l.Len())
	for i := range list {
		var err error
		if list[i], _, err = c.plainProtoValue(field, l.Get(i)); err != nil {
			return nil, false, err
		}
	}
	return list, true, nil
}

func (c *conversion) plainProtoMap(field protoreflect.FieldDescriptor, m protoreflect.Map) (any, bool, error) {
	mapping := make(map[string]any, m.Len())
	errs := map[string]error{}
	m.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		c.bytes += len(key.String())
		v, _, err := c.plainProtoValue(field, value)
		if err != nil {
			errs[key.String()] = err
		}
		mapping[key.String()] = v
		return true
	})
	if c.over() {
		return nil, false, bounds.ErrTooLarge // at which key depends on the order of visits
	}
	if len(errs) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(errs)))
		return nil, false, fmt.Errorf("%s: %w", first, errs[first])
	}
	return mapping, true, nil
}

// plainProtoValue is one value of a field. An enum is its name, or its number
// where it has none.
func (c *conversion) plainProtoValue(field protoreflect.FieldDescriptor, v protoreflect.Value) (any, bool, error) {
	switch native := v.Interface().(type) {
	case protoreflect.Message:
		return c.plainMessage(native)
	case protoreflect.EnumNumber:
		if known := field.Enum().Values().ByNumber(native); known != nil {
			return string(known.Name()), true, nil
		}
		return int64(native), true, nil
	case float32:
		return c.plain(types.Double(float(v)))
	default:
		return c.plain(types.DefaultTypeAdapter.NativeToValue(native))
	}
}

// ValueAt is the value at a path into a plain value; ok is false when the path ends
// early.
func ValueAt(value any, at []any) (any, bool) {
	for _, s := range at {
		switch v := value.(type) {
		case map[string]any:
			below, ok := v[fmt.Sprint(s)]
			if !ok {
				return nil, false
			}
			value = below
		case []any:
			i, ok := s.(int)
			if !ok || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}
