// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/swell-sh/swell/config"
)

// zones are the names in lib/time/zoneinfo.zip of Go 1.26, one a line. API
// servers have the same ones built in. Asking package time instead would make
// the answer depend on the machine.
//
//go:generate sh -c "unzip -Z1 $(go env GOROOT)/lib/time/zoneinfo.zip | grep -v '/$' | LC_ALL=C sort > zones.txt"
//go:embed zones.txt
var zones string

var zoneNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for name := range strings.Lines(zones) {
		names[strings.TrimSuffix(name, "\n")] = true
	}
	return names
})

// timeZone says what is wanted of the name of a zone.
func timeZone(s string) string {
	names := zoneNames()
	if names[s] {
		return ""
	}
	all := make([]string, 0, len(names))
	for name := range names {
		all = append(all, name)
	}
	if _, near, ok := strings.Cut(config.DidYouMean(s, all), "did you mean "); ok {
		return "the name of a time zone, perhaps " + strings.TrimSuffix(near, "?")
	}
	return "the name of a time zone, like Europe/Berlin"
}
