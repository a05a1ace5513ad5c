// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"testing"
)

func TestDeepRhythm(t *testing.T) {
	for perMinute, want := range map[int]string{1: "1 every 1m0s", 4: "1 every 15s", 6: "1 every 10s", 60: "10 every 10s", 6000: "1000 every 10s"} {
		n, every := deepRhythm(perMinute)
		if got := fmt.Sprintf("%d every %s", n, every); got != want {
			t.Errorf("%d a minute: got %s, want %s", perMinute, got, want)
		}
	}
}
