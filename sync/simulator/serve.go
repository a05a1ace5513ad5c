// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// request is a request for objects.
type request struct {
	*kind
	http        *http.Request
	method      string
	query       url.Values
	namespace   string
	name        string
	subresource string
	body        []byte
	form        form
	dryRun      bool
}

// unmodelled is the error for what the simulator does not do.
func unmodelled(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: "NotModelled",
		Message: "the simulator does not model " + fmt.Sprintf(format, args...),
	}}
}

// serve answers a request. The lock is held.
func (c *Cluster) serve(r *http.Request, body []byte) *answer {
	if user := r.Header.Get("Impersonate-User"); user != "" {
		return failed(unmodelled("impersonation, of %q", user))
	}
	path := r.URL.Path
	if r.Method == http.MethodGet || r.Method == "" {
		if document := c.kinds.document(strings.TrimSuffix(path, "/")); document != nil {
			return &answer{code: http.StatusOK, body: document, contentType: jsonType}
		}
		switch path {
		case "/readyz", "/livez", "/healthz":
			return &answer{code: http.StatusOK, body: []byte("ok"), contentType: "text/plain; charset=utf-8"}
		}
	}
	q, err := c.parse(path)
	if err != nil {
		return failed(err)
	}
	if q == nil {
		return &answer{code: http.StatusNotFound, body: []byte("404 page not found\n"), contentType: "text/plain; charset=utf-8"}
	}
	q.http, q.method, q.query, q.body = r, r.Method, r.URL.Query(), body
	if q.form, err = negotiate(r.Header.Get("Accept"), q); err != nil {
		return failed(err)
	}
	if q.method == http.MethodGet && q.query.Get("watch") == "true" {
		return c.watch(q)
	}
	result, code, err := c.handle(q)
	if err != nil {
		return failed(err)
	}
	return q.form.encode(result, code)
}

// parse reads a path below /api/VERSION or /apis/GROUP/VERSION. Nil is a path that no
// server knows.
func (c *Cluster) parse(path string) (*request, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var gv schema.GroupVersion
	switch {
	case len(parts) > 2 && parts[0] == "api":
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	case len(parts) > 0 && (parts[0] == "openapi" || parts[0] == "metrics" || parts[0] == "logs"):
		return nil, unmodelled("the path %s", path)
	default:
		return nil, nil
	}
	if c.kinds.document("/"+strings.Join(strings.Split(strings.Trim(path, "/"), "/")[:depth(gv)], "/")) == nil {
		return nil, nil
	}
	q := &request{}
	if parts[0] == "namespaces" && len(parts) > 2 && !(gv == coreV1 && len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")) {
		q.namespace, parts = parts[1], parts[2:]
	}
	q.kind = c.kinds.served[gv.WithResource(parts[0])]
	if q.kind == nil || q.kind.namespaced != (q.namespace != "") && (q.namespace != "" || len(parts) > 1) {
		return nil, notServed()
	}
	if len(parts) > 1 {
		q.name = parts[1]
	}
	if len(parts) > 2 {
		q.subresource = strings.Join(parts[2:], "/")
	}
	return q, nil
}

func depth(gv schema.GroupVersion) int {
	if gv.Group == "" {
		return 2
	}
	return 3
}

// notServed is the answer to a path of a kind that is not served.
func notServed() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{},
		Message: "the server could not find the requested resource",
	}}
}

// handle carries out a request for objects, other than a watch.
func (c *Cluster) handle(q *request) (any, int, error) {
	if q.Kind == "SelfSubjectAccessReview" {
		return c.review(q)
	}
	if q.subresource != "" && (q.managers[q.subresource] == nil || q.name == "") && !(q.GroupVersionKind == nsKind && q.subresource == "finalize") {
		return nil, 0, unmodelled("%s %s/%s", q.method, q.plural, q.subresource)
	}
	switch q.method {
	case http.MethodGet, "":
		if q.name == "" {
			return c.list(q)
		}
		o, err := c.get(q)
		return o, http.StatusOK, err
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return nil, 0, unmodelled("the method %s", q.method)
	}
	if q.rules == nil {
		return nil, 0, unmodelled("writes of %s in %s", q.plural, q.GroupVersion())
	}
	switch {
	case q.method == http.MethodPost && q.name == "":
		return c.post(q)
	case q.method == http.MethodPut && q.name != "":
		return c.put(q)
	case q.method == http.MethodPatch && q.name != "":
		return c.patch(q)
	case q.method == http.MethodDelete && q.subresource == "":
		return c.delete(q)
	}
	return nil, 0, unmodelled("%s %s", q.method, q.http.URL.Path)
}

// review says that everybody may do everything.
func (c *Cluster) review(q *request) (any, int, error) {
	var review map[string]any
	if q.method != http.MethodPost {
		return nil, 0, unmodelled("%s of a review", q.method)
	}
	if err := json.Unmarshal(q.body, &review); err != nil {
		return nil, 0, apierrors.NewBadRequest(err.Error())
	}
	review["status"] = map[string]any{"allowed": true}
	body, err := json.Marshal(review)
	return json.RawMessage(body), http.StatusCreated, err
}

// document is what discovery answers at a path; nil when there is nothing.
func (k *kinds) document(path string) []byte {
	if len(k.custom) > 0 && strings.HasPrefix(path, "/apis") {
		if document := k.customDocument(path); document != nil {
			return document
		}
	}
	return k.documents[path]
}
