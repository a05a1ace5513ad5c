// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/uuid"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// answer is an answer to be sent.
type answer struct {
	code        int
	contentType string
	body        []byte
	stream      io.ReadCloser // in place of a body
}

func (a *answer) response(r *http.Request) *http.Response {
	response := &http.Response{
		Status: strconv.Itoa(a.code) + " " + http.StatusText(a.code), StatusCode: a.code,
		Proto: "HTTP/2.0", ProtoMajor: 2, Request: r, ContentLength: int64(len(a.body)), Body: a.stream,
		Header: http.Header{
			"Content-Type": {a.contentType}, "Date": {time.Now().UTC().Format(http.TimeFormat)},
			"Audit-Id": {string(uuid.NewUUID())}, "Cache-Control": {"no-cache, private"},
		},
	}
	if a.stream == nil {
		response.Body = io.NopCloser(bytes.NewReader(a.body))
	} else {
		response.ContentLength = -1
	}
	return response
}

// failed is the answer for an error.
func failed(err error) *answer {
	status := statusOf(err)
	body, _ := json.Marshal(status)
	return &answer{code: int(status.Code), contentType: jsonType, body: body}
}

func statusOf(err error) *metav1.Status {
	known, ok := err.(apierrors.APIStatus)
	if !ok { // as k8s.io/apiserver does with the errors of its libraries
		return typed(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()})
	}
	status := known.Status()
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	return typed(&status)
}

func typed(s *metav1.Status) *metav1.Status {
	s.Kind, s.APIVersion = "Status", "v1"
	return s
}

// form is how a client wants objects.
type form struct {
	protobuf bool
	meta     bool // metadata only
}

// negotiate reads the header Accept: the first form that is served.
func negotiate(accept string, q *request) (form, error) {
	if accept == "" {
		return form{}, nil
	}
	for _, one := range strings.Split(accept, ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(one))
		if err != nil {
			continue
		}
		f := form{protobuf: media == protobufType, meta: strings.HasPrefix(params["as"], "PartialObjectMetadata")}
		switch {
		case media != jsonType && media != protobufType && media != "*/*" && media != "application/*":
		case params["as"] != "" && (!f.meta || params["g"] != "meta.k8s.io" || params["v"] != "v1"):
		case f.protobuf && !f.meta: // of whole objects: the next one will do
		default:
			return f, nil
		}
	}
	return form{}, unmodelled("answers of the form %q", accept)
}

// listed is some objects of a kind.
type listed struct {
	metav1.ListMeta
	kind  *kind
	items []object
}

// encode writes an object, a list or a status.
func (f form) encode(result any, code int) *answer {
	body, err := f.bytes(result)
	if err != nil {
		return failed(err)
	}
	a := &answer{code: code, contentType: jsonType, body: body}
	if f.protobuf {
		a.contentType = protobufType
	}
	return a
}

var protobufs = protobuf.NewSerializer(nil, nil)

func (f form) bytes(result any) ([]byte, error) {
	switch v := result.(type) {
	case json.RawMessage:
		return v, nil
	case *metav1.Status:
		return f.metaBytes(v)
	case *listed:
		if f.meta {
			return f.metaBytes(v.metadata())
		}
		return v.json()
	case object:
		if f.meta {
			return f.metaBytes(metadataOf(v))
		}
		return json.Marshal(v)
	}
	return nil, fmt.Errorf("answer of type %T", result)
}

// metaBytes writes one of the types of meta.k8s.io.
func (f form) metaBytes(o runtime.Object) ([]byte, error) {
	if !f.protobuf {
		return json.Marshal(o)
	}
	var b bytes.Buffer
	err := protobufs.Encode(o, &b)
	return b.Bytes(), err
}

var metaVersion = metav1.SchemeGroupVersion

func metadataOf(o object) *metav1.PartialObjectMetadata {
	partial := meta.AsPartialObjectMetadata(o)
	if _, ok := o.(*appsv1.DaemonSet); ok { // has this one in its internal type elsewhere
		partial.Annotations = maps.Clone(partial.Annotations)
		delete(partial.Annotations, appsv1.DeprecatedTemplateGeneration)
	}
	partial.SetGroupVersionKind(metaVersion.WithKind("PartialObjectMetadata"))
	return partial
}

func (l *listed) metadata() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{ListMeta: l.ListMeta}
	list.SetGroupVersionKind(metaVersion.WithKind("PartialObjectMetadataList"))
	for _, o := range l.items {
		list.Items = append(list.Items, *metadataOf(o))
	}
	return list
}

// json writes a list of whole objects. Kubernetes' own do not name their kind there.
func (l *listed) json() ([]byte, error) {
	items := make([]json.RawMessage, len(l.items))
	for i, o := range l.items {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		if l.kind.typed {
			own := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, l.kind.Kind, l.kind.GroupVersion())
			if rest, ok := bytes.CutPrefix(text, own); ok {
				text = append([]byte{'{'}, rest...)
			}
		}
		items[i] = text
	}
	var meta any = l.ListMeta
	if l.kind.custom != nil { // shows an empty one too
		meta = struct {
			metav1.ListMeta
			Continue string `json:"continue"`
		}{l.ListMeta, l.Continue}
	}
	return json.Marshal(struct {
		Kind       string            `json:"kind"`
		APIVersion string            `json:"apiVersion"`
		Metadata   any               `json:"metadata"`
		Items      []json.RawMessage `json:"items"`
	}{l.kind.listKind(), l.kind.GroupVersion().String(), meta, items})
}

func (k *kind) listKind() string {
	if k.custom != nil {
		return k.custom.listKind
	}
	return k.Kind + "List"
}
