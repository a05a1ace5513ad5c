// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"os"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
)

// TestPanicIsAProblem: a mistake in swell holds the one unit or kind that
// brings it out. What is missing here stands for such a mistake.
func TestPanicIsAProblem(t *testing.T) {
	tree := config.Files(os.DirFS("../testdata/monorepo"))
	r := config.Load(tree, nil)
	w := &world{repository: r}
	var first *config.Unit
	for first = range r.Units() {
		break
	}
	unit := w.renderUnit(first, nil)
	problems := kind.LoadAll(tree, []config.Folder{{Path: "kinds/runtime"}}, nil, nil).Problems
	for _, found := range []document.Problems{unit.problems, problems} {
		if len(found) != 1 || found[0].Code != document.CodeInternal || !strings.Contains(found[0].Message, "internal error, please report: render") {
			t.Errorf("got %v, want one internal error", found)
		}
	}
}
