// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
)

// oneTree is a repository whose commits all have the same files.
type oneTree struct{ tree config.Tree }

func (o oneTree) Tree(config.Commit) (config.Tree, error) { return o.tree, nil }

func (o oneTree) Between(_, to config.Commit) ([]config.Commit, error) {
	return []config.Commit{to}, nil
}

// TestAPlanIsApprovedByItsCommit: a branch may have another commit by now, with the same
// bundles and other gates.
func TestAPlanIsApprovedByItsCommit(t *testing.T) {
	s := newServed(t, config.API{})
	tree := config.Files(fstest.MapFS{"swell.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\nspec: {}\n")}})
	planner := &sync.Planner{Now: func() time.Time { return noon }, Commits: oneTree{tree},
		Resolve: func(string) (config.Commit, error) { return "c0ffee", nil }}
	v := View{Store: s.store, Planner: func() (*sync.Planner, func(), error) { return planner, func() {}, nil }}
	f := must(v.Plan(t.Context(), "main"))(t)
	for _, c := range []struct {
		commit config.Commit
		want   string
	}{{"main", `commit "main": want the whole hash`}, {"", `commit "": want the whole hash`}, {"c0ffee", "nothing of it takes approval"}} {
		if _, err := v.ApprovePlan(t.Context(), PlanApproval{Digest: f.Digest, Commit: c.commit}, Who{Name: "ann"}, noon, s.store.Update); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("commit %q: got %v, want %s", c.commit, err, c.want)
		}
	}
}
