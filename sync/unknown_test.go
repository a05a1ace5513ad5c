// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/rollout"
)

// deletes counts the DELETE requests that swell sent since the last time.
func (w *world) deletes() (n int) {
	w.Helper()
	for what, count := range w.requests() {
		if strings.HasPrefix(what, "delete") {
			n += count
		}
	}
	return n
}

// TestUnknownDeletesNothing goes through the ways in which it can be unknown
// what should exist. While it is, an object that another unit dropped stays too,
// where it may be on its way to what is not known; after it, all is as before.
func TestUnknownDeletesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.app("other", "1", "three")
	w.write("more/third/app.yaml", "apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: third}\nspec: {image: registry.example.com/app:1, configs: [four]}\n")
	w.write("more/swell.yaml", fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: more}\nspec: {tenant: %s, placement: {topology: cell}}\n", w.tenant))
	repository := func(units string) {
		w.write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: "+w.tenant+"}\nspec: {units: ["+units+"]}\n")
	}
	repository("services, more")
	w.commit()
	w.release()
	w.until("other", w.is("other", 1, rollout.Done))
	third := func() *rollout.Unit { return w.daemon.State().Units["more/third"] }
	w.until("third", func() bool { u := third(); return u != nil && u.Rollout.Status == rollout.Done })
	before := w.uids()
	if len(before) != 18 {
		t.Fatalf("%d objects before: %v", len(before), before)
	}
	const otherApp = "services/other/app.yaml"
	bad := "apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: other}\nspec: {imgae: x}\n"
	nothing := strings.Replace(appKind, "  - id: deployment\n", "  - id: deployment\n    when: \"false\"\n", 1)
	nothing = strings.Replace(nothing, "each: {name: self.spec.configs}", "each: {name: \"self.spec.configs.filter(c, false)\"}", 1)
	for _, c := range []struct {
		name   string
		change func()
		// undo brings back what git checkout does not.
		undo func()
		text string // of the record or of a unit
	}{
		{name: "a fleet with a problem", change: func() { w.write("fleet/fleet.yaml", "kind: Cluster\n") }},
		{name: "a unit with a problem", change: func() { w.write(otherApp, bad); w.app("app", "1") }},
		{name: "a kind that does not load", change: func() { w.write("kinds/app/kind.yaml", "kind: EasyKind\n") }},
		{name: "a kind that is gone", change: func() { w.must(os.RemoveAll(filepath.Join(w.repo(), "kinds/app"))) }},
		{name: "a kind that renders to nothing", change: func() { w.write("kinds/app/kind.yaml", nothing) }, text: "renders to nothing"},
		{name: "a file without documents", change: func() { w.write(otherApp, "# nothing\n") }},
		{name: "a file that is a link", change: func() {
			w.must(errors.Join(os.Remove(filepath.Join(w.repo(), otherApp)), os.Symlink("../app/app.yaml", filepath.Join(w.repo(), otherApp))))
		}},
		{name: "an empty fleet", change: func() {
			w.write("fleet/fleet.yaml", fleetYAML[strings.Index(fleetYAML, "apiVersion: swell.sh/v1\nkind: Rollout"):])
		}},
		{name: "no folder of the fleet", change: func() { w.must(os.RemoveAll(filepath.Join(w.repo(), "fleet"))) }},
		{name: "a placement that matches nothing", change: func() {
			w.write("services/swell.yaml", fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: %s, placement: {match: {labels: {site: nowhere}}}}\n", w.tenant))
		}},
		{name: "an empty repository", change: func() { w.git("rm", "--quiet", "-r", ".") }},
		{name: "no units", change: func() {
			w.must(os.RemoveAll(filepath.Join(w.repo(), "services")))
			w.must(os.RemoveAll(filepath.Join(w.repo(), "more/third")))
			w.write("services/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {}\n")
		}, text: "--dangerous-allow-empty"},
		{name: "a folder of units that is not named any more", change: func() { repository("more") }, text: "swell.yaml names no folder of units any more"},
		{name: "a folder of units under a name that is not there", change: func() { repository("services, most") }},
		{name: "Git is away", change: func() { w.must(os.Rename(w.repo(), w.repo()+"-away")) },
			undo: func() { w.must(os.Rename(w.repo()+"-away", w.repo())) }, text: "git"},
		{name: "the branch is deleted", change: func() { w.git("branch", "-m", "main", "other") },
			undo: func() { w.git("branch", "-m", "other", "main") }, text: "main"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.deletes()
			c.change()
			if c.undo == nil {
				w.commit()
			}
			var said []string
			for range 8 {
				r := w.pass()
				for _, err := range r.Errors {
					said = append(said, err.Error())
				}
				said = append(said, r.Problems.String())
				w.now = w.now.Add(10 * time.Minute)
			}
			for path, u := range w.daemon.State().Units {
				said = append(said, fmt.Sprintf("%s: %s", path, u.Blocked))
			}
			if n := w.deletes(); n > 0 {
				t.Errorf("%d DELETE requests", n)
			}
			w.sameUIDs("while it is unknown", before)
			if plans := w.plans(); len(plans) > 0 {
				t.Errorf("plans: %v", plans)
			}
			if all := strings.Join(said, "\n"); !strings.Contains(all, c.text) || strings.TrimSpace(all) == "" {
				t.Errorf("said %q, want %q in it", all, c.text)
			}
			if c.undo != nil {
				c.undo()
			} else {
				w.git("revert", "--no-edit", "HEAD")
			}
			w.until("the way back", func() bool {
				for _, u := range w.daemon.State().Units {
					if u.Blocked != "" || u.Rollout.Status != rollout.Done {
						w.now = w.now.Add(time.Minute)
						return false
					}
				}
				return true
			})
			w.sameUIDs("after it", before)
		})
	}
}

// TestClusterLeavesTheFleet: the objects of a cluster whose document was removed
// stay, and somebody is asked whether swell forgets that it had to look after them.
func TestClusterLeavesTheFleet(t *testing.T) { simulated(t, testClusterLeavesTheFleet) }

func testClusterLeavesTheFleet(t *testing.T, w *world) {
	w.release()
	before := w.uids()
	w.deletes()
	first, rest, _ := strings.Cut(fleetYAML, "---\n")
	_, last, _ := strings.Cut(rest, "---\n")
	w.write("fleet/fleet.yaml", first+"---\n"+last)
	w.commit()
	w.until("the rollout", func() bool { u := w.unit("app"); return len(u.Targets) == 2 && u.Rollout.Status == rollout.Done })
	w.idle(time.Hour)
	w.sameUIDs("without dev-2", before)
	if n, plan := w.deletes(), w.plan(); n > 0 || plan.Forgets() != "dev-2" {
		t.Errorf("%d DELETE requests, plan %v", n, plan)
	}
}

// TestEmptySet: nothing but the flag brings a fleet to nothing, and what takes
// approval still takes it.
func TestEmptySet(t *testing.T) { simulated(t, testEmptySet) }

func testEmptySet(t *testing.T, w *world) {
	w.release()
	before := w.uids()
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services")))
	w.write("services/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {}\n")
	w.commit()
	w.idle(time.Hour)
	w.sameUIDs("without the flag", before)
	w.empty = true
	w.stop()
	w.start()
	w.until("the namespaces' plan", w.soon(func() bool {
		plans := w.plans()
		return w.unit("app") == nil && len(plans) == 1 && len(plans[0].Deletions) == 3
	}))
	plan := w.plan()
	for _, d := range plan.Deletions {
		w.want("what is held", d.Kind, "Namespace")
	}
	w.want("the objects", fmt.Sprint(len(w.uids()), " and ", len(plan.Deletions), " namespaces"), "0 and 3 namespaces")
	w.approve(plan)
	w.until("nothing", w.soon(func() bool { return len(w.daemon.State().Units) == 0 }))
}
