// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// notRunning is what commands say that read the state of a daemon that does not run.
const notRunning = "swell: the daemon is not running; this is the last recorded state\n"

// someState writes the state of a daemon with two units on two targets and
// returns the daemon's configuration.
func someState(t *testing.T) (file string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "daemon.yaml")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cart := &rollout.Unit{
		Path:    "services/shop/cart",
		Rollout: &rollout.Rollout{ID: 2, Commit: "aaaaaaaaaaaa", Status: rollout.Progressing, Reason: "wave canary waits for sas/a"},
		Commits: map[object.Digest]config.Commit{"d1": "bbbbbbbbbbbb", "d2": "aaaaaaaaaaaa"},
		Targets: map[config.TargetName]*rollout.Target{
			"sas/a": {Wanted: "d2", Applied: "d1", Trouble: rollout.TroubleUnreachable, Reason: "cluster sas: no answer within 5s"},
			"vla":   {Wanted: "d2", Applied: "d2", Health: rollout.HealthGood, Drifted: true},
		},
	}
	search := &rollout.Unit{
		Path:    "services/search",
		Rollout: &rollout.Rollout{ID: 1, Commit: "bbbbbbbbbbbb", Status: rollout.Done},
		Commits: map[object.Digest]config.Commit{"d": "bbbbbbbbbbbb"},
		Targets: map[config.TargetName]*rollout.Target{"vla": {Wanted: "d", Applied: "d", Health: rollout.HealthFailed, Trouble: rollout.TroubleFailed, Reason: "Pod/x: CrashLoopBackOff"}},
	}
	entries := []store.Entry{
		{Unit: cart.Path, Target: "sas/a", ID: object.ID{Group: "apps", Kind: "Deployment", Namespace: "shop-a", Name: "cart"}, Version: "v1", UID: "u-1", Digest: "d"},
		{Unit: cart.Path, Target: "vla", ID: object.ID{Kind: "Service", Namespace: "shop", Name: "cart"}, Version: "v1", UID: "u-2"},
	}
	intended := []store.Entry{{Unit: search.Path, Target: "vla", ID: object.ID{Kind: "Service", Namespace: "search", Name: "search"}, Version: "v1"}}
	s, err := store.Open(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		var errs []error
		for _, u := range []*rollout.Unit{cart, search} {
			row, err := json.Marshal(u)
			errs = append(errs, err, tx.PutUnit(u.Path, row))
		}
		return errors.Join(append(errs, tx.Confirm(entries), tx.Intend(intended), tx.Swept("vla", at),
			tx.PutDrifts([]store.Drift{{Object: entries[1].Of(), Found: at, Mode: "report", Changes: []store.Change{{Field: ".spec.type", Manager: "kubectl-edit", Operation: "Update", Time: at}}}}),
			tx.AddHistory([]store.Event{
				{Time: at, Commit: "aaaaaaaaaaaa", Unit: cart.Path, Rollout: 2, Kind: "started", Text: "2 targets in 2 waves"},
				{Time: at.Add(time.Second), Unit: search.Path, Target: "vla", Rollout: 1, Wave: "all", Kind: "failed", Text: "Pod/x: CrashLoopBackOff"},
				{Time: at.Add(2 * time.Second), Unit: cart.Path, Target: "vla", Rollout: 2, Wave: "rest", Kind: "healthy"},
			}))...)
	})
	if err := errors.Join(err, s.Close(), os.WriteFile(file, []byte("apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: x}\nspec: {repository: {url: r.git}}\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestGetAndHistory(t *testing.T) {
	file := someState(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct{ args, want string }{
		{"get units", `
UNIT                STATUS   WAVE  COMMIT       TARGETS  REASON
services/search     failed   -     bbbbbbbb     0/1      target vla: Pod/x: CrashLoopBackOff
services/shop/cart  drifted  -     aaaaaaaa +1  0/2
    wave canary waits for sas/a; target vla: Service/shop/cart: .spec.type: kubectl-edit (Update, ` + at.UTC().Format(time.RFC3339) + `)
`},
		{"get units services/shop/ -o name", "services/shop/cart\n"},
		{"get objects", `
OBJECT                  TARGET  UNIT                STATE
Deployment/shop-a/cart  sas/a   services/shop/cart  applied
Service/search/search   vla     services/search     intended
Service/shop/cart       vla     services/shop/cart  to be applied again
`},
		{"get objects -o name", "sas/a Deployment/shop-a/cart\nvla Service/search/search\nvla Service/shop/cart\n"},
		{"get objects -o wide", `
OBJECT                  TARGET  UNIT                STATE                UID
Deployment/shop-a/cart  sas/a   services/shop/cart  applied              u-1
Service/search/search   vla     services/search     intended             -
Service/shop/cart       vla     services/shop/cart  to be applied again  u-2
`},
		{"get objects services/search -o json", `
{
  "apiVersion": "swell.sh/v1",
  "kind": "ObjectList",
  "items": [
    {
      "target": "vla",
      "unit": "services/search",
      "version": "v1",
      "kind": "Service",
      "namespace": "search",
      "name": "search",
      "state": "intended"
    }
  ]
}
`},
		{"get drift services/shop", `
OBJECT             TARGET  UNIT                MODE    FOUND                 WHAT
Service/shop/cart  vla     services/shop/cart  report  2026-01-02T03:04:05Z
    Service/shop/cart: .spec.type: kubectl-edit (Update, ` + at.UTC().Format(time.RFC3339) + `)
`},
		{"get drift services/search -o json", `
{
  "apiVersion": "swell.sh/v1",
  "kind": "DriftList",
  "items": []
}
`},
		{"get targets", `
TARGET  UNITS  READY  FAILED  WAITING  DRIFTED  SWEPT                 REASON
sas/a   1      0/1    0       1        0        -                     cluster sas: no answer within 5s
vla     2      0/2    1       0        1        2026-01-02T03:04:05Z  services/search: Pod/x: CrashLoopBackOff
`},
		{"history services/shop", `
TIME                  COMMIT    UNIT                TARGET  WAVE  EVENT    TEXT
2026-01-02T03:04:05Z  aaaaaaaa  services/shop/cart  -       -     started  2 targets in 2 waves
2026-01-02T03:04:07Z  -         services/shop/cart  vla     rest  healthy
`},
		{"history -n 1 -o json", `
{
  "apiVersion": "swell.sh/v1",
  "kind": "EventList",
  "items": [
    {
      "seq": 3,
      "time": "` + time.Date(2026, 1, 2, 3, 4, 7, 0, time.UTC).Format(time.RFC3339) + `",
      "unit": "services/shop/cart",
      "target": "vla",
      "rollout": 2,
      "wave": "rest",
      "kind": "healthy"
    }
  ]
}
`},
		{"history services/shop/crt", "swell: error: \"services/shop/crt\": no such unit, did you mean \"services/shop/cart\"?\n"},
		{"get objects services/sho", "swell: error: \"services/sho\": no such unit, want one of services/search, services/shop/cart\n"},
		{"get units -o xml", "swell: error: -o \"xml\": want table, wide, name, json or yaml\nswell: hint: swell get units --help lists the flags\n"},
		{"history -n 0", "swell: error: -n \"0\": want a number from 1 to 10000\n" +
			"swell: hint: swell history --help lists the flags\n"},
		{"history --limit 10001", "swell: error: -n \"10001\": want a number from 1 to 10000\n" +
			"swell: hint: swell history --help lists the flags\n"},
		{"events -n 0", "swell: error: -n \"0\": want a number from 1 to 10000\n" +
			"swell: hint: swell events --help lists the flags\n"},
		{"events -n -3", "swell: error: -n \"-3\": want a number from 1 to 10000\n" +
			"swell: hint: swell events --help lists the flags\n"},
		{"events --since -2", "swell: error: --since \"-2\": want the number of an event, or 0 for all of them\n" +
			"swell: hint: swell events --help lists the flags\n"},
	} {
		var out, errors bytes.Buffer
		code := execute(t.Context(), writingTo(&out, &errors), append(strings.Fields(c.args), "-c", file))
		if code != 0 {
			out = errors
		} else if errors.String() != notRunning {
			t.Errorf("swell %s says %q besides", c.args, &errors)
		}
		lines := strings.Split(out.String(), "\n")
		for i := range lines { // of a last column that is empty
			lines[i] = strings.TrimRight(lines[i], " ")
		}
		if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), strings.Join(lines, "\n")); diff != "" {
			t.Errorf("swell %s (-want +got):\n%s", c.args, diff)
		}
	}
}
