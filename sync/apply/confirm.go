// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// keeps says whether an object, as rendered, is marked to be kept when nobody
// wants it any more.
func keeps(o *render.Object) bool {
	if !bytes.Contains(o.JSON, []byte(config.AnnotationPrune)) {
		return false
	}
	var object metav1.PartialObjectMetadata
	return json.Unmarshal(o.JSON, &object) == nil && isKept(object.Annotations)
}

// Definition is the name that the definition of an object's kind has if it is a
// custom one: "widgets.example.com".
func (c *Cluster) Definition(ctx context.Context, id render.ObjectID, version string) (string, error) {
	found, err := c.begin().anyResource(ctx, kindOf(id, version))
	return found.plural + "." + found.Group, err
}
