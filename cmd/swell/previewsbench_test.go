// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// counted has the daemon ask its forge through a proxy that counts.
func (r *reviewed) counted() *atomic.Int64 {
	r.Helper()
	at, err := url.Parse(r.gitea.URL)
	if err != nil {
		r.Fatal(err)
	}
	requests, proxy := &atomic.Int64{}, httputil.NewSingleHostReverseProxy(at)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		requests.Add(1)
		proxy.ServeHTTP(w, q)
	}))
	r.Cleanup(server.Close)
	content, err := os.ReadFile(r.config)
	if err != nil {
		r.Fatal(err)
	}
	text := strings.Replace(string(content), "forge: {type: gitea,", fmt.Sprintf("forge: {type: gitea, url: %q, project: %s,", server.URL, r.project), 1)
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	return requests
}

// resident is the memory of the daemon and of the processes that it started, in MiB.
func (r *reviewed) resident() (daemon, others float64) {
	r.Helper()
	of := func(pid int) float64 {
		now, _, _ := residentOf(pid) // it may have ended
		return now / (1 << 20)
	}
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.process.Pid))
	if err != nil {
		r.Fatal(err)
	}
	for _, file := range children {
		content, _ := os.ReadFile(file) // a thread may have ended
		for _, text := range strings.Fields(string(content)) {
			if pid, err := strconv.Atoi(text); err == nil {
				others += of(pid)
			}
		}
	}
	return of(r.process.Pid), others
}

// BenchmarkMovingBase is the memory of a daemon with 200 open pull requests whose base moves
// every 10 s, and what it asks of the forge, for SWELL_SECONDS: 60 where it is not set. Each
// time somebody pushes to one of the pull requests: that one comes first.
func BenchmarkMovingBase(b *testing.B) {
	seconds := numberOf(b, "SWELL_SECONDS", 60)
	r := newReviewedOf(b, "  kubeconfigDir: clusters\n", func(r *reviewed) {
		if err := os.CopyFS(r.dir, os.DirFS("../../testdata/monorepo")); err != nil {
			b.Fatal(err)
		}
		r.git("init", "-q", "-b", "main")
		r.commit("The example")
	})
	requests := r.counted()
	const pulls = 200
	var heads []string
	var numbers []int
	for i := range pulls {
		r.branch(fmt.Sprintf("change-%d", i))
		r.edit("services/shop/cart/runtime.yaml", "cart:1.4.2", fmt.Sprintf("cart:2.0.%d", i))
		heads = append(heads, r.commit(fmt.Sprintf("Change %d", i)))
	}
	r.git("push", "-q", r.gitea.CloneURL(r.ann, r.project), "refs/heads/change-*:refs/heads/change-*")
	for i := range pulls {
		numbers = append(numbers, r.gitea.Pull(b, r.ann, r.project, fmt.Sprintf("change-%d", i), fmt.Sprintf("Change %d", i)))
	}
	r.run()
	for i := range pulls {
		r.preview(numbers[i], heads[i])
	}
	daemon, previewer := r.resident()
	before := requests.Load()
	var slowest, status time.Duration
	for i := range seconds / 10 {
		from := time.Now()
		r.git("checkout", "-q", "main")
		if err := os.WriteFile(filepath.Join(r.dir, "README.md"), []byte(fmt.Sprintf("Commit %d\n", i)), 0o644); err != nil {
			b.Fatal(err)
		}
		r.push("main")
		r.git("checkout", "-q", "change-7")
		r.edit("services/shop/cart/runtime.yaml", fmt.Sprintf("cart:2.%d.7", i), fmt.Sprintf("cart:2.%d.7", i+1))
		began := time.Now()
		head := r.push("change-7")
		pushed := time.Now()
		r.preview(numbers[7], head)
		slowest, status = max(slowest, pushed.Sub(began)), max(status, time.Since(pushed))
		b.Logf("pushed in %v, status after %v", pushed.Sub(began), time.Since(pushed))
		time.Sleep(10*time.Second - time.Since(from))
	}
	after, previewerAfter := r.resident()
	b.ReportMetric(daemon, "MiB/daemon-begin")
	b.ReportMetric(after, "MiB/daemon-end")
	b.ReportMetric(previewer, "MiB/previewer-begin")
	b.ReportMetric(previewerAfter, "MiB/previewer-end")
	b.ReportMetric(float64(requests.Load()-before), "requests")
	b.ReportMetric(slowest.Seconds(), "s/slowest-push")
	b.ReportMetric(status.Seconds(), "s/slowest-status")
	b.ReportMetric(0, "ns/op")
}
