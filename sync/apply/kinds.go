// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render/object"
)

// resource is how a kind is addressed.
type resource struct {
	schema.GroupVersion
	plural     string // "deployments"
	namespaced bool
}

func groupVersionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + url.PathEscape(gv.Version)
	}
	return "/apis/" + url.PathEscape(gv.Group) + "/" + url.PathEscape(gv.Version)
}

// collection is the path of all objects of the kind, in all namespaces.
func (r resource) collection() string { return groupVersionPath(r.GroupVersion) + "/" + r.plural }

// within is the path of all objects of the kind in a namespace; empty: in all.
func (r resource) within(namespace string) string {
	if namespace == "" || !r.namespaced {
		return r.collection()
	}
	return groupVersionPath(r.GroupVersion) + "/namespaces/" + url.PathEscape(namespace) + "/" + r.plural
}

// path is the path of one object. The parts are as the API server takes them;
// anything that would name another path is refused. op is for the error.
func (r resource) path(op string, id object.ID) (string, error) {
	refuse := func(format string, args ...any) (string, error) {
		return "", &Error{Op: op, Object: id.String(), class: ErrRefused, Message: fmt.Sprintf(format, args...)}
	}
	for _, segment := range []string{id.Namespace, id.Name} {
		if segment == "." || segment == ".." || strings.ContainsAny(segment, "/%") {
			return refuse("%q cannot stand in the path of a request", segment)
		}
	}
	switch {
	case id.Name == "":
		return refuse("has no name")
	case r.namespaced && id.Namespace == "":
		return refuse("has no namespace, and its kind needs one")
	case !r.namespaced && id.Namespace != "":
		return refuse("has the namespace %q, and its kind has none", id.Namespace)
	case r.namespaced:
		return groupVersionPath(r.GroupVersion) + "/namespaces/" + id.Namespace + "/" + r.plural + "/" + id.Name, nil
	}
	return r.collection() + "/" + id.Name, nil
}

// resource looks a kind up, asking the server only when the kind is not known
// yet, and once in a call. Each group and version is asked for on its own, so
// an aggregated API that is down disturbs no other. An error wraps [ErrNoKind]
// only when the server said that there is no such kind.
func (c *call) resource(ctx context.Context, gvk schema.GroupVersionKind) (resource, error) {
	if gvk.Version == "" { // would be another path
		return resource{}, noKind(gvk)
	}
	gv := gvk.GroupVersion()
	c.mu.Lock()
	r, ok := c.kinds[gv][gvk.Kind]
	c.mu.Unlock()
	if ok {
		return r, nil
	}
	answer, err, _ := c.asked.Do("kinds of "+gv.String(), func() (any, error) {
		if kinds, ok := c.fresh.Load(gv); ok {
			return kinds, nil
		}
		kinds, err := c.discover(ctx, gv)
		if err == nil {
			c.fresh.Store(gv, kinds)
		}
		return kinds, err
	})
	if err != nil {
		return resource{}, err
	}
	if r, ok = answer.(map[string]resource)[gvk.Kind]; !ok {
		return resource{}, noKind(gvk)
	}
	return r, nil
}

// anyResource looks a kind up in the given version or, where that is not served
// any more, in another one of the group, the preferred one first.
func (c *call) anyResource(ctx context.Context, gvk schema.GroupVersionKind) (resource, error) {
	r, err := c.resource(ctx, gvk)
	if !errors.Is(err, ErrNoKind) || gvk.Group == "" {
		return r, err
	}
	versions, otherErr := c.versions(ctx, gvk.Group)
	if otherErr != nil {
		return resource{}, otherErr
	}
	for _, version := range versions {
		r, otherErr := c.resource(ctx, gvk.GroupKind().WithVersion(version))
		if !errors.Is(otherErr, ErrNoKind) {
			return r, otherErr
		}
	}
	return resource{}, err
}

// lookUp finds how a kind is addressed: [call.resource] or [call.anyResource].
type lookUp func(context.Context, schema.GroupVersionKind) (resource, error)

// addressed looks a kind up and sends something there; once more when the
// server does not serve the path, because the kind moved since it was looked up.
func (c *call) addressed(ctx context.Context, find lookUp, gvk schema.GroupVersionKind, send func(resource) error) error {
	found, err := find(ctx, gvk)
	if err != nil {
		return err
	}
	if err = send(found); !isPathMissing(err) {
		return err
	}
	c.forgetKinds(gvk.Group)
	if found, err = find(ctx, gvk); err != nil {
		return err
	}
	return send(found)
}

// discover asks which kinds a group has in a version, and remembers the answer
// in place of an earlier one. A group or version that is not served has none.
func (c *call) discover(ctx context.Context, gv schema.GroupVersion) (map[string]resource, error) {
	kinds := map[string]resource{}
	var list metav1.APIResourceList
	err := c.getJSON(ctx, "APIResourceList", &request{op: "discover", object: gv.String(), path: groupVersionPath(gv)}, &list)
	if err != nil && !isPathMissing(err) {
		return nil, err
	}
	for _, r := range list.APIResources {
		_, known := kinds[r.Kind]
		if known || strings.Contains(r.Name, "/") || !slices.Contains([]string(r.Verbs), "patch") {
			continue // a subresource, or a review: nothing that can be applied
		}
		kinds[r.Kind] = resource{GroupVersion: gv, plural: r.Name, namespaced: r.Namespaced}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[gv] = kinds
	return kinds, nil
}

// versions are the served versions of a group, the preferred one first; none
// when the group is not served. It asks once in a call.
func (c *call) versions(ctx context.Context, group string) ([]string, error) {
	answer, err, _ := c.asked.Do("versions of "+group, func() (any, error) {
		if versions, ok := c.fresh.Load(group); ok {
			return versions, nil
		}
		versions, err := c.discoverVersions(ctx, group)
		if err == nil {
			c.fresh.Store(group, versions)
		}
		return versions, err
	})
	if err != nil {
		return nil, err
	}
	return answer.([]string), nil
}

func (c *call) discoverVersions(ctx context.Context, group string) ([]string, error) {
	var served metav1.APIGroup
	err := c.getJSON(ctx, "APIGroup", &request{op: "discover", object: group, path: "/apis/" + url.PathEscape(group)}, &served)
	if err != nil && !isPathMissing(err) {
		return nil, err
	}
	var versions []string
	if preferred := served.PreferredVersion.Version; preferred != "" {
		versions = append(versions, preferred)
	}
	for _, v := range served.Versions {
		if !slices.Contains(versions, v.Version) {
			versions = append(versions, v.Version)
		}
	}
	return versions, nil
}

// forgetKinds makes the next look-up in the group ask the server.
func (c *call) forgetKinds(group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh.Delete(group)
	for gv := range c.kinds {
		if gv.Group == group {
			delete(c.kinds, gv)
			c.fresh.Delete(gv)
		}
	}
}

// getJSON reads one JSON document of a kind.
func (c *call) getJSON(ctx context.Context, kind string, req *request, into any) error {
	req.method, req.accept = http.MethodGet, jsonType
	answer, err := c.do(ctx, req)
	if err != nil {
		return err
	}
	if err := answer.decode(kind, into); err != nil {
		return undecodable(req, answer, err)
	}
	return nil
}

func noKind(gvk schema.GroupVersionKind) *Error {
	return &Error{
		Op: "discover", Object: gvk.GroupVersion().String(), class: ErrMissing, cause: ErrNoKind,
		Message: fmt.Sprintf("the cluster has no kind %q in %s", gvk.Kind, gvk.GroupVersion()),
	}
}

// on makes a failed look-up of a kind the error of an operation on an object,
// which has not been sent then; an error that names the object stays as it is.
func on(op string, id object.ID, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Object == id.String() {
		return err
	}
	of := &Error{Op: op, Object: id.String(), Code: e.Code, Message: e.Error(), class: e.class, cause: err, unsent: true}
	if errors.Is(err, ErrNoKind) {
		of.Message = e.Message
	}
	return of
}

// kindOf is the kind of an object or of an inventory entry.
func kindOf(id object.ID, version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: id.Group, Version: version, Kind: id.Kind}
}

// Definition is the name that the definition of an object's kind has if it is a
// custom one: "widgets.example.com".
func (c *Cluster) Definition(ctx context.Context, id object.ID, version string) (string, error) {
	found, err := c.begin().anyResource(ctx, kindOf(id, version))
	return found.plural + "." + found.Group, err
}
