// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// TestNewerThan: what is evidence of an older state, and what is not.
func TestNewerThan(t *testing.T) {
	const early, then, late = "2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z"
	print := func(fields, at string) string {
		sum := sha256.Sum256([]byte(fields + "\n" + at))
		return hex.EncodeToString(sum[:])
	}
	config := object.ID{Kind: "ConfigMap", Namespace: "shop", Name: "one"}
	known := store.Entry{Unit: "shop", Target: "a/1", ID: config, UID: "1", Digest: "d", Fields: "f", Fingerprint: print("f", then), Written: then}
	live := func(fields, at, uid string) store.Entry {
		return store.Entry{Unit: "shop", ID: config, UID: uid, Fields: fields, Fingerprint: print(fields, at), Written: at}
	}
	with := func(e store.Entry, change func(*store.Entry)) store.Entry { change(&e); return e }
	intended := with(known, func(e *store.Entry) { e.Digest = "" })
	legacy := with(known, func(e *store.Entry) { e.Written = "" })
	job := object.ID{Group: "batch", Kind: "Job", Namespace: "shop", Name: "hook"}
	asJob := func(e store.Entry) store.Entry { return with(e, func(e *store.Entry) { e.ID = job }) }
	for name, c := range map[string]struct {
		inventory []store.Entry
		live      store.Entry
		want      string
	}{
		"as recorded":                        {[]store.Entry{known}, live("f", then, "1"), ""},
		"somebody else took a field":         {[]store.Entry{known}, live("less", then, "1"), ""},
		"written later":                      {[]store.Entry{known}, live("f", late, "1"), "was written by swell at " + late + ", and the state knows of " + then},
		"made anew by us later":              {[]store.Entry{known}, live("f", late, "2"), "was written by swell"},
		"of a storage that was put back":     {[]store.Entry{known}, live("f", early, "1"), ""},
		"an earlier one that came back":      {[]store.Entry{known}, live("f", early, "0"), ""},
		"a write was intended":               {[]store.Entry{intended}, live("f", late, "1"), ""},
		"another unit has written it":        {[]store.Entry{intended, with(known, func(e *store.Entry) { e.Unit, e.Fingerprint, e.Written = "other", print("f", late), late })}, live("f", late, "1"), ""},
		"another unit had it once":           {[]store.Entry{intended, known}, live("f", late, "1"), "was written by swell"},
		"no time on record, as recorded":     {[]store.Entry{legacy}, live("f", then, "1"), ""},
		"no time on record, a field is lost": {[]store.Entry{legacy}, live("less", then, "1"), ""},
		"no time on record, another time":    {[]store.Entry{legacy}, live("f", late, "1"), "the state knows of an earlier time"},
		"not known, and new":                 {[]store.Entry{with(known, func(e *store.Entry) { e.ID.Name = "two" })}, live("f", late, "1"), "and the state does not know it"},
		"not known, and old":                 {[]store.Entry{with(known, func(e *store.Entry) { e.ID.Name = "two" })}, live("f", early, "1"), ""},
		"not known, and orphaned":            {nil, with(live("f", late, "1"), func(e *store.Entry) { e.Keep = true }), ""},
		"nothing is known":                   {nil, live("f", late, "1"), "and the state does not know it"},
		"a hook that ran":                    {[]store.Entry{with(asJob(known), func(e *store.Entry) { e.Ran = "d" })}, asJob(live("f", late, "2")), ""},
		"a Job while its unit is written":    {[]store.Entry{asJob(known)}, asJob(live("f", late, "2")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Daemon{state: &rollout.State{}}
			got := d.newerThan(c.inventory, []store.Entry{c.live}, nil, func(e store.Entry) bool { return e.Keep })
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestUnlistedIsNoOlderState: what the last survey could not list is not on record, and
// proves nothing when it is found.
func TestUnlistedIsNoOlderState(t *testing.T) {
	d := &Daemon{state: &rollout.State{}}
	none := func(store.Entry) bool { return false }
	for unknown, older := range map[string]bool{"": true, "ConfigMap": false, "v1": false, "Secret": true, "apps/v1": true, "ConfigMap.example.com": true} {
		found := []store.Entry{{Unit: "shop", ID: object.ID{Kind: "ConfigMap", Namespace: "shop", Name: "one"}, UID: "1", Written: "2026-03-01T11:00:00Z"}}
		if got := d.newerThan(nil, found, []string{unknown}, none); (got != "") != older {
			t.Errorf("%q unknown: got %q", unknown, got)
		}
	}
	widget := []store.Entry{{ID: object.ID{Group: "example.com", Kind: "Widget", Name: "one"}, Written: "2026-03-01T11:00:00Z"}}
	for _, unknown := range []string{"Widget.example.com", "example.com/v1"} {
		if got := d.newerThan(nil, widget, []string{"Node", unknown}, none); got != "" {
			t.Errorf("%q unknown: got %q", unknown, got)
		}
	}
}
