// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"
)

// Times are shown in UTC, and say so: so they are in the reasons of the daemon, and so
// those of several people can be compared.
const clockLayout = "15:04:05Z"

// fullTime is a time to the second; "-" for none.
func fullTime(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}

// sinceText is " since" a time and how long that is; empty for the zero time.
func sinceText(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return fmt.Sprintf(" since %s (%s)", shortTime(since, now), roundly(now.Sub(since)))
}

// shortTime is a time of the day of now, or with its own day; "-" for none.
func shortTime(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	at, now = at.UTC(), now.UTC()
	if y, m, d := at.Date(); now.Year() == y && now.Month() == m && now.Day() == d {
		return at.Format(clockLayout)
	}
	return at.Format(time.RFC3339)
}
