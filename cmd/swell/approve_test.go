// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// swell runs a verb to its end and returns all that it wrote.
func (s *stage) swell(wantCode int, args ...string) string {
	s.Helper()
	out, code := verb(s.Context(), "", append(args, "-c", s.config)...)
	if code != wantCode {
		s.Fatalf("swell %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, wantCode, out)
	}
	return out
}

// daemon starts swell run; stop kills it.
func (s *stage) daemon() (stop func()) {
	s.Helper()
	cmd := program(s.Context(), "run", "-c", s.config)
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// pause lets other processes go on.
func (s *stage) pause(d time.Duration) {
	select {
	case <-s.Context().Done():
	case <-time.After(d):
	}
}

// eventually waits until ok.
func (s *stage) eventually(what string, ok func() bool) {
	s.Helper()
	const longest = 5 * time.Minute // on a machine that is shared
	deadline := time.Now().Add(longest)
	for !ok() {
		if time.Now().After(deadline) {
			s.Fatalf("%s: not within %s", what, longest)
		}
		s.pause(200 * time.Millisecond)
	}
}

var planLine = regexp.MustCompile(`(?m)^([0-9a-f]{8}) +(\d+) +(\S+)`)

// TestApprove: deletions that take approval are held while the daemon runs;
// swell approve lists them, and the running daemon hears of the approval. Killed
// in the middle of what was approved, and of the rebuilding of a lost inventory,
// the next one converges; nothing goes that was not approved.
func TestApprove(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.once(0)
	all := s.objects()
	if out := s.swell(0, "approve"); out != "nothing waits for approval\n"+notRunning {
		t.Errorf("approve says %q", out)
	}
	if out := s.swell(2, "approve", "abcd"); !strings.Contains(out, `error: plan "abcd": no such plan: nothing waits for approval`) {
		t.Errorf("approve says %q", out)
	}

	stop := s.daemon()
	defer func() { stop() }()
	if err := errors.Join(os.RemoveAll(filepath.Join(s.repo.Work, "services/shop/orders")), s.repo.Push(t.Context(), "no orders")); err != nil {
		t.Fatal(err)
	}
	var plan []string
	s.eventually("a plan", func() bool { plan = planLine.FindStringSubmatch(s.swell(0, "approve")); return plan != nil })
	if plan[2] != "28" || plan[3] != "services/shop/orders" {
		t.Errorf("the plan: %q", plan)
	}
	if out := strings.Join(strings.Fields(s.swell(1, "status")), " "); !strings.Contains(out, "28 deletions pending: swell approve "+plan[1]) ||
		!strings.Contains(out, "plan "+plan[1]+": 28 deletions of services/shop/orders pending since ") {
		t.Errorf("status says\n%s", out)
	}
	if out := s.swell(2, "approve", "00000000"); !strings.Contains(out, "no such plan, want one of "+plan[1]) {
		t.Errorf("another digest: %q", out)
	}
	if out := s.swell(2, "approve", plan[1][:3]); !strings.Contains(out, "want a unique prefix of at least 4 digits of one of "+plan[1]) {
		t.Errorf("three digits: %q", out)
	}
	if out := s.swell(2, "approve", plan[1]); !strings.Contains(out, "StatefulSet/") || !strings.Contains(out, "there is no terminal to ask on") {
		t.Errorf("without a terminal and without --yes: %q", out)
	}
	if got := s.objects(); got != all {
		t.Errorf("%d objects while it waits, want %d", got, all)
	}
	out := s.swell(0, "approve", plan[1][:4], "--yes")
	if n := strings.Count(out, "StatefulSet/"); n < 8 || !strings.Contains(out, "TARGET") || !strings.HasSuffix(out, "approved: plan "+plan[1]+", 28 deletions\n") {
		t.Errorf("approve says\n%s", out)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s.eventually("the running daemon hears of it", func() bool { return s.objects() < all })
	for range 4 {
		stop()
		stop = s.daemon()
		s.pause(time.Duration(20+random.IntN(1200)) * time.Millisecond)
	}
	stop()
	s.once(0)
	left := s.objects()
	if left != all-28 {
		t.Errorf("%d objects after the approval, want %d", left, all-28)
	}
	s.lost(random, left)
}

// lost takes the state away and kills the daemon while it rebuilds.
func (s *stage) lost(random *rand.Rand, all int) {
	s.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(s.config), "state", "state.db*"))
	if err != nil || len(files) == 0 {
		s.Fatal("no state to lose", err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			s.Fatal(err)
		}
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(s.repo.Work, "services/shop/recommend")), s.repo.Push(s.Context(), "no recommend")); err != nil {
		s.Fatal(err)
	}
	for range 6 {
		stop := s.daemon()
		s.pause(time.Duration(20+random.IntN(1200)) * time.Millisecond)
		stop()
	}
	out := s.once(1)
	if !strings.Contains(out, "services/shop/recommend: 4 deletions pending: swell approve ") {
		s.Errorf("after the loss: %s", out)
	}
	if got := s.objects(); got != all {
		s.Errorf("%d objects after the loss, want %d", got, all)
	}
	plans := planLine.FindAllStringSubmatch(s.swell(0, "approve"), -1)
	if len(plans) != 1 || !slices.Equal(plans[0][2:], []string{"4", "services/shop/recommend"}) {
		s.Fatalf("plans: %q", plans)
	}
	s.swell(0, "approve", plans[0][1], "--yes")
	s.once(0)
	if got := s.objects(); got != all-4 {
		s.Errorf("%d objects after the approval, want %d", got, all-4)
	}
	if out := s.once(0); !strings.HasSuffix(out, " 0 objects written\n") {
		s.Errorf("a run over nothing changed says %q", out)
	}
	if out := s.swell(0, "status"); strings.Contains(out, "recommend") || strings.Contains(out, "rebuilding") {
		s.Errorf("status says\n%s", out)
	}
}
