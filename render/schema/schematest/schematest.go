// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package schematest compiles JSON Schemas for tests. The product never does.
package schematest

import (
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Compile compiles the text of a schema, which then checks formats too. The value
// is that of the text.
func Compile(text string) (value any, compiled *jsonschema.Schema, err error) {
	if value, err = jsonschema.UnmarshalJSON(strings.NewReader(text)); err != nil {
		return nil, nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", value); err != nil {
		return nil, nil, err
	}
	compiled, err = c.Compile("schema.json")
	return value, compiled, err
}
