// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"net/url"
	"strings"
)

// WebURL parses the URL of a service. Its error says what is wanted and what is there, but for
// a password.
func WebURL(text string) (*url.URL, error) {
	at, err := url.Parse(text)
	if err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Host != "" && at.User == nil {
		return at, nil
	}
	return nil, fmt.Errorf("want http:// or https:// with a host and without a user, not %q", WithoutUser(text))
}

// WithoutUser is the text of a URL, shortened, with dots for all that may let somebody in: a user and a
// password, a query, a fragment. It need be no URL.
func WithoutUser(text string) string {
	if user := strings.LastIndexByte(text, '@'); user >= 0 { // a password may have a ? in it
		text = "..." + text[user:]
	}
	if end := strings.IndexAny(text, "?#"); end >= 0 {
		text = text[:end+1] + "..."
	}
	return Shorten(text)
}
