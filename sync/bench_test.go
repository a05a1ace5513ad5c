// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/sync/store"
)

// bigRepository is a bare Git repository with the example's fleet and kinds
// and n specs, on the branch main, and a branch changed that differs in one.
func bigRepository(tb testing.TB, n int) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "repo.git")
	var stream bytes.Buffer
	file := func(name, content string) {
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", name, len(content), content)
	}
	commit := func(branch, from string) {
		fmt.Fprintf(&stream, "commit refs/heads/%s\ncommitter Ada <ada@example.com> 1767323045 +0000\ndata 6\nchange\n%s", branch, from)
	}
	spec := func(i int, tag string) {
		file(fmt.Sprintf("services/team%03d/service%05d/runtime.yaml", i/100, i), fmt.Sprintf(`apiVersion: easy.example.com/v1
kind: Runtime
metadata: {name: service%05d}
spec:
  image: registry.example.com/service%05d:%s
  replicas: {sas: 2, vla: 3}
  env: {LOG_LEVEL: info, REGION: sas}
`, i, i, tag))
	}
	commit("main", "")
	for _, name := range []string{"swell.yaml", "fleet/sas-1.yaml", "fleet/rollout.yaml", "kinds/runtime/kind.yaml", "kinds/runtime/runtime.proto"} {
		content, err := os.ReadFile("../testdata/monorepo/" + name)
		if err != nil {
			tb.Fatal(err)
		}
		text := string(content)
		if name == "fleet/rollout.yaml" {
			text = strings.Replace(text, "soak: 10m", "soak: 0s", 1)
		}
		file(name, text)
	}
	for i := range n {
		if i%100 == 0 {
			file(fmt.Sprintf("services/team%03d/swell.yaml", i/100), fmt.Sprintf(
				"apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {tenant: team%03d, placement: {match: {labels: {region: sas}}}}\n", i/100))
		}
		spec(i, "1.0.0")
	}
	commit("changed", "from refs/heads/main\n")
	spec(n/2, "1.0.1")
	for _, args := range [][]string{{"init", "--quiet", "--bare", "--initial-branch=main", dir}, {"-C", dir, "fast-import", "--quiet"}} {
		cmd := exec.Command("git", args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
		cmd.Stdin = bytes.NewReader(stream.Bytes())
		if out, err := cmd.CombinedOutput(); err != nil {
			tb.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

// BenchmarkCommitToPlan: one spec of 10,000 changes; from the look at the
// branch to the plan, with everything released before. The network is left
// out: the repository is on this machine.
func BenchmarkCommitToPlan(b *testing.B) {
	dir := bigRepository(b, 10_000)
	state, err := store.Open(filepath.Join(b.TempDir(), "state"))
	if err != nil {
		b.Fatal(err)
	}
	defer state.Close()
	src, err := source.Open(source.Config{URL: dir, Branch: "main", AllowRewind: true})
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d, err := Open(Options{Source: src, Store: state, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	plan := func() rollout.Plan {
		r := Record{At: now}
		d.fetch(b.Context(), &r)
		if len(r.Errors) > 0 || len(r.Problems) > 0 {
			b.Fatal(r.Errors, r.Problems)
		}
		return d.decide(&r)
	}
	release := func(p rollout.Plan) (actions int) {
		for ; len(p.Actions) > 0; p = plan() {
			actions += len(p.Actions)
			for _, a := range p.Actions {
				result := map[rollout.Kind]rollout.Result{rollout.Apply: rollout.Applied, rollout.Check: rollout.Healthy}[a.Kind]
				d.state.Record(rollout.Outcome{Action: a, Result: result, Pruned: true}, now)
			}
			now = now.Add(time.Second)
		}
		return actions
	}
	if n := release(plan()); n < 40_000 {
		b.Fatalf("the first release took %d actions, want an apply and a check for each of 20,000 bundles", n)
	}
	commits := map[string]string{}
	for _, branch := range []string{"main", "changed"} {
		out, err := exec.Command("git", "-C", dir, "rev-parse", branch).Output()
		if err != nil {
			b.Fatal(err)
		}
		commits[branch] = strings.TrimSpace(string(out))
	}
	next := "changed"
	for b.Loop() {
		b.StopTimer()
		if out, err := exec.Command("git", "-C", dir, "update-ref", "refs/heads/main", commits[next]).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		next = map[string]string{"main": "changed", "changed": "main"}[next]
		b.StartTimer()
		p := plan()
		b.StopTimer()
		if len(p.Actions) != 1 {
			b.Fatalf("%d actions, want the canary's apply", len(p.Actions))
		}
		release(p)
		b.StartTimer()
	}
}
