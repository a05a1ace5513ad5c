// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/rollout"
)

// TestASlowSurveyHoldsNoOtherBack: surveys that are over are taken in although an
// earlier one used up the patience. Nobody tells of them again.
func TestASlowSurveyHoldsNoOtherBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Daemon{fleet: fleetOfNames(t), monorepo: monorepo{snapshot: &render.Snapshot{Repository: &config.Repository{}}, wanted: &rollout.Wanted{AllowEmpty: true}},
			surveys: newSurveys(nil)}
		d.surveys.underWay["a"] = make(chan surveyed, 1)
		for i := range 20 {
			over := make(chan surveyed, 1)
			over <- surveyed{err: errors.New("no answer")}
			d.surveys.underWay[fmt.Sprintf("b-%d", i)] = over
		}
		r := Record{At: time.Now()}
		if ended := d.endedSurveys(t.Context(), &r); len(ended) != 20 || len(d.surveys.underWay) != 1 {
			t.Errorf("%d surveys were taken in, want 20", len(ended))
		}
	})
}

// TestASurveyOfAClusterThatIsAway: when it is due again and nobody answers, it is
// put off, and the daemon sleeps until then.
func TestASurveyOfAClusterThatIsAway(t *testing.T) {
	d := sleeper(t, "0 0 1 1 *", 0, noon, "dev")
	d.monorepo.snapshot = &render.Snapshot{Repository: &config.Repository{Fleet: config.Fleet{Clusters: []*config.Cluster{{Name: "dev"}}}}}
	d.monorepo.wanted = &rollout.Wanted{AllowEmpty: true}
	d.surveys.underWay, d.surveys.due, d.surveys.failures = map[string]chan surveyed{}, map[string]time.Time{"dev": noon}, map[string]error{}
	d.endedSurveys(t.Context(), &Record{At: noon})
	if next := d.nextSurvey(); !next.Equal(noon.Add(surveyRetry)) {
		t.Errorf("next survey at %s, want %s", next, noon.Add(surveyRetry))
	}
}
