// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// TestFamily finds what a controller made of a Deployment, and says how it is;
// the contents of a Secret are not asked for.
func TestFamily(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	ns := space(t)
	entries := applied(t, c,
		newObject(t, deployment, ns, "web", "1"),
		configMap(t, ns, "a", "1"),
		newObject(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: %s}\nstringData: {password: hunter2}\n", ns),
	)
	gone := configMap(t, ns, "gone", "1")
	entries = append(entries, store.Entry{ID: gone.ID, Version: "v1", UID: "00000000-0000-0000-0000-000000000000"})
	want := []string{"Deployment healthy", " ReplicaSet healthy", "  Pod healthy", "ConfigMap healthy", "Secret healthy", "ConfigMap missing"}
	eventually(t, func() (bool, string) {
		w.take()
		relatives, unknown, err := c.Family(t.Context(), entries)
		if err != nil || len(unknown) > 0 {
			t.Fatal(unknown, err)
		}
		var got []string
		for _, r := range relatives {
			got = append(got, described(r, "")...)
		}
		return slices.Equal(got, want), cmp.Diff(want, got)
	})
	for _, s := range w.take() {
		if s.method != "GET" || strings.Contains(s.path, "/secrets") && !strings.Contains(s.accept, "PartialObjectMetadata") {
			t.Errorf("sent %+v", s)
		}
	}
	none, _, err := c.Family(t.Context(), []store.Entry{{ID: object.ID{Group: "example.com", Kind: "Nothing", Name: "x"}, Version: "v1", UID: "x"}})
	if err != nil || len(none) != 1 || none[0].Health.State != "" {
		t.Errorf("of a kind that is not served: %+v, %v", none, err)
	}
}

func described(r *Relative, indent string) []string {
	state := string(r.Health.State)
	if r.Missing {
		state = "missing"
	}
	lines := []string{fmt.Sprintf("%s%s %s", indent, r.ID.Kind, state)}
	for _, child := range r.Owned {
		lines = append(lines, described(child, indent+" ")...)
	}
	return lines
}
