// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
)

// TestDigestOfAForecast: who approves a plan by its digest approves what it said. So another
// commit, other bundles and other deletions have another one.
func TestDigestOfAForecast(t *testing.T) {
	wanted := func(digest object.Digest) *rollout.Wanted {
		return &rollout.Wanted{Units: map[config.UnitPath]*rollout.WantedUnit{
			"services/a": {Targets: map[config.TargetName]rollout.WantedTarget{"one": {Digest: digest}}},
		}}
	}
	deletes := func(digests ...object.Digest) (all []DeletionForecast) {
		for _, d := range digests {
			all = append(all, DeletionForecast{Digest: d})
		}
		return all
	}
	digestOf := func(refused string, changing []config.UnitPath, digest object.Digest, deletions []DeletionForecast) object.Digest {
		f := &forecast{comes: changing}
		f.Refused, f.wanted, f.Deletions = refused, wanted(digest), deletions
		return f.digest()
	}
	unit := []config.UnitPath{"services/a"}
	seen := map[object.Digest]string{}
	for name, digest := range map[string]object.Digest{
		"nothing":           digestOf("", nil, "1", nil),
		"a unit":            digestOf("", unit, "1", nil),
		"another bundle":    digestOf("", unit, "2", nil),
		"refused":           digestOf("no fleet", nil, "1", nil),
		"a deletion":        digestOf("", unit, "1", deletes("d1")),
		"another deletion":  digestOf("", unit, "1", deletes("d2")),
		"two deletions":     digestOf("", unit, "1", deletes("d1", "d2")),
		"a deletion, alone": digestOf("", nil, "1", deletes("d1")),
	} {
		if other := seen[digest]; other != "" {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[digest] = name
	}
	if name := seen[digestOf("", unit, "1", deletes("d1"))]; name != "a deletion" {
		t.Errorf("the same plan has another digest, that of %q", name)
	}
}
