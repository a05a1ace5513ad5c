// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/swell-sh/swell/render"
)

// decodeObject keeps numbers as they are written, as json.Number.
func decodeObject(body []byte) (map[string]any, error) {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	err := decoder.Decode(&object)
	return object, err
}

// parsed is what is sent of the object, decoded. Each call decodes anew, so the
// caller may change it.
func parsed(o *render.Object) (map[string]any, error) {
	root, err := decodeObject(wireBody(o))
	if err != nil {
		return nil, unsendable(o, err)
	}
	return root, nil
}

// metadataOf is the metadata of decoded content; nil when there is none.
func metadataOf(root map[string]any) map[string]any {
	metadata, _ := root["metadata"].(map[string]any)
	return metadata
}

// texts is a map of labels or annotations out of metadata.
func texts(metadata map[string]any, key string) map[string]string {
	all, _ := metadata[key].(map[string]any)
	found := make(map[string]string, len(all))
	for k, v := range all {
		found[k], _ = v.(string)
	}
	return found
}

// withPrecondition is what is sent of an object with one more field in its metadata:
// "uid", which the server holds against the live object, or "resourceVersion",
// which makes a write fail unless the live object has it. All other bytes stay,
// so that the server still sees what is wrong with them.
func withPrecondition(o *render.Object, field, value string) ([]byte, error) {
	whole := wireBody(o)
	at, err := metadataStart(whole)
	if err != nil {
		return nil, unsendable(o, err)
	}
	addition, err := json.Marshal(map[string]string{field: value})
	if err != nil {
		return nil, unsendable(o, err)
	}
	addition = addition[1 : len(addition)-1] // without the braces
	body := make([]byte, 0, len(whole)+len(addition)+1)
	body = append(body, whole[:at]...)
	body = append(body, addition...)
	if !bytes.HasPrefix(bytes.TrimLeft(whole[at:], " \n\t\r"), []byte("}")) {
		body = append(body, ',')
	}
	return append(body, whole[at:]...), nil
}

// metadataStart is the offset behind the brace that opens the metadata.
func metadataStart(body []byte) (int, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if _, err := decoder.Token(); err != nil {
		return 0, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return 0, err
		}
		if key == "metadata" {
			opening, err := decoder.Token()
			if err == nil && opening != json.Delim('{') {
				err = errors.New("metadata is no object")
			}
			return int(decoder.InputOffset()), err
		}
		var skipped json.RawMessage
		if err := decoder.Decode(&skipped); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("has no metadata")
}

func unsendable(o *render.Object, err error) *Error {
	return &Error{Op: "apply", Object: o.ID.String(), class: ErrRefused, cause: err, unsent: true, Message: oneLine(err.Error())}
}
