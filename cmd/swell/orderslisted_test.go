// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// manyUnits writes the state of a daemon with ten units of the folder few, on target vla/a, and
// eleven of the folder many, on sas/a; each folder has a mask. It returns the daemon's
// configuration. Of each unit a canary soaks on which something failed.
func manyUnits(t *testing.T) (file string) {
	t.Helper()
	now, dir := time.Now().UTC(), t.TempDir()
	s, err := store.Open(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		var errs []error
		add := func(folder string, count int, target config.TargetName) {
			for n := range count {
				spec := config.Rollout{Waves: []config.Wave{{Name: "canary", Soak: time.Hour}}}
				u := &rollout.Unit{
					Path:    config.UnitPath(fmt.Sprintf("%s/%02d", folder, n)),
					Rollout: &rollout.Rollout{ID: 2, Status: rollout.Progressing, Spec: spec},
					Commits: map[object.Digest]config.Commit{"1": "aaaaaaaaaaaa", "2": "bbbbbbbbbbbb"},
					Targets: map[config.TargetName]*rollout.Target{target: {Wanted: "2", Applied: "2", Good: "1", Touched: true,
						TriedAt: now, Trouble: rollout.TroubleUnreachable, Reason: "no answer", Attempts: 1}},
				}
				row, err := json.Marshal(u)
				errs = append(errs, err, tx.PutUnit(u.Path, row))
			}
			mask := order.Order{Verb: order.Mask, Scope: order.Scope{Unit: config.UnitPath(folder)}, At: now, By: "ann", Reason: "x"}
			errs = append(errs, tx.Inherit(&mask))
		}
		add("few", 10, "vla/a")
		add("many", 11, "sas/a")
		return errors.Join(append(errs, tx.PutNames(store.Names{Clusters: []string{"sas", "vla"}}))...)
	})
	file = filepath.Join(dir, "daemon.yaml")
	text := "apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: x}\nspec: {repository: {url: r.git}}\n"
	if err := errors.Join(err, s.Close(), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestOrdersAboutManyUnitsAreListedFirst: a verb that no other one undoes lists what it would do
// above ten units, and with --all, and does it with --yes only. What holds something never asks.
func TestOrdersAboutManyUnitsAreListedFirst(t *testing.T) {
	file := manyUnits(t)
	given := func() int { return len(storedOrders(t, file)) }
	const asked, soaks = "swell: error: not confirmed: there is no terminal to ask on\nswell: hint: --yes does it without asking\n",
		"wave canary ends when it is healthy, whatever its soak and gates say"
	for _, c := range []struct {
		args  string
		count int    // of the units that are listed; 0: it does not ask
		does  string // what the list says of each
	}{
		{"promote many", 11, soaks},
		{"rollback many", 11, "commit aaaaaaaa is put back"},
		{"retry many", 11, "tried again"},
		{"unmask many", 11, "1 target written to again"},
		{"target retire sas", 11, "1 target emptied"},
		{"promote --all", 21, soaks},
		{"rollback --all", 21, "commit aaaaaaaa is put back"},
		{"retry --all", 21, "tried again"},
		{"unmask --all", 21, "1 target written to again"},
		{"promote many/00", 0, ""},
		{"promote few", 0, ""},
		{"rollback few", 0, ""},
		{"retry few", 0, ""},
		{"unmask few", 0, ""},
		{"target retire vla", 0, ""},
		{"pause --all", 0, ""},
		{"pause many", 0, ""},
		{"freeze --all", 0, ""},
		{"freeze many", 0, ""},
		{"mask --all", 0, ""},
		{"mask sas", 0, ""},
		{"promote many --yes", 0, ""},
		{"rollback many --yes", 0, ""},
		{"retry many --yes", 0, ""},
		{"unmask many --yes", 0, ""},
		{"target retire sas --yes", 0, ""},
	} {
		var out, errs bytes.Buffer
		before := given()
		code := execute(t.Context(), writingTo(&out, &errs), append(strings.Fields(c.args), "--reason", "x", "-c", file))
		if c.count == 0 {
			if code != 0 || out.Len() > 0 || given() != before+1 {
				t.Errorf("%s: exit code %d, %d orders more, want one without a question\n%s%s", c.args, code, given()-before, &out, &errs)
			}
			continue
		}
		head, list, _ := strings.Cut(out.String(), "\n")
		lines, effects := strings.Count(list, "\n"), strings.Count(list, "  "+c.does+"\n")
		if strings.Join(strings.Fields(head), " ") != "UNIT EFFECT" || lines != c.count || effects != c.count {
			t.Errorf("%s: the list is\n%s\nwant %d units: %s", c.args, &out, c.count, c.does)
		}
		if code != exitError || !strings.HasSuffix(errs.String(), asked) || given() != before {
			t.Errorf("%s: exit code %d, %d orders more, want none\n%s", c.args, code, given()-before, &errs)
		}
	}
}
