// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"fmt"

	"github.com/swell-sh/swell/config/bounds"
)

// Budget is what one written spec has taken on one target: by its own kind, and
// by the kinds of the specs that its templates render, over all levels. It
// counts and measures no time, so what renders does not depend on the machine.
// The zero value has room for all that a spec may take. It is not safe for
// concurrent use.
type Budget struct {
	steps   uint64
	objects int        // rendered so far, easy specs among them
	made    conversion // of all values that went into objects
}

const (
	// maxObjects is how many objects a spec may stand for.
	maxObjects = 10_000
	// objectsTimes is how much more all objects may hold than one value.
	objectsTimes = 4
)

var (
	errCost        = errors.New("the spec's expressions take more steps than one spec may on one target")
	errObjects     = fmt.Errorf("the spec's objects hold more than %d MiB of text or %d parts on one target", bounds.Text*objectsTimes>>20, bounds.Parts*objectsTimes)
	errManyObjects = fmt.Errorf("the spec stands for more than %d objects on one target, easy specs among them", maxObjects)
)

// Over says that something was more than a spec may take. What is rendered
// within the budget then is wrong.
func (b *Budget) Over() bool {
	return b.steps > bounds.SpecCost || b.objects > maxObjects || b.made.over()
}

// spend adds steps, in CEL's unit. A nil budget has no end.
func (b *Budget) spend(steps uint64) error {
	if b == nil {
		return nil
	}
	if b.steps += steps; b.steps > bounds.SpecCost {
		return errCost
	}
	return nil
}

// object counts an object that was rendered.
func (b *Budget) object() error {
	if b.objects++; b.objects > maxObjects {
		return errManyObjects
	}
	return nil
}
