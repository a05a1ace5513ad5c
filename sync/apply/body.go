// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/line"
)

// body is an object as it is sent, decoded once.
type body struct {
	// text is what is sent of the object: most often the bytes of Git as they are,
	// so that the server still sees what is wrong with them.
	text []byte
	// inside is the offset in text behind the brace that opens the metadata.
	inside int
	// root is text, decoded. It is shared and never changed.
	root        map[string]any
	labels      map[string]string
	annotations map[string]string
}

// bodyOf is the body of an object of a bundle.
//
// A Secret's stringData is sent as data: the server would store it so anyway, but
// note that we own stringData, and so never tell us that somebody changed the data.
//
// Of a hook that runs with its bundle, the time to live is kept back until the
// inventory knows that it is complete: a Job that is gone before that would have
// to run again. One that runs before a deletion is suspended until then.
func bodyOf(o *object.Object, bundle object.Digest) (*body, error) {
	root, err := decodeObject(o.JSON)
	if err != nil {
		return nil, unsendable(o, err)
	}
	b := &body{text: o.JSON, root: root}
	if hook := o.Hook(); hook != "" {
		if !markHook(root, hook, o.RunOf(bundle)) {
			return nil, refused("apply", o.ID, "is no hook: it lacks a spec or annotations")
		}
		if b.text, err = json.Marshal(root); err != nil {
			return nil, unsendable(o, err)
		}
	}
	if o.ID.IsSecret() && encodeStringData(root) {
		if b.text, err = json.Marshal(root); err != nil {
			return nil, unsendable(o, err)
		}
	}
	if b.inside, err = metadataStart(b.text); err != nil {
		return nil, unsendable(o, err)
	}
	b.labels, b.annotations = texts(metadataOf(root), "labels"), texts(metadataOf(root), "annotations")
	return b, nil
}

// decodeObject keeps numbers as they are written, as json.Number.
func decodeObject(text []byte) (map[string]any, error) {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err := decoder.Decode(&object)
	return object, err
}

// markHook makes a decoded hook the run for a bundle; false when it is none.
func markHook(root map[string]any, hook object.Hook, bundle object.Digest) bool {
	spec, _ := root["spec"].(map[string]any)
	annotations, _ := metadataOf(root)["annotations"].(map[string]any)
	switch {
	case spec == nil || annotations == nil:
		return false
	case hook == object.HookBeforeDelete:
		spec["suspend"] = true
	default:
		annotations[config.AnnotationHookRun] = string(bundle)
		delete(spec, "ttlSecondsAfterFinished")
	}
	return true
}

// encodeStringData makes a decoded Secret's stringData its data, and says whether
// it did. What is wrong with it is left as it is: the server says so.
func encodeStringData(secret map[string]any) bool {
	texts, ok := secret["stringData"].(map[string]any)
	data, isMap := secret["data"].(map[string]any)
	if !ok || !isMap && secret["data"] != nil {
		return false
	}
	encoded := make(map[string]any, len(data)+len(texts))
	maps.Copy(encoded, data)
	for key, value := range texts {
		text, ok := value.(string)
		if !ok {
			return false
		}
		encoded[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	secret["data"] = encoded
	delete(secret, "stringData")
	return true
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

// less is the decoded body without some fields; its top may be changed where there
// are some.
func (b *body) less(left []pointer) map[string]any {
	return without(b.root, left).(map[string]any)
}

// with are the bytes to send with one more field in the metadata and without those
// that are left to others: "uid", which the server holds against the live object,
// or "resourceVersion", which makes a write fail unless the live object has it.
// Where nothing is left, all other bytes stay.
func (b *body) with(field, value string, left []pointer) ([]byte, error) {
	if len(left) > 0 {
		root := b.less(left)
		metadata := maps.Clone(metadataOf(root))
		if metadata == nil {
			return nil, errors.New("has no metadata")
		}
		metadata[field] = value
		root["metadata"] = metadata
		return json.Marshal(root)
	}
	addition, err := json.Marshal(map[string]string{field: value})
	if err != nil {
		return nil, err
	}
	addition = addition[1 : len(addition)-1] // without the braces
	before, after := b.text[:b.inside], b.text[b.inside:]
	if !bytes.HasPrefix(bytes.TrimLeft(after, " \n\t\r"), []byte("}")) {
		addition = append(addition, ',')
	}
	return slices.Concat(before, addition, after), nil
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

// hider returns a function that says whether a text holds something of the
// object that may be a secret, plain, escaped or encoded; nil where there is
// nothing. A server's refusal can quote what it refuses ("expected string, got
// 12345").
func hider(o *object.Object) func(message string) bool {
	if len(o.Secrets) == 0 && !config.MaySecret(o.ID.Kind) {
		return nil
	}
	return func(message string) bool { return o.Redactor().Quotes(message) } // few are refused
}

func unsendable(o *object.Object, err error) *Error {
	return &Error{Op: "apply", Object: o.ID.String(), class: ErrRefused, cause: err, unsent: true, Message: line.One(err.Error())}
}
