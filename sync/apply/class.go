// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/swell-sh/swell/render/object"
)

// # Whose fault an answer is
//
// A release is turned back, and its bundle quarantined, for one reason alone:
// the server judged an object and said no. So the answers that are a verdict are
// listed here ([Error.isVerdict]), and all others, the unknown ones too, are the
// trouble of the target: it is waited for. The text of an answer may take a
// verdict away; it makes one only where the server has no better word, see
// ownVerdict.

// classOf is the class of an answer outside 2xx. A 401 and a 403 are
// [ErrRights] until it is asked whether there is a right, see [call.judgeRights].
func classOf(e *Error) error {
	switch {
	case e.isOfItsKind():
		return ErrDistress
	case e.Code == http.StatusTooManyRequests: // whoever says so
		return ErrThrottled
	case e.silent(): // a proxy in between, or no API server at all
		return ErrUnreachable
	case e.Code == http.StatusGatewayTimeout && e.audited && e.status != nil: // of an admission that took too long
		return ErrDistress
	case e.Code == http.StatusBadGateway, e.Code == http.StatusServiceUnavailable, e.Code == http.StatusGatewayTimeout:
		return ErrUnreachable
	case e.Code == http.StatusUnauthorized, e.Code == http.StatusForbidden:
		return ErrRights
	case e.isVerdict():
		return ErrRefused
	case e.Code == http.StatusNotFound:
		return ErrMissing
	}
	return ErrDistress
}

// isOfItsKind says whether a server that answers 429 is not busy, but cannot read the objects
// of one kind: their storage version moved and nobody converts them, for one (apiserver,
// storage/cacher/ready.go).
func (e *Error) isOfItsKind() bool {
	return e.Code == http.StatusTooManyRequests && e.audited && e.status != nil &&
		strings.HasPrefix(e.status.Message, "storage is (re)initializing")
}

// isVerdict says whether an answer is the server's judgement of the object, when
// it is not for want of a right: the object is invalid or too large, somebody
// else holds its fields, or admission denies it.
func (e *Error) isVerdict() bool {
	if e.status == nil || !e.audited { // or it is of something in between that speaks like a server
		return false
	}
	text := e.status.Message
	isDenied, isDistressed := denied.MatchString(text), distressed.MatchString(text)
	switch e.Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge: // they quote the object
		return !isDenied || !isDistressed
	case http.StatusUnauthorized, http.StatusForbidden: // a policy's reason may be either
		return !isDistressed && !rightless.MatchString(text) && (e.Code == http.StatusForbidden || e.status.Details != nil)
	case http.StatusConflict:
		return len(conflictsOf(e)) > 0 || isDenied && !isDistressed
	case http.StatusInternalServerError:
		return ownVerdict.MatchString(text)
	}
	return e.Code < 500 && isDenied && !isDistressed
}

// ownVerdict is what a server says, with a 500 and no reason, of a list in the
// object that holds a key twice, or of a field that the schema has not (apimachinery,
// managedfields/internal/structuredmerge.go); and what etcd says of an object that is
// too large for it.
var ownVerdict = regexp.MustCompile(`^failed to create typed patch object |^etcdserver: request is too large$`)

// denied is how a webhook's denial begins, whatever its code is (apiserver,
// admission/plugin/webhook/errors), and what a policy's holds.
var denied = regexp.MustCompile(`^admission webhook "[^"]*" denied the request|ValidatingAdmissionPolicy '[^']*'(?: with binding '[^']*')? denied request`)

// rightless are the texts of a 403 for want of a right: those of the
// authorizer (apiserver, responsewriters/errors.go), those about rights that only
// the object at hand asks for (kubernetes, registry/rbac; plugin/pkg/admission),
// and an empty one.
var rightless = regexp.MustCompile(`(?s)(?:^forbidden|is forbidden): (?:User "|RBAC: |user "[^"]*" \(groups=.*is attempting to grant RBAC permissions|` +
	`user not permitted to |cannot set blockOwnerDeletion|cannot set an ownerRef |$)|` +
	`is attempting to grant RBAC permissions not currently held`)

// distressed are texts of admission and of the server that tell of trouble
// behind a code which else would be a verdict: a server that starts, quotas that
// are used up or not counted yet, and what whoever was asked met itself.
var distressed = regexp.MustCompile(strings.Join([]string{
	`not yet ready to handle request`,
	`admission control is denying all modifications`,
	`exceeded quota: `, `status unknown for quota: `, `insufficient quota to `, `quota usage is negative`, `resource quota evaluation timed out`,
	`there was an error enforcing limit ranges`,
	`failed to configure (?:policy|binding): `,
	`error looking up service account `,
	`because it is being terminated`,
	`etcdserver: (?:mvcc: )?(?:database space exceeded|leader changed|no leader|request timed out|too many requests|server stopped|not capable|corrupt|unhealthy)`,
	`failed calling webhook "`,
	`context deadline exceeded`, `context canceled`, `connect: connection refused`, `connection reset by peer`, `i/o timeout`, `no such host`,
	`no route to host`, `TLS handshake timeout`, `tls: failed to verify certificate`, `x509: certificate `, `http2: `, `unexpected EOF`,
}, "|"))

// webhookFailed is how a server says that it could not ask a webhook, and which;
// a denial has other words. See apiserver's webhook errors ErrCallingWebhook, and
// its conversion of custom resources.
var webhookFailed = regexp.MustCompile(`failed calling webhook "([^"]*)"|conversion webhook for (\S+), Kind=(\S+) failed: Post `)

// IsOwnWebhook says whether an error came about because a webhook did not answer
// that one of the objects brings: then whoever brings it may be to blame.
func IsOwnWebhook(err error, objects []*object.Object) bool {
	var e *Error
	if !errors.Is(err, ErrWebhook) || !errors.As(err, &e) {
		return false
	}
	name := webhookFailed.FindStringSubmatch(e.Message)
	return name != nil && slices.ContainsFunc(objects, func(o *object.Object) bool { return bringsWebhook(o, name[1], name[2], name[3]) })
}

// bringsWebhook says whether an object is the configuration of a webhook, or the
// definition of a kind that a webhook converts.
func bringsWebhook(o *object.Object, name, version, kind string) bool {
	switch o.ID.Kind {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		var config struct {
			Webhooks []struct {
				Name string `json:"name"`
			} `json:"webhooks"`
		}
		return json.Unmarshal(o.JSON, &config) == nil && slices.ContainsFunc(config.Webhooks, func(w struct {
			Name string `json:"name"`
		}) bool {
			return w.Name == name && name != ""
		})
	}
	var d definition
	if !o.ID.IsDefinition() || json.Unmarshal(o.JSON, &d) != nil {
		return false
	}
	group, _, _ := strings.Cut(version, "/")
	return kind != "" && d.Spec.Group == group && d.Spec.Names.Kind == kind
}
