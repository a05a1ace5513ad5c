// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"

	"github.com/swell-sh/swell/config/bounds"
	"github.com/swell-sh/swell/config/document"
)

// PlaceText is a text of Defaults with expressions over the unit and the target, as
// "${unit.tenant}-${target.cell}".
type PlaceText struct{ template template }

// placeEnvironment knows the unit and the target alone.
var placeEnvironment = sync.OnceValue(func() *environment {
	registry, err := types.NewRegistry()
	if err == nil {
		err = registry.RegisterDescriptor(boundFile())
	}
	if err != nil {
		panic(err) // there is no input
	}
	env, err := cel.NewEnv(append(orderedMacros(), cel.CustomTypeAdapter(registry), cel.CustomTypeProvider(registry), cel.OptionalTypes(), ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(bounds.Range)), ext.Encoders(ext.EncodersVersion(0)),
		cel.Variable("target", cel.ObjectType("swell.bound.Target")), cel.Variable("unit", cel.ObjectType("swell.bound.Unit")))...)
	if err != nil {
		panic(err)
	}
	guards, err := bounds.Guarded(env)
	if err != nil {
		panic(err)
	}
	return &environment{cel: env, options: []cel.ProgramOption{guards}}
})

// CompilePlaceText compiles a text that stands at a place.
func CompilePlaceText(text string, at document.Position) (*PlaceText, error) {
	texts, codes, err := splitExpressions(text)
	if err != nil {
		return nil, err
	}
	if len(codes) == 0 {
		return &PlaceText{static{texts[0]}}, nil
	}
	parts := &interpolation{texts: texts}
	for _, code := range codes {
		x, err := placeEnvironment().compile(code, at)
		if err != nil {
			return nil, err
		}
		parts.expressions = append(parts.expressions, x)
	}
	return &PlaceText{parts}, nil
}

// At is the text for the unit and the target of a place.
func (t *PlaceText) At(place *Place) (string, error) {
	value, _, err := t.template.eval(&scope{place: place, Budget: &Budget{}})
	if err != nil {
		return "", err
	}
	text, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("want a string, got %v", value)
	}
	return text, nil
}
