// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swell-sh/swell/sync/demo"
)

// TestLive: what an apply would do is told from what the clusters hold, also
// where somebody changed it behind the daemon's back, and is not done; and what
// controllers made of a unit is shown.
func TestLive(t *testing.T) {
	t.Parallel()
	s := newServerStage(t, demo.CartTargets[0].Cluster)
	s.once(0)
	diffLive := func(wantCode int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, err strings.Builder
		args = append([]string{"diff", "--live", s.repo.Work, "-c", s.config, "--cache", "none"}, args...)
		if code := execute(t.Context(), writingTo(&out, &err), args); code != wantCode {
			t.Fatalf("exit code %d, want %d\n%s\n%s", code, wantCode, &out, &err)
		}
		return out.String(), err.String()
	}
	if out, err := diffLive(0); out != "" || !strings.Contains(err, "no changes") {
		t.Errorf("after a release:\n%s\n%s", out, err)
	}
	target := demo.CartTargets[0]
	tree, _ := verb(t.Context(), "", "tree", "services/shop/cart", "-c", s.config, "--target", target.Cluster)
	for _, want := range []string{"services/shop/cart on " + target.Cluster, "├ Deployment/" + target.Namespace + "/cart ", "│ └ ReplicaSet/" + target.Namespace + "/cart-", "│   └ Pod/", "  healthy"} {
		if !strings.Contains(tree, want) {
			t.Errorf("want %q in the tree\n%s", want, tree)
		}
	}
	if err := errors.Join(
		s.repo.Replace(demo.CartFile, "cart:1.4.2", "cart:1.4.3"),
		os.RemoveAll(filepath.Join(s.repo.Work, "services/shop/recommend")),
		s.clusters[target.Cluster].Edit(t.Context(), target.Namespace, "cart", map[string]any{"spec": map[string]any{"paused": true}, "metadata": map[string]any{"labels": map[string]any{"app": "edited"}}}),
	); err != nil {
		t.Fatal(err)
	}
	before := s.objects()
	out, _ := diffLive(1)
	for _, want := range []string{"1.4.2", "1.4.3", "edited", "services/shop/recommend", "deleted Deployment/*/recommend on 2 targets"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if out, _ := diffLive(1, "--unit", "services/shop/cart", "--target", target.Cluster); strings.Contains(out, "recommend") || !strings.Contains(out, "edited") {
		t.Errorf("one unit on one cluster:\n%s", out)
	}
	if _, err := diffLive(2, "--unit", "services/shop/crt"); !strings.Contains(err, "did you mean") {
		t.Errorf("a unit that is not there: %s", err)
	}
	if d, err := s.clusters[target.Cluster].Deployment(t.Context(), target.Namespace, "cart"); err != nil || !strings.HasSuffix(d.Image, "1.4.2") || s.objects() != before {
		t.Errorf("something was written: %+v, %v", d, err)
	}

	// A tenant with an account sees what the account may see.
	var tenants strings.Builder
	for _, name := range []string{"pay", "platform", "search", "shop", "travel"} {
		fmt.Fprintf(&tenants, "apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: %s}\nspec: {serviceAccount: {namespace: default, name: %s}, clusterKinds: [\"*\", ClusterRoleBinding.rbac.authorization.k8s.io], podSecurity: privileged, clusterRoles: [cluster-admin]}\n---\n", name, name)
	}
	if err := os.WriteFile(filepath.Join(s.repo.Work, "fleet/tenants.yaml"), []byte(tenants.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := diffLive(2, "--unit", "services/shop/cart"); !strings.Contains(err, `User "system:serviceaccount:default:shop" cannot`) {
		t.Errorf("a diff as an account without rights:\n%s", err)
	}
	// What is refused is tried again for as long as a wave may take.
	if err := errors.Join(s.repo.Write("fleet/rollout.yaml", demo.Rollout), s.repo.Push(t.Context(), "accounts")); err != nil {
		t.Fatal(err)
	}
	s.once(1) // the account is written down before it is tried
	tree, _ = verb(t.Context(), "", "tree", "services/shop/cart", "-c", s.config, "--target", target.Cluster)
	if want := `User "system:serviceaccount:default:shop" cannot get resource`; !strings.Contains(tree, want) {
		t.Errorf("want %s in the tree\n%s", want, tree)
	}
}
