// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/demo"
)

// uids are the UIDs of all that swell has in all clusters, by cluster and name.
func (s *stage) uids() map[string]string {
	s.Helper()
	uids := map[string]string{}
	for name, cluster := range s.clusters {
		for _, resource := range demo.Kinds {
			list, err := cluster.Client.Resource(resource).List(s.Context(), metav1.ListOptions{LabelSelector: config.AppliedSelector})
			if err != nil {
				s.Fatal(err)
			}
			for _, o := range list.Items {
				for _, entry := range o.GetManagedFields() {
					if entry.Manager == "swell" && entry.Operation == metav1.ManagedFieldsOperationApply {
						uids[fmt.Sprintf("%s %s/%s/%s", name, resource.Resource, o.GetNamespace(), o.GetName())] = string(o.GetUID())
					}
				}
			}
		}
	}
	return uids
}

// wanted counts the objects that the working copy stands for.
func (s *stage) wanted() (n int) {
	s.Helper()
	snapshot := (&render.Compiler{}).Snapshot("", config.Files(os.DirFS(s.repo.Work)))
	if len(snapshot.Problems) > 0 {
		s.Fatal(snapshot.Problems)
	}
	for _, unit := range snapshot.Units.All() {
		for _, on := range unit.Placements {
			n += on.Objects
		}
	}
	return n
}

// change makes one change to the working copy, or takes an earlier one back.
func (s *stage) change(random *rand.Rand) error {
	services := filepath.Join(s.repo.Work, "services")
	// move moves a file or folder, or moves it back.
	move := func(from, to string) error {
		from, to = filepath.Join(services, from), filepath.Join(services, to)
		if _, err := os.Stat(from); err != nil {
			from, to = to, from
		}
		return os.Rename(from, to)
	}
	switch random.IntN(4) {
	case 0: // other pods
		if s.repo.Replace(demo.CartFile, "cart:1.4.2", "cart:1.4.3") == nil {
			return nil
		}
		return s.repo.Replace(demo.CartFile, "cart:1.4.3", "cart:1.4.2")
	case 1: // a unit goes, or comes back
		return move("shop/recommend", "../gone")
	case 2: // a unit gets another name
		return move("search/suggest", "search/suggestions")
	}
	return move("platform/oncall/rbac.yaml", "platform/priorities/rbac.yaml") // objects go over to another unit
}

// TestKillMany kills the daemon at random moments while commits come that change,
// remove, rename and move what it has. In the end the clusters hold what Git
// wants, nothing more and nothing less, and whatever was never to go is still the
// same object. SWELL_KILLS is how often, SWELL_SEED makes a run again.
func TestKillMany(t *testing.T) {
	t.Parallel()
	kills, err := strconv.Atoi(cmp.Or(os.Getenv("SWELL_KILLS"), "20"))
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	if text := os.Getenv("SWELL_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newStage(t)
	s.once(0)
	before := s.uids()
	for i := range kills {
		if i%3 == 0 {
			if err := errors.Join(s.change(random), s.repo.Push(t.Context(), fmt.Sprintf("change %d", i))); err != nil {
				t.Fatal(err)
			}
		}
		s.disturb(random, syscall.SIGKILL)
	}
	// What one unit hands over to another may be put off for some seconds.
	s.eventually("the end", func() bool { return program(t.Context(), "run", "--once", "-c", s.config).Run() == nil })
	after := s.uids()
	if want := s.wanted(); len(after) != want {
		t.Errorf("%d objects, want %d", len(after), want)
	}
	for name, uid := range before {
		mayGo := strings.HasSuffix(name, "/recommend")
		if now := after[name]; now != uid && (!mayGo || now == "" && s.has("services/shop/recommend")) {
			t.Errorf("%s had the UID %s and has %q", name, uid, now)
		}
	}
	if out := s.once(0); !strings.HasSuffix(out, " 0 objects written\n") {
		t.Errorf("a run over nothing changed says %q", out)
	}
}

func (s *stage) has(name string) bool {
	_, err := os.Stat(filepath.Join(s.repo.Work, name))
	return err == nil
}
