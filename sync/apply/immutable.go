// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/line"
)

// immutable are the texts by which API servers say that a field cannot be
// changed any more, at the end of a cause. There is no reason of its own for
// it: the status is the one of any invalid object. TestImmutableTexts collects
// them from a real server.
var immutable = regexp.MustCompile(`(?is)(?:` + strings.Join([]string{
	`(?:\S+ )?is immutable(?: (?:after|when|once|if)\b[^":]*)?`,
	`\b(?:may not|cannot|can't) be (?:changed|updated|modified)(?: (?:in an update|after|once)\b[^":]*)?`,
	`\b(?:may not change|cannot change)(?: once set| roleRef)?`,
	`\bupdates? (?:to|of) \S+ (?:is|are) forbidden`,
	`\bupdates? to .{1,40} for fields other than [^":]* are forbidden`,
	`\bpod updates may not change fields other than [^":]*`,
}, "|") + `)\.?\s*$`)

// immutableFields are the fields that a refusal says cannot be changed; none
// when it is about something else, or no refusal.
func immutableFields(err error) []string {
	var e *Error
	if !errors.As(err, &e) || e.status == nil || e.status.Reason != metav1.StatusReasonInvalid || e.status.Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range e.status.Details.Causes {
		if isImmutable(cause) && !slices.Contains(fields, cause.Field) {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// neverReplaced says why an object of which the server says that these fields cannot be
// changed is not deleted to make it anew, whatever Git allows; empty when it may be.
func neverReplaced(o *object.Object, fields []string) string {
	for _, field := range fields {
		if strings.HasPrefix(field, "metadata.") {
			return field + " is not what Git changed: something that the server asks at admission, " +
				"a webhook mostly, changes it, and would do so again"
		}
	}
	return o.ID.NeverReplaced()
}

func isImmutable(cause metav1.StatusCause) bool {
	switch cause.Type {
	case metav1.CauseTypeFieldValueInvalid, metav1.CauseTypeForbidden:
		return immutable.MatchString(withoutDiff(cause.Message))
	}
	return false
}

// withoutDiff cuts off the diff of the values that some causes end with.
func withoutDiff(message string) string {
	message, _, _ = strings.Cut(message, "@@")
	return message
}

// because is what a server said of the fields that cannot be changed, without
// the values that it quotes.
func because(e *Error) string {
	var said []string
	for _, cause := range e.status.Details.Causes {
		if text := strings.TrimSuffix(line.One(immutable.FindString(withoutDiff(cause.Message))), "."); isImmutable(cause) && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return strings.Join(said, "; ")
}

// explained says which fields cannot be changed, what the server said, and what
// can be done. never is why the object is not replaced whatever it allows.
func explained(o *object.Object, refusal error, fields []string, never string) error {
	var e *Error
	if !errors.As(refusal, &e) {
		return refusal
	}
	ways := "revert it, give the object a new name (with a hash of what changed in it)"
	if never == "" {
		ways += fmt.Sprintf(", or let it be deleted and made anew with the annotation %s: %s", config.AnnotationReplace, config.ReplaceAllowed)
	} else {
		ways = "revert it, or give the object a new name; it is not replaced: " + never
	}
	why := because(e)
	if hide := hider(o); hide != nil && hide(why) {
		why = "the text is withheld: it quotes a value of the secret"
	}
	said := *e
	said.Message = fmt.Sprintf("%s cannot be changed (%s): %s", strings.Join(fields, ", "), why, ways)
	return &said
}
