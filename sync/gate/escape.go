// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package gate

import "net/url"

// escaped are values as they stand in a URL.
func escaped(values map[string]string) map[string]string {
	safe := make(map[string]string, len(values))
	for name, value := range values {
		safe[name] = url.QueryEscape(value)
	}
	return safe
}
