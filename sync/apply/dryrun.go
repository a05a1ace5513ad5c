// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/render"
)

// dryRun asks what an apply of the object by force would make of the one at the
// path, and keeps nothing. The caller says what the answer should be.
func dryRun(op string, o *render.Object, path string) *request {
	return &request{
		op: op, object: o.ID.String(), method: http.MethodPatch, path: path, query: applyQuery + "&force=true&dryRun=All",
		accept: jsonType, contentType: applyType, body: wireBody(o), hide: hider(o),
	}
}

// tryApply is what an apply of the object would make of the one at the path. It
// must not be used for Secrets.
func (c *call) tryApply(ctx context.Context, op string, o *render.Object, path string) (*unstructured.Unstructured, error) {
	req := dryRun(op, o, path)
	answer, err := c.do(ctx, req)
	if err != nil {
		return nil, err
	}
	var applied unstructured.Unstructured
	if err := applied.UnmarshalJSON(answer.body); err != nil {
		return nil, undecodable(req, answer, err)
	}
	return &applied, nil
}
