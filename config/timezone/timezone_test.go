// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package timezone

import (
	"testing"
	"time"
)

// TestLoad: zones come from the program, and nothing else is one.
func TestLoad(t *testing.T) {
	t.Setenv("ZONEINFO", t.TempDir())
	summer := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for name, want := range map[string]string{"UTC": "12:00", "Europe/Berlin": "14:00", "Asia/Kathmandu": "17:45", "America/New_York": "08:00", "Etc/GMT+5": "07:00"} {
		zone, err := Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := summer.In(zone).Format("15:04"); got != want || zone.String() != name {
			t.Errorf("%s: %s in %s, want %s", name, got, zone, want)
		}
		if again, _ := Load(name); again != zone {
			t.Errorf("%s: another zone the second time", name)
		}
	}
	for _, name := range []string{"", "Local", "local", "utc", "europe/berlin", "Europe", "Europe/", "/Europe/Berlin", "../Europe/Berlin", "Europe/../UTC", "a\x00", "+02:00"} {
		if zone, err := Load(name); err == nil {
			t.Errorf("%q: %s, want an error", name, zone)
		}
	}
}
