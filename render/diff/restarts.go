// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
)

// Restart is that a change makes the pods of a workload anew.
type Restart struct {
	// Pods is how many, over all targets whose objects say how many there are.
	Pods int `json:"pods"`
	// Unknown are the targets whose objects do not: a scaler decides, or the number of nodes.
	Unknown []config.TargetName `json:"unknown,omitempty"`
}

// restarts says whether a change of a workload makes its pods anew: its template changes, and nothing
// has them stay. pods is how many there are, or -1 where the object does not say so.
func restarts(c *Change, obj *object.Object) (pods int, restarts bool) {
	isTemplate := func(f Field) bool { return f.Path == "spec.template" || strings.HasPrefix(f.Path, "spec.template.") }
	if c.Action != Configured || obj.ID.Group != "apps" || !slices.ContainsFunc(c.Fields, isTemplate) {
		return 0, false
	}
	root, _ := decode(obj.JSON).(map[string]any)
	spec := mapping(root, "spec")
	stays := mapping(spec, "updateStrategy")["type"] == "OnDelete" || spec["paused"] == true
	switch n, isSet := spec["replicas"].(json.Number); {
	case stays:
		return 0, false
	case obj.ID.Kind == "DaemonSet":
		return -1, true
	case obj.ID.Kind != "Deployment" && obj.ID.Kind != "StatefulSet":
		return 0, false
	case isSet:
		count, _ := n.Int64()
		return int(count), count > 0
	}
	return -1, true
}

// addRestart takes in the restart on one more target.
func (c *Change) addRestart(target config.TargetName, pods int) {
	if c.Restart == nil {
		c.Restart = &Restart{}
	}
	if pods < 0 {
		c.Restart.Unknown = append(c.Restart.Unknown, target)
		return
	}
	c.Restart.Pods += pods
}

// text is a line of a change.
func (r *Restart) text() string {
	switch {
	case len(r.Unknown) == 0:
		return "restarts " + document.Count(r.Pods, "pod")
	case r.Pods == 0:
		return "restarts its pods"
	}
	return fmt.Sprintf("restarts %s, and those on %s", document.Count(r.Pods, "pod"), document.Count(len(r.Unknown), "target"))
}

// Restarts says in a line how many pods restart; empty where none does.
func (r *Report) Restarts() string {
	pods, known, unknown := 0, 0, 0
	for _, c := range r.Changes {
		switch {
		case c.Restart == nil:
		case len(c.Restart.Unknown) > 0:
			pods += c.Restart.Pods
			unknown++
		default:
			pods += c.Restart.Pods
			known++
		}
	}
	switch workloads := document.Count(known+unknown, "workload"); {
	case known+unknown == 0:
		return ""
	case unknown == 0:
		return fmt.Sprintf("restarts %s of %s", document.Count(pods, "pod"), workloads)
	case pods == 0:
		return "restarts the pods of " + workloads
	default:
		return fmt.Sprintf("restarts at least %s of %s", document.Count(pods, "pod"), workloads)
	}
}
