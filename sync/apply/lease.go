// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/swell-sh/swell/sync/apply/line"
)

// ErrFenced means that a write was not sent because somebody else may be the one
// who writes to the cluster, see [Options.Fence].
var ErrFenced = errors.New("not the writer of the cluster")

// GetLease reads a Lease. Requests for Leases do not wait for their turn among
// the others, and are made with the connection's own credentials.
func (c *Cluster) GetLease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	return c.lease(ctx, &request{op: "get", object: "Lease/" + namespace + "/" + name, method: http.MethodGet, path: leases(namespace) + "/" + url.PathEscape(name)}, nil)
}

// PutLease writes a Lease: a new one when it has no resource version, or else in
// the place of that version and of no other.
func (c *Cluster) PutLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	req := &request{op: "update", object: "Lease/" + lease.Namespace + "/" + lease.Name, method: http.MethodPut, path: leases(lease.Namespace) + "/" + url.PathEscape(lease.Name)}
	if lease.ResourceVersion == "" {
		req.op, req.method, req.path = "create", http.MethodPost, leases(lease.Namespace)
	}
	return c.lease(ctx, req, lease)
}

func leases(namespace string) string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/leases"
}

func (c *Cluster) lease(ctx context.Context, req *request, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if lease != nil {
		lease.APIVersion, lease.Kind = "coordination.k8s.io/v1", "Lease"
		body, err := json.Marshal(lease)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", req.op, req.object, err)
		}
		req.body, req.contentType = body, jsonType
	}
	req.accept = jsonType
	answer, err := c.As("").begin().roundTrip(ctx, req, identityTimeout)
	c.answered(err)
	if err != nil {
		return nil, err
	}
	got := &coordinationv1.Lease{}
	if err := answer.decode("Lease", got); err != nil {
		return nil, undecodable(req, answer, err)
	}
	return got, nil
}

// fenced is the error for a write that must not be sent; nil when it may.
func (c *call) fenced(req *request) *Error {
	if !req.writes() {
		return nil
	}
	for _, fence := range []func() error{c.options.Fence, c.fence} {
		if fence == nil {
			continue
		}
		if err := fence(); err != nil {
			return &Error{Op: req.op, Object: req.object, class: ErrFenced, cause: err, unsent: true, Message: "not tried: " + line.One(err.Error())}
		}
	}
	return nil
}
