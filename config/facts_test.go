// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestFacts: what is written is read again, and is the same as written by hand.
func TestFacts(t *testing.T) {
	written := &Facts{Cluster: "sas-1", Pulled: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), Kubernetes: "v1.36.3",
		Namespaces: []NamespaceFacts{
			{Name: "default"},
			{Name: "shop", Labels: map[string]string{"a": "b"}, LimitRanges: []SpecFacts{{Name: "sizes", Spec: map[string]any{"limits": []any{map[string]any{"type": "Container"}}}}}},
		},
		Definitions: []map[string]any{{"kind": "CustomResourceDefinition", "spec": map[string]any{"maximum": int64(5), "half": 0.5}}},
	}
	content, err := written.Write()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(content), "\n") != 11 {
		t.Errorf("want a line for each part, got\n%s", content)
	}
	written.seal()
	ignored := cmpopts.IgnoreFields(Facts{}, "Position", "hash")
	for what, text := range map[string]string{"written": string(content), "YAML": `
apiVersion: swell.sh/v1
kind: ClusterFacts
metadata: {name: sas-1}
spec:
  pulled: "2026-01-31T12:00:00Z"
  kubernetes: v1.36.3
  namespaces:
  - {name: default}
  - name: shop
    labels: {a: b}
    limitRanges: [{name: sizes, spec: {limits: [{type: Container}]}}]
  definitions: [{kind: CustomResourceDefinition, spec: {maximum: 5, half: 0.5}}]
`} {
		read, problems := ReadFacts("facts/sas-1.yaml", []byte(text))
		if len(problems) > 0 {
			t.Errorf("%s: %s", what, problems)
			continue
		}
		if diff := cmp.Diff(written, read, ignored); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", what, diff)
		}
	}
	for _, bad := range []string{"{", `{"apiVersion": "swell.sh/v1", "kind": "ClusterFacts", "metadata": {"name": "A"}, "spec": {}}`,
		strings.Replace(string(content), `"pulled"`, `"pulld"`, 1), strings.Replace(string(content), "2026-01-31T", "yesterday ", 1), string(content) + "{}"} {
		if _, problems := ReadFacts("facts/sas-1.yaml", []byte(bad)); len(problems) != 1 {
			t.Errorf("%.60q: %v", bad, problems)
		}
	}
}

// TestStaleFacts: facts are stale when they are older than the Repository says.
func TestStaleFacts(t *testing.T) {
	now := time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC)
	r := &Repository{Checks: Checks{StaleFacts: DefaultStaleFacts}, Facts: map[string]*Facts{
		"new": {Cluster: "new", Pulled: now.Add(-7 * 24 * time.Hour)}, "old": {Cluster: "old", Pulled: now.Add(-8 * 24 * time.Hour)},
		"undated": {Cluster: "undated"},
	}}
	notes := r.StaleFacts(now)
	want := ": facts of cluster old are 8 days old: swell facts pull old\n" +
		": facts of cluster undated do not say in spec.pulled how old they are: swell facts pull undated"
	if notes.String() != want {
		t.Errorf("got %v", notes)
	}
}
