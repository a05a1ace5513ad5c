// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/render/kind"
)

// judgeByRule is the health of a live object by the fleet's rule for its kind.
// One that is being deleted, or whose controller has not seen it as it is now,
// is not asked: what its status says is of another time.
func (c *call) judgeByRule(ctx context.Context, live *unstructured.Unstructured, rule *kind.HealthRule) Health {
	if why := outdated(live); why != "" {
		return Health{Progressing, why}
	}
	v := rule.Judge(live.Object)
	if v.Healthy {
		return Health{State: Healthy}
	}
	h := Health{Progressing, oneLine(v.Reason)}
	if v.Failed {
		h.State = Failed
	}
	if h.Reason != "" {
		return h
	}
	h.Reason = oneLine(v.Otherwise)
	if without, err := c.judgeLive(ctx, live); err == nil && without.Reason != "" {
		h.Reason = without.Reason // its conditions and its pods say more
	}
	return h
}

// outdated says why the status of an object says nothing about it as it is now.
// Unlike kstatus it reads an observedGeneration that is a text, as some
// controllers write it.
func outdated(live *unstructured.Unstructured) string {
	if live.GetDeletionTimestamp() != nil {
		return "resource scheduled for deletion"
	}
	written, found, _ := unstructured.NestedFieldNoCopy(live.Object, "status", "observedGeneration")
	observed, err := strconv.ParseInt(fmt.Sprint(written), 10, 64)
	if found && err == nil && live.GetGeneration() != 0 && observed != live.GetGeneration() {
		return fmt.Sprintf("generation is %d, but latest observed generation is %d", live.GetGeneration(), observed)
	}
	return ""
}
