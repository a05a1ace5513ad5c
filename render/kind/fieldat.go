// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
)

// FieldAt is where the last field on a path into a document of the kind is
// declared. ok is false for what is in no .proto of the monorepo.
func (k *Kind) FieldAt(path []any) (at document.Position, ok bool) {
	if k.Folder == "" || k.envelope == nil || len(path) < 2 || path[0] != "spec" {
		return at, false
	}
	var last protoreflect.FieldDescriptor
	message := k.envelope
	for i := 0; i < len(path) && message != nil; i++ {
		name, _ := path[i].(string)
		field := message.Fields().ByName(protoreflect.Name(name))
		if field == nil {
			break
		}
		if i > 0 {
			last = field
		}
		message = field.Message()
		switch {
		case field.IsMap():
			message = field.MapValue().Message()
			i++ // its key
		case field.IsList():
			i++
		}
	}
	if last == nil {
		return at, false
	}
	at = document.DeclaredAt(last)
	folder := k.Folder[:strings.LastIndexByte(k.Folder, '/')+1]
	return at, strings.HasPrefix(at.File, folder)
}
