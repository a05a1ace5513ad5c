// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"testing"

	"github.com/swell-sh/swell/config"
)

// A configuration that requires the sandbox says so of charts, too.
func TestChartsTakeTheSandboxOfTheConfiguration(t *testing.T) {
	for setting, want := range map[config.Sandbox]bool{"": false, config.SandboxRequired: true} {
		if got := (&Renderer{Sandbox: setting}).command().Required; got != want {
			t.Errorf("sandbox %q: required is %t", setting, got)
		}
	}
}
