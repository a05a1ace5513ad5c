// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"testing"

	"code.gitea.io/sdk/gitea"
)

// TestGiteaPull: a pull request counts as one of the repository only where its branch is there.
// All else may be anybody's.
func TestGiteaPull(t *testing.T) {
	own := func(name, ref string) *gitea.PRBranchInfo {
		return &gitea.PRBranchInfo{RepoID: 1, Name: name, Ref: ref}
	}
	others := func(id int64) *gitea.PRBranchInfo {
		return &gitea.PRBranchInfo{RepoID: id, Name: "change", Ref: "change"}
	}
	for name, test := range map[string]struct {
		head, base *gitea.PRBranchInfo
		fork       bool
		ref        string
	}{
		"a branch":                  {own("change", "change"), own("main", "main"), false, "refs/heads/change"},
		"of a fork":                 {others(2), own("main", "main"), true, "refs/pull/7/head"},
		"a branch that is gone":     {own("refs/pull/7/head", "refs/pull/7/head"), own("main", "main"), true, "refs/pull/7/head"},
		"without the name of one":   {own("", "change"), own("main", "main"), true, "refs/pull/7/head"},
		"a head that is gone":       {nil, own("main", "main"), true, "refs/pull/7/head"},
		"a base that is gone":       {own("change", "change"), nil, true, "refs/pull/7/head"},
		"a repository that is gone": {others(0), own("main", "main"), true, "refs/pull/7/head"},
	} {
		pull := giteaPull(&gitea.PullRequest{Index: 7, Head: test.head, Base: test.base})
		if pull.Fork != test.fork || pull.Ref != test.ref {
			t.Errorf("%s: got %t %s, want %t %s", name, pull.Fork, pull.Ref, test.fork, test.ref)
		}
	}
}
