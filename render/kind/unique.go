// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
)

// UniqueIn says where no two specs may have the same value.
type UniqueIn string

const (
	UniqueInCluster UniqueIn = "cluster" // the default
	UniqueInTenant  UniqueIn = "tenant"
	UniqueInFleet   UniqueIn = "fleet"
)

// Unique is a value of a spec that no other spec may have.
type Unique struct {
	// Name is what the value is: values are compared with those of the same name and
	// scope, also of other kinds.
	Name  string
	In    UniqueIn
	Value string
	// Spec is where the document begins that has it, and At where in it, as well as that
	// is known.
	Spec, At document.Position
	// Secret says that the value is in no message.
	Secret bool
}

// unique is a declaration of values that are unique.
type unique struct {
	name string
	in   UniqueIn
	*expression
}

// uniques compiles what the kind declares as unique.
func (l *loader) uniques() {
	names := map[string]bool{}
	for i, def := range l.def.Unique {
		node := l.spec("unique").Content[i]
		switch {
		case !document.IsLabel(def.Name):
			l.problem(valueNode(node, "name"), "spec.unique[%d].name: want a DNS label that says what it is, like host, got %q", i, document.Shorten(def.Name))
			continue
		case names[def.Name]:
			l.problem(valueNode(node, "name"), "spec.unique[%d].name: %q stands before", i, def.Name)
			continue
		case def.Value == "":
			l.problem(node, "spec.unique[%d].value: missing", i)
			continue
		}
		names[def.Name] = true
		u := unique{name: def.Name, in: UniqueIn(def.In)}
		switch u.in {
		case "":
			u.in = UniqueInCluster
		case UniqueInCluster, UniqueInTenant, UniqueInFleet:
		default:
			l.problem(valueNode(node, "in"), "spec.unique[%d].in: want cluster, tenant or fleet, got %q", i, document.Shorten(def.In))
			continue
		}
		value := valueNode(node, "value")
		compiled, err := l.expression(l.env, value, def.Value)
		if err == nil && !mayBeUnique(compiled.typ) {
			err = fmt.Errorf("%q: want a string, a number or a list of them, got %s", def.Value, compiled.typ)
		}
		if err != nil {
			l.failed(err, value, "spec.unique[%d].value", i)
			continue
		}
		u.expression = compiled
		l.kind.unique = append(l.kind.unique, u)
	}
}

// mayBeUnique says whether values of a type can be compared: texts and whole numbers,
// lists and optionals of them, and what is known only once it is there.
func mayBeUnique(t *cel.Type) bool {
	switch t.Kind() {
	case cel.StringKind, cel.IntKind, cel.UintKind, cel.DynKind:
		return true
	case cel.ListKind:
		return mayBeUnique(t.Parameters()[0])
	case cel.OpaqueKind:
		return t.TypeName() == "optional_type" && mayBeUnique(t.Parameters()[0])
	}
	return false
}

// tellUnique tells the inputs what the spec has of its kind's unique values.
func (r *renderer) tellUnique() error {
	tell := r.scope.place.inputs.Unique
	if tell == nil {
		return nil
	}
	for i := range r.spec.kind.unique {
		u := &r.spec.kind.unique[i]
		result, err := u.run(r.scope)
		if err != nil {
			return err
		}
		value, present, err := r.scope.convert(result)
		if err != nil {
			return err
		}
		if !present || value == nil {
			continue
		}
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		for j, item := range list {
			text, ok := uniqueText(item)
			if !ok {
				return &evalError{u.at, fmt.Errorf("%q: want a string, a number or a list of them, got %T", u.text, item)}
			}
			if text == "" || text == "0" {
				continue // what a message has where nothing was written
			}
			at := r.spec.doc.At(r.spec.nodeOf(u.text, j, isList))
			secret := r.scope.place.secretsOf(r.spec).Quotes(text)
			tell(Unique{Name: u.name, In: u.in, Value: text, Spec: r.spec.doc.Position(), At: at, Secret: secret})
		}
	}
	return nil
}

func uniqueText(value any) (text string, ok bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	}
	return "", false
}

// plainPath is an expression that is a field of the spec and nothing else.
var plainPath = regexp.MustCompile(`^self(\.[A-Za-z_]\w*)+$`)

// nodeOf is where a document has the value of an expression, or an item of it; the
// document where that is not known.
func (s *Spec) nodeOf(text string, item int, isList bool) *yaml.Node {
	if !plainPath.MatchString(text) || s.doc != s.written {
		return s.doc.Node
	}
	var path []any
	for step := range strings.SplitSeq(strings.TrimPrefix(text, "self."), ".") {
		path = append(path, step)
	}
	if isList {
		path = append(slices.Clip(path), item)
	}
	return s.doc.Deepest(path...)
}
