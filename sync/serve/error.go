// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/swell-sh/swell/sync/store"
)

// Error is why something was not done, for people and programs. The API answers with it
// as application/problem+json (RFC 9457).
type Error struct {
	huma.ErrorModel
	// Hint is what to do about it; it may be empty.
	Hint string `json:"hint,omitempty"`
}

func refuse(status int, format string, args ...any) *Error {
	return &Error{ErrorModel: huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: fmt.Sprintf(format, args...)}}
}

func (e *Error) hint(text string) *Error {
	e.Hint = text
	return e
}

// Error is the text, with what is wrong with single fields of a request.
func (e *Error) Error() string {
	text := e.Detail
	for _, d := range e.Errors {
		text += "; " + d.Message
		if d.Location != "" {
			text += " (" + d.Location + ")"
		}
	}
	return text
}

// problemOf is any error as an [Error].
func problemOf(err error) error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.Is(err, store.ErrNoPlan):
		return refuse(http.StatusNotFound, "%s", err)
	case errors.Is(err, store.ErrApproved), errors.Is(err, store.ErrKey):
		return refuse(http.StatusConflict, "%s", err)
	case errors.Is(err, fs.ErrNotExist):
		return refuse(http.StatusNotFound, "%s", err)
	}
	return refuse(http.StatusInternalServerError, "%s", err)
}
