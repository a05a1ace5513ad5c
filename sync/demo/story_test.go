// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/devcluster/devtest"
)

// TestStory tells the first sync and what operators do, and reads from the API servers what
// came of it. SWELL_DEMO=all tells the whole story.
func TestStory(t *testing.T) {
	clusters := devtest.Start(t, Clusters...)
	told := []scene{(*story).firstSync, (*story).siteIsDark, (*story).badKind}
	if os.Getenv("SWELL_DEMO") == "all" {
		told = scenes
	}
	var out strings.Builder
	began := time.Now()
	set := Settings{Dir: t.TempDir(), Kubeconfig: clusters.Kubeconfig, Contexts: Clusters, Timeout: time.Minute}
	if err := run(t.Context(), &out, set, told); err != nil {
		t.Fatalf("%s\n%v", &out, err)
	}
	t.Logf("told in %s", time.Since(began).Round(time.Second))
	s := &story{clusters: map[string]*Live{}}
	for _, name := range Clusters {
		live, err := Connect(clusters, name)
		if err != nil {
			t.Fatal(err)
		}
		s.clusters[name] = live
	}
	all, err := s.carts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := images(all); !slices.Equal(got, []string{"1.4.4", "1.4.4", "1.4.4", "1.4.4"}) {
		t.Errorf("the cells run %q", got)
	}
	// One write for each good version of cart, and no other: neither the masks nor the bad
	// kind wrote anything.
	for _, d := range all[1:] { // the canary took the bad change too
		if want := map[bool]int64{true: 3, false: 2}[len(told) == len(scenes)]; d.Writes != want {
			t.Errorf("generation %d, want %d", d.Writes, want)
		}
	}
	for _, name := range Clusters {
		unready, n, err := s.clusters[name].UnreadyDeployments(t.Context())
		if err != nil || unready > 0 || n == 0 {
			t.Errorf("%s: %d of %d Deployments are not ready, %v", name, unready, n, err)
		}
	}
	for _, said := range []string{"2 of 4 targets owe it", "promoted by hand", "more than budget.failedUnits 1"} {
		if !strings.Contains(out.String(), said) {
			t.Errorf("%q is not told:\n%s", said, &out)
		}
	}
}
