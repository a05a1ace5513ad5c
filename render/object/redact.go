// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"encoding/json"

	"github.com/swell-sh/swell/config"
)

// Redactor hides what the object, or one of the others, holds that may be a
// secret: all values of a Secret, and what comes from secret fields of specs.
func (o *Object) Redactor(others ...*Object) *config.Redactor {
	var r config.Redactor
	for _, o := range append(others, o) {
		for _, text := range o.Secrets {
			r.Add(text)
		}
		if !config.MaySecret(o.ID.Kind) {
			continue
		}
		var secret struct {
			Data, StringData any
			Metadata         struct{ Annotations map[string]string }
		}
		decoder := json.NewDecoder(bytes.NewReader(o.JSON))
		decoder.UseNumber()
		if decoder.Decode(&secret) == nil {
			r.AddValue(secret.Data)
			r.AddValue(secret.StringData)
			for name, value := range secret.Metadata.Annotations {
				if config.HidesAnnotation(name, value) {
					r.Add(value)
				}
			}
		}
	}
	return &r
}

// Credentials hides passwords in URLs and private keys that the objects have in any field, as
// [config.Redactor.AddTexts] finds them. Most objects have none, and are not decoded.
func Credentials(objects ...*Object) *config.Redactor {
	var r config.Redactor
	for _, o := range objects {
		if !bytes.Contains(o.JSON, []byte("://")) && !bytes.Contains(o.JSON, []byte("PRIVATE KEY")) {
			continue
		}
		var value any
		if json.Unmarshal(o.JSON, &value) == nil {
			r.AddTexts(value)
		}
	}
	return &r
}
