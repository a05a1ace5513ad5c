// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
)

func snapshot(c *Compiler, files fstest.MapFS) *Snapshot {
	return c.Snapshot("", config.Files(maps.Clone(files)))
}
