// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/store"
)

// autoscaler allows all numbers that the tests set: the controller of a real server keeps to its limits.
const autoscaler = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: %[2]s, namespace: %[1]s}
spec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
`

// unscaled is a Deployment that says no number of replicas.
var unscaled = strings.ReplaceAll(scalable, "  replicas: %[2]d\n", "")

// scaleTo sets the number of replicas as kubectl scale does.
func scaleTo(t *testing.T, o *object.Object, n string) {
	t.Helper()
	mergeAs(t, "kubectl", o, `{"spec":{"replicas":`+n+`}}`, "scale")
}

// bring applies a bundle in which everything is changed.
func bring(t *testing.T, c *Cluster, before []Result, objects ...*object.Object) []Result {
	t.Helper()
	known := inventory(t, before)
	for id, entry := range known {
		entry.Digest = ""
		known[id] = entry
	}
	results := c.Apply(t.Context(), Work{Objects: objects, Known: known})
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	return results
}

// existing makes an object as somebody else.
func existing(t *testing.T, o *object.Object) {
	t.Helper()
	bare := unstructuredOf(t, o)
	bare.SetLabels(nil)
	bare.SetAnnotations(nil)
	if _, err := theirs(t, o).Create(t.Context(), bare, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
}

// TestReplicasLeaveGit: where a scaler comes, or is there, the live number stays, and nothing
// of it is drift; where nothing scales, it is what the server makes of no number.
func TestReplicasLeaveGit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		existing, joins bool
		want            int64
	}{"the scaler comes": {joins: true, want: 7}, "the scaler is there": {existing: true, want: 7}, "no scaler": {want: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := connect(t, Options{})
			ns := space(t)
			hpa := newObject(t, autoscaler, ns, "web")
			before := bring(t, c, nil, newObject(t, scalable, ns, 7, "a"))
			bundle := []*object.Object{newObject(t, unscaled, ns, 7, "a")}
			switch {
			case test.existing:
				existing(t, hpa)
			case test.joins:
				bundle = append(bundle, hpa)
			}
			after := bring(t, c, before, bundle...)
			if n := replicas(t, current(t, bundle[0]).Object["spec"]); n != test.want {
				t.Errorf("%d replicas, want %d", n, test.want)
			}
			if got := swept(t, c, []store.Entry{after[0].Entry}); got != nil {
				t.Errorf("drift: %v", got)
			}
			bring(t, c, after, bundle...)
			if n := replicas(t, current(t, bundle[0]).Object["spec"]); n != test.want {
				t.Errorf("once more: %d replicas, want %d", n, test.want)
			}
		})
	}
}

// TestScaledByHand: a number that was set through the scale subresource, zero too, is no drift
// and stands, until Git says another one. Where an autoscaler is there, it stands then too.
func TestScaledByHand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		scaled []string
		hpa    bool
		live   int64 // while Git says the same number
		want   int64 // once Git says another one, 2
	}{
		"to four":              {[]string{"4"}, false, 4, 2},
		"to zero":              {[]string{"0"}, false, 0, 2},
		"to zero and back":     {[]string{"0", "4"}, false, 4, 2},
		"beside an autoscaler": {[]string{"4"}, true, 4, 4},
		"to zero beside it":    {[]string{"0"}, true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := connect(t, Options{})
			ns := space(t)
			o := newObject(t, scalable, ns, 3, "a")
			before := bring(t, c, nil, o)
			if test.hpa {
				existing(t, newObject(t, autoscaler, ns, "other"))
			}
			for _, n := range test.scaled {
				scaleTo(t, o, n)
			}
			if got := swept(t, c, []store.Entry{before[0].Entry}); got != nil {
				t.Errorf("drift: %v", got)
			}
			if test.live == 0 { // it is no proof of a release, unless an autoscaler did it
				want := health.Health{State: health.Healthy}
				if !test.hpa {
					why := "Deployment/" + ns + "/web: scaled to 0 by hand, Git says 3: scale it up, change Git, or mask the target"
					want = health.Health{State: health.Progressing, Reason: why}
				}
				becomes(t, c, want, o)
			}
			for _, image := range []string{"b", "c"} { // a release of something else, twice
				before = bring(t, c, before, newObject(t, scalable, ns, 3, image))
				if n := replicas(t, current(t, o).Object["spec"]); n != test.live {
					t.Errorf("%d replicas beside image %s, want %d", n, image, test.live)
				}
				if len(before[0].Left) != 1 || before[0].Left[0].Field != ".spec.replicas" {
					t.Errorf("left %v", before[0].Left)
				}
			}
			before = bring(t, c, before, newObject(t, scalable, ns, 2, "c"))
			if n := replicas(t, current(t, o).Object["spec"]); n != test.want {
				t.Errorf("%d replicas when Git says 2, want %d", n, test.want)
			}
			want := []string(nil)
			if test.hpa {
				want = []string{".spec.replicas HorizontalPodAutoscaler/" + ns + "/other"}
			}
			if diff := cmp.Diff(want, said(before[0].Left)); diff != "" {
				t.Error(diff)
			}
			if got := swept(t, c, []store.Entry{before[0].Entry}); got != nil {
				t.Errorf("drift: %v", got)
			}
		})
	}
}

// TestScalerGoes: an autoscaler of the unit that leaves Git is none when Git says the number
// again.
func TestScalerGoes(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	o, hpa := newObject(t, unscaled, ns, 7, "a"), newObject(t, autoscaler, ns, "web")
	before := bring(t, c, nil, o, hpa)
	scaleTo(t, o, "6")
	before[0] = bring(t, c, before, newObject(t, scalable, ns, 2, "a"))[0]
	if n := replicas(t, current(t, o).Object["spec"]); n != 2 {
		t.Errorf("%d replicas, want Git's 2", n)
	}
}
