// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"strings"
)

// IsScaler says whether an object sets the number of replicas of another one: an autoscaler of Kubernetes, or of KEDA.
func (id ID) IsScaler() bool {
	return id.Kind == "HorizontalPodAutoscaler" || id.Kind == "ScaledObject"
}

// ScaledBy is the object that a decoded autoscaler, which is in the namespace, scales; without
// a name where it says none. That of KEDA is a Deployment unless it says something else.
func ScaledBy(scaler map[string]any, namespace string) ID {
	spec, _ := scaler["spec"].(map[string]any)
	to, _ := spec["scaleTargetRef"].(map[string]any)
	text := func(key string) string {
		value, _ := to[key].(string)
		return value
	}
	group, _, found := strings.Cut(cmp.Or(text("apiVersion"), "apps/v1"), "/")
	if !found {
		group = ""
	}
	return ID{Group: group, Kind: cmp.Or(text("kind"), "Deployment"), Namespace: namespace, Name: text("name")}
}
