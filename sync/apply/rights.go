// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A server says 403 both when a right is missing and when admission denies the
// object, and it says 401 for some policies. Only the first is the target's
// trouble, so the server is asked whether there is a right.

// rights are answers to whether somebody may do something. The zero value is
// ready for use.
type rights struct {
	mu    sync.Mutex
	known map[right]knownRight
}

// right is what somebody may, or may not, do.
type right struct {
	user string
	authorizationv1.ResourceAttributes
}

type knownRight struct {
	allowed bool
	until   time.Time
}

// rightsTime is for how long an answer holds: for as long as a bundle of many
// objects is refused, and not for longer.
const rightsTime = 2 * time.Second

// judgeRights finds out whether a write that was answered with 401 or 403 was
// denied by admission. It is a verdict on the object only if the server says that
// we have the right; not to know leaves it a matter of rights.
func (c *call) judgeRights(ctx context.Context, req *request, e *Error) *Error {
	verbs := verbsOf(req)
	if e.class != ErrRights || len(verbs) == 0 {
		return e
	}
	judged := *e
	switch {
	case e.status != nil && distressed.MatchString(e.status.Message):
		judged.class = ErrDistress
	case !e.isVerdict():
		return e
	default:
		for _, verb := range verbs {
			if !c.mayDo(ctx, right{c.user, attributesOf(req.path, verb)}) {
				return e
			}
		}
		judged.class = ErrRefused
	}
	return &judged
}

// verbsOf are the rights that a write needs; none for what only reads.
func verbsOf(req *request) []string {
	switch req.method {
	case http.MethodPatch:
		if req.contentType == applyType {
			return []string{"patch", "create"}
		}
		return []string{"patch"}
	case http.MethodPost:
		return []string{"create"}
	case http.MethodDelete:
		return []string{"delete"}
	}
	return nil
}

// attributesOf reads the path of an object, or of a collection, as the API server
// does.
func attributesOf(path, verb string) authorizationv1.ResourceAttributes {
	a := authorizationv1.ResourceAttributes{Verb: verb}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) > 2 && parts[0] == "apis" {
		a.Group, a.Version, parts = parts[1], parts[2], parts[3:]
	} else if len(parts) > 1 {
		a.Version, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 && parts[0] == "namespaces" {
		a.Namespace = parts[1]
		if len(parts) > 2 {
			parts = parts[2:]
		}
	}
	if len(parts) > 0 {
		a.Resource = parts[0]
	}
	if len(parts) > 1 {
		a.Name = parts[1]
	}
	return a
}

// mayDo asks the server; false also when there is no answer.
func (c *call) mayDo(ctx context.Context, r right) bool {
	c.rights.mu.Lock()
	known, ok := c.rights.known[r]
	c.rights.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.allowed
	}
	allowed, err := c.askRight(ctx, r)
	if err != nil {
		return false
	}
	c.rights.mu.Lock()
	defer c.rights.mu.Unlock()
	now := time.Now()
	for r, known := range c.rights.known {
		if now.After(known.until) {
			delete(c.rights.known, r)
		}
	}
	if c.rights.known == nil {
		c.rights.known = map[right]knownRight{}
	}
	c.rights.known[r] = knownRight{allowed, now.Add(rightsTime)}
	return allowed
}

// askRight asks once, as whoever the rights are of.
func (c *call) askRight(ctx context.Context, r right) (bool, error) {
	body, err := json.Marshal(authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &r.ResourceAttributes},
	})
	if err != nil {
		return false, err
	}
	req := &request{
		op: "ask for rights", object: r.Resource, method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		accept: jsonType, contentType: jsonType, body: body,
	}
	answer, refusal := c.attempt(ctx, req, c.options.Timeout)
	if refusal != nil {
		return false, refusal
	}
	var review authorizationv1.SelfSubjectAccessReview
	if err := answer.decode("SelfSubjectAccessReview", &review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
