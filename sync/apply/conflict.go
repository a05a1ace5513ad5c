// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/store"
)

// scaleSubresource is through what an autoscaler, or kubectl scale, sets the
// number of replicas. Fields held so are left to whoever holds them.
const scaleSubresource = "scale"

// conflictsOf are the fields that others hold with other values, when an error
// is the server's word of that; else none. A field that several hold is there
// once for each.
func conflictsOf(err error) []store.Change {
	var e *Error
	if !errors.As(err, &e) || e.Code != http.StatusConflict || e.status == nil || e.status.Details == nil {
		return nil
	}
	var conflicts []store.Change
	for _, cause := range e.status.Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			conflicts = append(conflicts, conflictOf(cause))
		}
	}
	return conflicts
}

// conflictText is the API server's (apimachinery, managedfields/internal/
// conflict.go): `conflict with "x" with subresource "scale" using apps/v1 at
// 2026-01-02T15:04:05Z`. Only an Update has a version; servers of today give no
// time.
var conflictText = regexp.MustCompile(`^conflict with ("(?:[^"\\]|\\.)*")(?: with subresource "([^"]*)")?( using \S+)?(?: at (\S+))?$`)

func conflictOf(cause metav1.StatusCause) store.Change {
	c := store.Change{Field: cause.Field, Manager: store.UnknownManager}
	m := conflictText.FindStringSubmatch(cause.Message)
	if m == nil {
		return c
	}
	if _, err := fmt.Sscanf(m[1], "%q", &c.Manager); err != nil {
		c.Manager = strings.Trim(m[1], `"`)
	}
	c.Subresource, c.Operation = m[2], string(metav1.ManagedFieldsOperationApply)
	if m[3] != "" {
		c.Operation = string(metav1.ManagedFieldsOperationUpdate)
	}
	c.Time, _ = time.Parse(time.RFC3339, m[4])
	return c
}

// scaled parts conflicts into those over fields that somebody holds through the
// scale subresource, and the others.
func scaled(conflicts []store.Change) (left, rest []store.Change) {
	held := map[string]bool{}
	for _, c := range conflicts {
		held[c.Field] = held[c.Field] || c.Subresource == scaleSubresource
	}
	for _, c := range conflicts {
		switch {
		case !held[c.Field]:
			rest = append(rest, c)
		case c.Subresource == scaleSubresource:
			left = append(left, c)
		}
	}
	return left, rest
}

// pointersTo are pointers to the fields of conflicts. Where scale points is a
// path of plain names, for custom resources too (specReplicasPath).
func pointersTo(conflicts []store.Change) []pointer {
	var pointers []pointer
	for _, c := range conflicts {
		pointers = append(pointers, strings.Split(strings.TrimPrefix(c.Field, "."), "."))
	}
	return pointers
}

// isStanding says whether a 409 will be the same when the request is repeated:
// fields are held by others, or the object is another one.
func (e *Error) isStanding() bool { return e.isOtherUID() || len(conflictsOf(e)) > 0 }

// isOtherObject says whether the object with the UID of a patch is gone: there
// is another one of its name, or none. For another one the server says that the
// field cannot be changed; or it says that there is a conflict over fields,
// which it looks at first.
func isOtherObject(err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.status == nil {
		return false
	}
	switch e.Code {
	case http.StatusConflict:
		return e.isOtherUID()
	case http.StatusUnprocessableEntity:
		return e.status.Details != nil && slices.ContainsFunc(e.status.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
	}
	return false
}

// isTaken says whether a patch that may only create found an object there.
func isTaken(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == http.StatusConflict && e.status != nil && !e.isOtherUID()
}

// holders is what conflicts are about in one line, without times, so that the
// text is the same from pass to pass:
//
//	.data.a by kubectl-edit (Update), .data.b by other (Apply)
func holders(conflicts []store.Change) string {
	var parts []string
	for _, c := range conflicts {
		part := c.Field + " by " + c.Author()
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	return document.Some(parts, maxNamed)
}

// maxNamed is how many fields a text names.
const maxNamed = 5
