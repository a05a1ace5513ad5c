// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/line"
)

// # Encrypted values
//
// What is sent of an object with encrypted values is a copy with the values in their
// places. Everything that hides what a Secret holds works on that copy: see [hider].

// TryOpen opens all that an apply would send, so that nothing of a bundle is written
// where a part of it cannot be.
func (w *Work) TryOpen(ctx context.Context) error {
	for _, o := range w.Objects {
		if entry := w.Known[o.ID]; o.Sealed == "" || entry.UID != "" && entry.Digest == o.Digest {
			continue
		}
		if _, err := w.open(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// open is an object as it is sent. An error is nobody's verdict on it.
func (w *Work) open(ctx context.Context, o *object.Object) (*object.Object, error) {
	if o.Sealed == "" {
		return o, nil
	}
	opened, err := o, errors.New("its values are encrypted, and there are no keys")
	if w.Open != nil {
		opened, err = w.Open(ctx, o)
	}
	if err != nil {
		return nil, &Error{Op: "decrypt", Object: o.ID.String(), Message: line.One(err.Error()), cause: err, unsent: true}
	}
	return opened, nil
}
