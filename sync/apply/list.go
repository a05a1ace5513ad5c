// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	query := url.Values{}
	if selector != "" {
		query.Set("labelSelector", selector)
	}
	req := &request{op: "list", object: kind.String(), path: path, accept: acceptMetaList}
	for restarted := false; ; {
		err := c.pages(ctx, req, query, func(answer *response) (next string, err error) {
			var page metav1.PartialObjectMetadataList
			if err := answer.decode("PartialObjectMetadataList", &page); err != nil {
				return "", undecodable(req, answer, err)
			}
			for i := range page.Items {
				see(&page.Items[i])
			}
			version = page.ResourceVersion
			return page.Continue, nil
		})
		var e *Error
		if errors.As(err, &e) && e.Code == http.StatusGone && !restarted {
			restarted = true
			continue
		}
		return version, err
	}
}

// smallestPage is not made smaller: no page of so few objects has more than maxAnswer bytes.
const smallestPage = 5

// pages asks for a list page by page, and hands each to read, which returns the token of the
// next one. Where a page has too many bytes, the rest comes in smaller ones. A list that does
// not end is an error.
func (c *call) pages(ctx context.Context, req *request, query url.Values, read func(*response) (next string, err error)) error {
	asked, size, bytes := url.Values{}, pageSize, 0
	maps.Copy(asked, query)
	req.method, req.page = http.MethodGet, true
	for {
		asked.Set("limit", strconv.Itoa(size))
		req.query = asked.Encode()
		answer, err := c.do(ctx, req)
		if errors.Is(err, errTooLarge) && size > smallestPage {
			size /= 10
			continue
		}
		if err != nil {
			return err
		}
		next, err := read(answer)
		answer.room.leave()
		bytes += len(answer.body)
		switch {
		case err != nil || next == "":
			return err
		case bytes > maxList:
			return endless(req, fmt.Sprintf("the pages of the list have more than %d MiB together, and there is no end", maxList>>20))
		case next == asked.Get("continue"):
			return endless(req, "a page of the list leads to itself")
		}
		asked.Set("continue", next)
	}
}

// endless is the error for a list that a server does not end.
func endless(req *request, why string) *Error {
	return &Error{Op: req.op, Object: req.object, class: ErrDistress, Message: why}
}
