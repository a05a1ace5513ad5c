// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

// WithoutNulls is a value of a type with its nulls read as the API server reads
// them, which TestNullsOnAServer holds it to:
//
//   - A field that is null is not there, unless its definition says nullable.
//   - In a map of Kubernetes' own kinds, and in their lists, a null is the zero
//     value: an empty text, the quantity 0. The server decodes it into a Go value.
//   - In a map or a list of a custom resource, it is the default of its type.
//     Where there is none, it is taken out of the map, and stays in the list for
//     [Check] to refuse.
//   - Where nothing is known of a value, in what a definition preserves, a null
//     stays.
//
// The value itself is not changed; one without nulls is returned as it is.
func WithoutNulls(t *Type, value any) any {
	if !hasNull(value) {
		return value
	}
	return withoutNulls(t, value)
}

func hasNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, item := range v {
			if hasNull(item) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if hasNull(item) {
				return true
			}
		}
	}
	return false
}

func withoutNulls(t *Type, value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, item := range v {
			if item != nil {
				m[name] = withoutNulls(t.Field(name), item)
			} else if instead, there := t.nullUnder(name); there {
				m[name] = instead
			}
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			if item != nil {
				l[i] = withoutNulls(t.Item(), item)
			} else if !t.tellsItemsApart() {
				l[i] = t.Item().null()
			}
		}
		return l
	}
	return value
}

// nullUnder is what a null under a name of a mapping stands for; there is false
// where the name then is not there. t may be nil.
func (t *Type) nullUnder(name string) (instead any, there bool) {
	field := t.Field(name)
	switch {
	case field == nil: // unknown, or preserved
		return nil, true
	case t.Fields[name] != nil:
		return nil, field.Nullable
	}
	instead = field.null()
	return instead, instead != nil || field.takesNull()
}

// null is what a null stands for in a map or a list; nil where it stays. t may
// be nil.
func (t *Type) null() any {
	switch {
	case t == nil || t.takesNull():
		return nil
	case t.zero != nil:
		return t.zero
	}
	return t.Default
}

// takesNull says whether null is a value of the type.
func (t *Type) takesNull() bool { return t.Nullable || t.Form == Any }

// tellsItemsApart says whether server-side apply tells the items of the list
// apart; then none of them may be null. t may be nil.
func (t *Type) tellsItemsApart() bool { return t != nil && (t.Set || len(t.Keys) > 0) }

// zeros are the values that a null in a map or a list of Kubernetes' own kinds
// stands for.
var zeros = [...]any{Object: map[string]any{}, Map: map[string]any{}, List: []any{}, String: "", Integer: int64(0), Number: int64(0), Boolean: false,
	IntOrString: int64(0), Quantity: "0", Base64: ""}
