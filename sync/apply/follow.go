// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Follow is a [Cluster.Watch] of a kind that begins now. It calls began when it
// has begun, and each time that it has to begin anew: what happened before is
// then unknown. It returns an error also when it cannot find out what now is.
func (c *Cluster) Follow(ctx context.Context, kind schema.GroupVersionKind, namespace string, began func(), see func(Seen)) error {
	for {
		since, err := c.begin().newest(ctx, kind, namespace)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		began()
		if err = c.Watch(ctx, kind, namespace, since, see); !errors.Is(err, ErrExpired) {
			return err
		}
	}
}

// newest is the resourceVersion of a kind's objects as they are now.
func (c *call) newest(ctx context.Context, kind schema.GroupVersionKind, namespace string) (version string, err error) {
	err = c.addressed(ctx, c.anyResource, kind, func(found resource) error {
		query := url.Values{"limit": {"1"}, "labelSelector": {c.ours()}}
		req := &request{
			op: "list", object: kind.GroupKind().String(), method: http.MethodGet, path: found.within(namespace), query: query.Encode(), accept: acceptMetaList,
		}
		answer, err := c.do(ctx, req)
		if err != nil {
			return err
		}
		var page metav1.PartialObjectMetadataList
		if err := answer.decode("PartialObjectMetadataList", &page); err != nil {
			return undecodable(req, answer, err)
		}
		version = page.ResourceVersion
		return nil
	})
	return version, err
}
