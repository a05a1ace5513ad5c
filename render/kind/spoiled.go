// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// errSpoiled is the error of an expression that names what has a problem itself.
// It is no problem of its own.
var errSpoiled = errors.New("a name in it has a problem")

// spoil notes that a name has a problem where it was to be bound.
func (l *loader) spoil(name string) {
	if name != "" && !slices.Contains([]string{"self", "target", "unit", "data"}, name) {
		l.bad = append(l.bad, name)
	}
}

// expression compiles an expression of the kind, and notes what it reads.
func (l *loader) expression(env *environment, n *yaml.Node, text string) (*expression, error) {
	x, err := env.compile(text, l.doc.At(n))
	if err != nil && slices.ContainsFunc(l.bad, func(name string) bool { return mentions(text, name) }) {
		return nil, errSpoiled
	}
	if err == nil {
		l.reads.note(x.checked.NativeRep())
	}
	return x, err
}

// mentions says whether an expression, which need not be a valid one, has a name.
func mentions(text, name string) bool {
	return regexp.MustCompile(`(^|[^A-Za-z0-9_.])` + regexp.QuoteMeta(name) + `($|[^A-Za-z0-9_])`).MatchString(text)
}

// failed is the problem of an expression, unless it only follows from another.
func (l *loader) failed(err error, n *yaml.Node, place string, args ...any) {
	if !errors.Is(err, errSpoiled) {
		l.problem(n, "%s: %s", fmt.Sprintf(place, args...), err)
	}
}
