// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Plain is a mapping of CEL that is held as a plain value.
type Plain interface {
	ref.Val
	// Plain is the whole mapping, which is not changed.
	Plain() map[string]any
}

// weight is what a value holds, written out: one for each part and one for
// each 64 bytes of text.
type weight struct{ left int }

// weigh is the weight of values, or an error as soon as it is above Parts.
func weigh(values ...ref.Val) (int, error) {
	w := weight{left: Parts}
	for _, v := range values {
		if !w.add(v) {
			return Parts, ErrTooLarge
		}
	}
	return Parts - w.left, nil
}

func (w *weight) spend(text int) bool {
	w.left -= 1 + text/64
	return w.left >= 0
}

func (w *weight) add(v ref.Val) bool {
	switch v := v.(type) {
	case types.String:
		return w.spend(len(v))
	case types.Bytes:
		return w.spend(len(v))
	case Plain:
		return w.native(v.Plain())
	case *types.Optional:
		return w.spend(0) && (!v.HasValue() || w.add(v.GetValue()))
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			if !w.add(key) || !w.add(v.Get(key)) {
				return false
			}
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if !w.add(it.Next()) {
				return false
			}
		}
	default:
		if message, ok := v.Value().(proto.Message); ok {
			return w.message(message.ProtoReflect())
		}
	}
	return w.spend(0)
}

func (w *weight) native(value any) bool {
	switch v := value.(type) {
	case string:
		return w.spend(len(v))
	case []any:
		for _, item := range v {
			if !w.native(item) {
				return false
			}
		}
	case map[string]any:
		for key, item := range v {
			if !w.spend(len(key)) || !w.native(item) {
				return false
			}
		}
	}
	return w.spend(0)
}

func (w *weight) message(m protoreflect.Message) bool {
	ok := w.spend(0)
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsList():
			for i := range value.List().Len() {
				ok = ok && w.proto(value.List().Get(i))
			}
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, item protoreflect.Value) bool {
				ok = ok && w.spend(len(key.String())) && w.proto(item)
				return ok
			})
		default:
			ok = ok && w.proto(value)
		}
		return ok
	})
	return ok
}

func (w *weight) proto(value protoreflect.Value) bool {
	switch v := value.Interface().(type) {
	case string:
		return w.spend(len(v))
	case []byte:
		return w.spend(len(v))
	case protoreflect.Message:
		return w.message(v)
	}
	return w.spend(0)
}

// Check holds a value that is bound to a name to what an expression may
// make. A part of the spec itself is as long as its file.
func Check(v ref.Val) error {
	switch v := v.(type) {
	case types.String:
		if len(v) > Text {
			return ErrTooLarge
		}
		return nil
	case types.Bytes:
		if len(v) > Text {
			return ErrTooLarge
		}
		return nil
	case types.Int, types.Bool, types.Uint, types.Double, types.Null, types.Timestamp, types.Duration, Plain:
		return nil
	}
	switch v.Value().(type) {
	case proto.Message, protoreflect.List, protoreflect.Map:
		return nil
	}
	_, err := weigh(v)
	return err
}
