// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
)

// pageSize is how many objects one LIST brings.
const pageSize = 500

// ours selects what carries our labels.
func (c *connection) ours() string {
	return config.LabelRepository + "=" + c.repository
}

// isOurs says whether these are labels of an object that we applied.
func (c *connection) isOurs(labels map[string]string) bool {
	return labels[config.LabelRepository] == c.repository
}

// list reads the metadata of the objects of a kind that a label selector picks,
// all where it is empty, page by page, and returns the resourceVersion of the
// whole. path is that of the kind, or of the kind in a namespace. A list that
// took so long that the server forgot its beginning is started again once; an
// object may then be seen twice.
func (c *call) list(ctx context.Context, kind schema.GroupKind, path, selector string, see func(*metav1.PartialObjectMetadata)) (version string, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if selector != "" {
		query.Set("labelSelector", selector)
	}
	req := &request{op: "list", object: kind.String(), method: http.MethodGet, path: path, accept: acceptMetaList}
	for restarted := false; ; {
		req.query = query.Encode()
		answer, err := c.do(ctx, req)
		var e *Error
		if errors.As(err, &e) && e.Code == http.StatusGone && !restarted {
			restarted = true
			query.Del("continue")
			continue
		}
		if err != nil {
			return "", err
		}
		var page metav1.PartialObjectMetadataList
		if err := answer.decode("PartialObjectMetadataList", &page); err != nil {
			return "", undecodable(req, answer, err)
		}
		for i := range page.Items {
			see(&page.Items[i])
		}
		if page.Continue == "" {
			return page.ResourceVersion, nil
		}
		query.Set("continue", page.Continue)
	}
}
