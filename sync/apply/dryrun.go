// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"net/http"

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
