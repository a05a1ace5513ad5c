// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/store"
)

// Content types. The protobuf forms are listed first because they cost both
// sides less; every API server of a supported version has them, for custom
// resources too.
const (
	protobufType = "application/vnd.kubernetes.protobuf"
	jsonType     = "application/json"

	acceptMeta = protobufType + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
		jsonType + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1," + jsonType
	acceptMetaList = protobufType + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
		jsonType + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," + jsonType
)

// protobufMagic stands before each protobuf answer, which is a
// [runtime.Unknown] around the object.
var protobufMagic = []byte("k8s\x00")

// protobufObject is what the generated types of apimachinery are.
type protobufObject interface{ Unmarshal([]byte) error }

// decode reads an answer of either content type. The kind must be as expected:
// an answer in any other form is not taken for an empty object.
func (r *response) decode(kind string, into any) error {
	switch {
	case strings.HasPrefix(r.contentType, protobufType):
		var envelope runtime.Unknown
		body, ok := bytes.CutPrefix(r.body, protobufMagic)
		if !ok {
			return fmt.Errorf("protobuf answer without its magic number")
		}
		if err := envelope.Unmarshal(body); err != nil {
			return err
		}
		if envelope.Kind != kind {
			return fmt.Errorf("got a %q instead of a %q", envelope.Kind, kind)
		}
		object, ok := into.(protobufObject)
		if !ok {
			return fmt.Errorf("got content type %q", r.contentType)
		}
		return object.Unmarshal(envelope.Raw)
	case strings.HasPrefix(r.contentType, jsonType):
		var typed metav1.TypeMeta
		if err := json.Unmarshal(r.body, &typed); err != nil {
			return err
		}
		if typed.Kind != kind {
			return fmt.Errorf("got a %q instead of a %q", typed.Kind, kind)
		}
		return json.Unmarshal(r.body, into)
	}
	return fmt.Errorf("got content type %q", r.contentType)
}

// status reads an answer as a Status.
func (r *response) status() (*metav1.Status, error) {
	var status metav1.Status
	if err := r.decode("Status", &status); err != nil {
		return nil, err
	}
	return &status, nil
}

// meta sends a request whose answer is the metadata of one object.
func (c *call) meta(ctx context.Context, req *request) (*metav1.PartialObjectMetadata, answerInfo, error) {
	req.accept = acceptMeta
	answer, err := c.do(ctx, req)
	if err != nil {
		return nil, answerInfo{}, err
	}
	var meta metav1.PartialObjectMetadata
	if err := answer.decode("PartialObjectMetadata", &meta); err != nil {
		return nil, answerInfo{}, undecodable(req, answer, err)
	}
	return &meta, answer.answerInfo, nil
}

// getMeta reads the metadata of one object.
func (c *call) getMeta(ctx context.Context, object, path string) (*metav1.PartialObjectMetadata, error) {
	meta, _, err := c.meta(ctx, &request{op: "get", object: object, method: http.MethodGet, path: path})
	return meta, err
}

// undecodable is the error for a 2xx answer that is none of an API server, such
// as a portal's log-in page.
func undecodable(req *request, answer *response, err error) *Error {
	return &Error{
		Op: req.op, Object: req.object, Code: answer.code, class: ErrUnreachable, cause: err,
		Message: fmt.Sprintf("answered %s, but not as an API server: %v", statusText(answer.code), err),
	}
}

// ownEntry is our own managedFields entry, or nil when there is none: then the
// object was not applied by us, or all that we applied was taken over.
func ownEntry(meta *metav1.PartialObjectMetadata) *metav1.ManagedFieldsEntry {
	for i := range meta.ManagedFields {
		if e := &meta.ManagedFields[i]; isOurs(e) {
			return e
		}
	}
	return nil
}

// isMarked says whether the live object is as we marked it: we still own the label that
// says who manages it. Whoever sets another value says that it is theirs.
func isMarked(meta *metav1.PartialObjectMetadata) bool {
	own := ownEntry(meta)
	return own != nil && strings.Contains(rawFields(own), `"f:`+config.LabelManagedBy+`"`)
}

func isOurs(e *metav1.ManagedFieldsEntry) bool {
	return e.Manager == FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// fingerprint is the SHA-256 of a managedFields entry, fields and time, in
// hexadecimal. The server moves the time when an apply under the entry's name
// changed something, and takes out of the fields what others changed or
// removed; an apply that changes nothing moves neither.
func fingerprint(fields string, at time.Time) string {
	return fingerprintAt(fields, at.UTC().Format(time.RFC3339))
}

func fingerprintAt(fields, at string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s", fields, at)
	return hex.EncodeToString(sum.Sum(nil))
}

// AsWritten says whether the live object's managedFields entry of ours has the time
// that the entry on record was made with, whatever its fields are by now.
func AsWritten(recorded, live store.Entry) bool {
	return fingerprintAt(recorded.Fields, live.Written) == recorded.Fingerprint
}

// rawFields is the entry's FieldsV1 as JSON, "" when there are none.
func rawFields(e *metav1.ManagedFieldsEntry) string {
	if e == nil || e.FieldsV1 == nil {
		return ""
	}
	return e.FieldsV1.GetRawString()
}

func entryTime(e *metav1.ManagedFieldsEntry) time.Time {
	if e == nil || e.Time == nil {
		return time.Time{}
	}
	return e.Time.Time
}
