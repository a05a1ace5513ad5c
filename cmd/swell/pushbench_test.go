// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkPushToApplied is the time from a webhook that tells of a push until the one object
// that it changes, of 2,000 in each of two real clusters, is applied in both.
func BenchmarkPushToApplied(b *testing.B) {
	m := newMany(b, 4000)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	m.must(err)
	address := listener.Addr().String()
	m.must(listener.Close())
	m.extra = fmt.Sprintf("  web: {listen: %q, hookSecretFile: secret}\n", address)
	m.must(os.WriteFile(filepath.Join(m.dir, "secret"), []byte(hookSecret), 0o600))
	m.start("off")
	for done := 0; done < m.units; { // all but the unit of namespaces
		m.until("the first release", func(line logLine) bool { return line.Msg == "done" && strings.HasPrefix(line.Unit, "services/unit") })
		done++
	}
	repo := filepath.Join(m.dir, "repo")
	file := filepath.Join(repo, "services", "unit000", "objects.yaml")
	before, err := os.ReadFile(file)
	m.must(err)
	edits := 0
	b.ResetTimer()
	var took []time.Duration
	for b.Loop() {
		edits++
		text := strings.Replace(string(before), "\ndata:", fmt.Sprintf("\ndata:\n  edit: e%d", edits), 1)
		if text == string(before) {
			b.Fatal("nothing to edit")
		}
		m.must(os.WriteFile(file, []byte(text), 0o644))
		gitIn(b, repo, "commit", "-q", "-a", "-m", "edit")
		body := `{"ref":"refs/heads/main"}`
		sent := time.Now()
		code, err := sendHook(b.Context(), "http://"+address, hookSecret, strings.NewReader(body), []byte(body))
		if err != nil || code != http.StatusNoContent {
			b.Fatal(code, err)
		}
		var last time.Time
		for range 2 {
			last = m.until("applied", func(line logLine) bool { return line.Msg == "applied" && line.Unit == "services/unit000" }).Time
		}
		took = append(took, last.Sub(sent))
		m.until("done", func(line logLine) bool { return line.Msg == "done" && line.Unit == "services/unit000" })
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds(), "s/median")
	b.ReportMetric(took[len(took)-1].Seconds(), "s/most")
	b.ReportMetric(0, "ns/op")
	m.stop()
}
