// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/timezone"
)

// timeZone says what is wanted of the name of a zone. API servers have the zones
// of Go built in, as swell has.
func timeZone(s string) string {
	if _, err := timezone.Load(s); err == nil {
		return ""
	}
	if _, near, ok := strings.Cut(document.DidYouMean(s, timezone.Names()), "did you mean "); ok {
		return "the name of a time zone, perhaps " + strings.TrimSuffix(near, "?")
	}
	return "the name of a time zone, like Europe/Berlin"
}
