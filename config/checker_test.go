// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/swell-sh/swell/config"
)

// TestAProgramGetsTheText: arguments that do not name the text have the program judge nothing.
func TestAProgramGetsTheText(t *testing.T) {
	const missing = "mine.yaml:6:27: spec.checkers[0].command: no argument has ${file}, so the program never gets the text: " +
		"write ${file}, or ${dir} for its folder, or leave the arguments out for those of swell's recipe"
	for command, want := range map[string]string{
		`[lint, "${flie}"]`: missing, "[lint, -t]": missing, `[lint, "--in=${file}"]`: "", `[lint, "${dir}"]`: "", "[nginx]": "",
	} {
		text := "apiVersion: swell.sh/v1\nkind: CheckerPrograms\nmetadata: {name: mine}\nspec:\n  checkers:\n  - {name: mine, command: " +
			"" + command + "}\n"
		if _, problems := config.ReadCheckerPrograms("mine.yaml", []byte(text)); problems.String() != want {
			t.Errorf("%s: got %q, want %q", command, problems, want)
		}
	}
}
