// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// TestTheOneBeforeIsBeingDeleted: what is refused because an object of its name waits for a
// finalizer waits for that, and is no failure of its bundle. It was rolled back at once, put
// into quarantine, and the advice was to allow a replacement.
func TestTheOneBeforeIsBeingDeleted(t *testing.T) {
	t.Parallel()
	const (
		held = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {swell.sh/replace: $}}, immutable: true, data: {value: '1'}}"
		next = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {swell.sh/replace: $}}, immutable: true, data: {value: '2'}}"
	)
	with := func(text, replace string) string { return strings.ReplaceAll(text, "$", replace) }
	for name, c := range map[string]struct {
		replace string
		theirs  bool
		adopt   config.Adoption
		putBack bool
	}{
		"changed":  {replace: "never"},
		"replaced": {replace: "allowed"},
		"putback":  {replace: "allowed", putBack: true},
		"never":    {replace: "never", theirs: true, adopt: config.AdoptNever},
		"values":   {replace: "never", theirs: true, adopt: config.AdoptIfSame},
		"taken":    {replace: "allowed", theirs: true, adopt: config.AdoptTake},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, _ := connect(t, Options{})
			ns, s := space(t), newState(t, conn)
			id := object.ID{Kind: "ConfigMap", Namespace: ns, Name: "a"}
			if c.theirs {
				create(t, configMaps, strings.ReplaceAll(with(held, "never"), "%s", ns))
			} else {
				s.apply("x", newObject(t, with(held, c.replace), ns))
			}
			edit(t, id, types.MergePatchType, `{"metadata":{"finalizers":["example.com/wait"]}}`, "other")
			if c.theirs {
				remove(t, id)
			} else {
				s.deletes(id)
			}
			bring := func() []Result {
				known := maps.Clone(s.known)
				got := conn.Apply(t.Context(), Work{Objects: []*object.Object{newObject(t, with(next, c.replace), ns)}, Bundle: "y", Known: known, Adopt: c.adopt, PutBack: c.putBack})
				s.keep(got)
				return got
			}
			for range 2 {
				got := bring()
				same(t, []string{"ConfigMap skipped (deletion of ConfigMap/" + ns + "/a)"}, outcomes(got))
				same(t, "waits for deletion of ConfigMap/"+ns+"/a: terminating, waits for example.com/wait", got[0].Reason)
				if !got[0].IsOutside() {
					t.Error("it counts against the bundle")
				}
			}
			edit(t, id, types.MergePatchType, `{"metadata":{"finalizers":null}}`, "other")
			got := bring()
			if got[0].Err != nil || got[0].Waits != "" {
				t.Errorf("afterwards: %+v", got[0])
			}
		})
	}
}
