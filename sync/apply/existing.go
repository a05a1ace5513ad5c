// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Existing names the first of the objects that is in the cluster, and whose it is; nothing
// when none is. It costs one metadata GET for each. An object of intended that carries our
// marks for the object's unit is one that an apply which was cut short has made, and is
// passed over.
func (c *Cluster) Existing(ctx context.Context, objects []*object.Object, intended map[object.ID]bool) (string, error) {
	call := c.begin()
	found, errs := make([]*metav1.PartialObjectMetadata, len(objects)), make([]error, len(objects))
	call.all(len(objects), func(i int) { found[i], errs[i] = call.existing(ctx, objects[i]) })
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	for i, o := range objects {
		if found[i] == nil {
			continue
		}
		unit, ours := found[i].Annotations[config.AnnotationUnit], c.isApplied(found[i])
		switch {
		case !ours:
			return fmt.Sprintf("%s is there, made by %s", o.ID, c.liveInfoOf(o.ID, found[i]).by()), nil
		case !intended[o.ID] || unit != o.Annotation(config.AnnotationUnit):
			return fmt.Sprintf("%s is there, of unit %s", o.ID, unit), nil
		}
	}
	return "", nil
}

// existing reads the metadata of the live object; nil when there is none.
func (c *call) existing(ctx context.Context, o *object.Object) (meta *metav1.PartialObjectMetadata, err error) {
	err = c.addressed(ctx, c.resource, kindOf(o.ID, o.Version), func(found resource) error {
		path, err := found.path("get", o.ID)
		if err == nil {
			meta, err = c.getMeta(ctx, o.ID.String(), path)
		}
		return err
	})
	if errors.Is(err, ErrNoKind) || isGone(err, o.ID.Name) {
		return nil, nil
	}
	return meta, on("get", o.ID, err)
}
