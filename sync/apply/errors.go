// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/sync/apply/line"
)

// What an [Error] is, for callers that have to tell whose fault it was.
var (
	// ErrUnreachable means that nobody who speaks for the API server answered:
	// refused, no route, TLS, too late, a proxy's page, 502, 503, 504. What
	// became of a write is not known.
	ErrUnreachable = errors.New("unreachable")
	// ErrThrottled means that the server asked to slow down more often than we
	// were willing to wait. Nothing was written.
	ErrThrottled = errors.New("throttled")
	// ErrRefused is the one verdict on the object: the server understood, judged
	// the object and said no. Nothing was written.
	ErrRefused = errors.New("refused")
	// ErrDistress means that the server answered and could not do it: an error of
	// its own, of its storage, of its quotas or of something that it has to ask. It
	// says nothing about the object. So does every answer that is not known.
	ErrDistress = errors.New("in distress")
	// ErrRights means that the server does not let us: the credentials are not
	// taken, or lack a right. Nothing was written.
	ErrRights = errors.New("no right")
	// ErrFailed means that the server took the object, and that it came to a bad
	// end: waiting will not help.
	ErrFailed = errors.New("failed")
	// ErrMissing means that something is not there: the object, its namespace, its
	// kind. Nothing was written.
	ErrMissing = errors.New("missing")
	// ErrNoKind means that the server does not know the kind. It comes with
	// [ErrMissing].
	ErrNoKind = errors.New("no such kind")
	// ErrWebhook means that a webhook which the server has to ask did not answer:
	// nobody judged the object. It comes with [ErrDistress].
	ErrWebhook = errors.New("webhook does not answer")
)

// Error is what went wrong with one request, in one line:
//
//	apply Deployment/shop/cart: admission webhook "x" denied the request
//
// errors.Is tells the classes apart, see classOf; the error of an object that was skipped is of the class of the error it was
// skipped for, and a call that its own caller cancelled is of none and wraps
// [context.Canceled].
type Error struct {
	Op     string // "apply", "get", "list", "delete", "discover"
	Object string // "Deployment/shop/cart"; a kind or a path where there is no object
	Code   int    // the HTTP status, or 0 when there was no answer
	// Message is the server's own text, or what was got instead of an answer.
	Message string

	class  error
	cause  error
	status *metav1.Status // nil when the server's answer was none
	after  time.Duration  // Retry-After, zero when there was none
	// audited is set when the answer has the header that an API server gives
	// to each of its answers.
	audited bool
	// unsent is set when the request did not leave this process.
	unsent bool
	// met is set when the object that is there already was the reason to refuse.
	met bool
	// unsure is set when an earlier attempt at the request may have gone
	// through unseen.
	unsure bool
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Op, e.Object, e.Message) }

// Unwrap makes errors.Is find the class and what lies below.
func (e *Error) Unwrap() []error {
	var all []error
	for _, err := range []error{e.class, e.cause} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// isUnwritten says whether an error is proof that the request changed nothing.
func isUnwritten(err error) bool {
	var e *Error
	return errors.As(err, &e) && !e.unsure &&
		(e.unsent || e.Code >= 400 && e.Code < 500 && !e.silent())
}

// isGone says whether the server itself said that the named object is not
// there. A 404 from a proxy, or for a path that is not served, is no such word.
func isGone(err error, name string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == http.StatusNotFound && e.status != nil &&
		e.status.Reason == metav1.StatusReasonNotFound && e.status.Details != nil && e.status.Details.Name == name
}

// isForbidden says whether the server understood and does not allow it.
func isForbidden(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == http.StatusForbidden && !e.silent()
}

// isNamespaceLeaving says whether the server takes nothing new in a namespace
// because that is being deleted, or was a moment ago and the server has not seen
// the new one yet.
func isNamespaceLeaving(err error) bool {
	var e *Error
	return isForbidden(err) && errors.As(err, &e) && e.status != nil && e.status.Details != nil &&
		slices.ContainsFunc(e.status.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == corev1.NamespaceTerminatingCause })
}

// isOtherUID says whether a UID precondition did not hold. There is no reason of
// its own for it; the texts are those of the API server's two layers of storage,
// and of its handler of patches, when there is no object at all.
func (e *Error) isOtherUID() bool {
	return e.Code == http.StatusConflict &&
		(strings.Contains(e.Message, "UID in the precondition") || strings.Contains(e.Message, "UID in precondition") ||
			strings.Contains(e.Message, "uid mismatch: "))
}

// isOtherVersion says whether a precondition on the resource version did not
// hold.
func (e *Error) isOtherVersion() bool {
	return e.Code == http.StatusConflict &&
		(strings.Contains(e.Message, "ResourceVersion in the precondition") || strings.Contains(e.Message, "ResourceVersion in precondition"))
}

// isPathMissing says whether the API server does not serve the path at all:
// there is no such kind, or what we remember of it is out of date. The server
// says so with a bare page for an unknown group; a proxy's page looks the same,
// but lacks the header.
func isPathMissing(err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.Code != http.StatusNotFound {
		return false
	}
	if e.status == nil {
		return e.audited
	}
	return e.status.Details == nil || e.status.Details.Name == ""
}

// transportError is the error for a request that got no answer. ctx is the
// caller's, the attempt's own deadline is not in it.
func transportError(ctx context.Context, req *request, waited time.Duration, err error) *Error {
	e := &Error{Op: req.op, Object: req.object, class: ErrUnreachable, cause: err}
	var dial *net.OpError
	e.unsent = errors.As(err, &dial) && dial.Op == "dial"
	var byURL *url.Error
	if errors.As(err, &byURL) {
		err = byURL.Err // the rest repeats method and address
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		e.class, e.cause, e.Message = nil, context.Canceled, "cancelled"
	case ctx.Err() != nil:
		e.Message = "no answer before the deadline"
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = fmt.Sprintf("no answer within %s", waited)
	default:
		e.Message = line.One(err.Error())
	}
	return e
}

// answerError is the error for an answer outside 2xx. status is nil when the
// body was none.
func answerError(req *request, r *response, status *metav1.Status, header http.Header) *Error {
	e := &Error{
		Op: req.op, Object: req.object, Code: r.code, status: status,
		after: retryAfter(header), audited: header.Get("Audit-Id") != "",
	}
	e.class = classOf(e)
	if e.class == ErrDistress && status != nil && webhookFailed.MatchString(status.Message) {
		e.cause = ErrWebhook
	}
	text := answerText(r.code, r.contentType, r.body, status)
	if req.hide != nil && req.hide(text) {
		text = fmt.Sprintf("%s (the text is withheld: it quotes a value of the secret)", statusText(r.code))
	}
	e.Message = line.Cut(text)
	return e
}

// silent says whether the error came about without a word from an API server:
// there was no answer, or somebody else's.
func (e *Error) silent() bool {
	return e.Code == 0 && e.class == ErrUnreachable || e.Code != 0 && e.status == nil && !e.audited
}

// IsLost says whether an error, or one of several joined ones, came about because
// nobody answered who speaks for the API server. An API server that answers for
// another one behind it, which is away, is not lost.
func IsLost(err error) bool {
	return anyIs(err, func(e *Error) bool {
		var inner *Error
		if errors.As(e.cause, &inner) {
			return IsLost(inner) // e only says what it was for
		}
		return e.class == ErrUnreachable && e.silent()
	})
}

// anyIs asks about an error, or each of several joined ones.
func anyIs(err error, matches func(e *Error) bool) bool {
	switch err := err.(type) {
	case *Error:
		return matches(err)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), func(joined error) bool { return anyIs(joined, matches) })
	case interface{ Unwrap() error }:
		return anyIs(err.Unwrap(), matches)
	}
	return false
}

func answerText(code int, contentType string, body []byte, status *metav1.Status) string {
	if status != nil && status.Message != "" {
		return line.Fold(status.Message)
	}
	text := line.Fold(string(body))
	switch {
	case strings.Contains(contentType, "html"):
		return fmt.Sprintf("answered %s with an HTML page", statusText(code))
	case text == "" || !strings.HasPrefix(contentType, "text/"):
		return fmt.Sprintf("answered %s with content type %q", statusText(code), contentType)
	}
	return fmt.Sprintf("answered %s: %s", statusText(code), text)
}

func statusText(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}
