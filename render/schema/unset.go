// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	_ "embed"
	"encoding/json"
	"slices"
	"sync"
)

//go:generate go run genunset.go

//go:embed unset.json
var unsetText []byte

// unsetFields are, by the name of a type of Kubernetes' own, the fields whose empty text or
// zero the API takes for no value.
var unsetFields = sync.OnceValue(func() map[string][]string {
	var fields map[string][]string
	if err := json.Unmarshal(unsetText, &fields); err != nil {
		panic("embedded unset.json: " + err.Error())
	}
	return fields
})

// WithoutUnset is a value of a type without the fields that are empty, where the API takes
// that for no value: `volumeName: ""` of a claim. A server sets such a field itself, and
// would have to be corrected for ever. Where an empty value means something, as in
// `storageClassName: ""`, and where it is the key of an item, it stays.
//
// The value itself is not changed; one without such fields is returned as it is.
func WithoutUnset(t *Type, value any) any {
	if !hasEmpty(value) {
		return value
	}
	less, _ := withoutUnset(t, value, nil)
	return less
}

func hasEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			if hasEmpty(item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasEmpty)
	}
	return isEmpty(value)
}

func withoutUnset(t *Type, value any, keys []string) (less any, changed bool) {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, field := range v {
			if isEmpty(field) && t.isUnset(name) && !slices.Contains(keys, name) {
				changed = true
				continue
			}
			item, other := withoutUnset(t.Field(name), field, nil)
			m[name], changed = item, changed || other
		}
		if changed {
			return m, true
		}
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			less, other := withoutUnset(t.Item(), item, t.keys())
			l[i], changed = less, changed || other
		}
		if changed {
			return l, true
		}
	}
	return value, false
}

// isEmpty says whether a value is an empty text or the number zero.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case int64:
		return v == 0
	case float64:
		return v == 0
	case json.Number:
		return v == "0"
	}
	return false
}

// isUnset says whether an empty value of the field is none. t may be nil.
func (t *Type) isUnset(name string) bool { return t != nil && slices.Contains(t.unset, name) }

// keys are those of the items of a list. t may be nil.
func (t *Type) keys() []string {
	if t == nil {
		return nil
	}
	return t.Keys
}
