// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
)

// etcd is the storage behind the API servers of the tests: its process, and where
// it answers.
func (w *world) etcd() (pid int, url string) {
	w.Helper()
	pids, err := os.ReadFile(filepath.Join(w.clusters.Dir, "pids"))
	w.must(err)
	for line := range strings.Lines(string(pids)) {
		var name string
		if _, err := fmt.Sscan(line, &pid, &name); err == nil && name == "etcd" {
			break
		}
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		w.Skipf("where etcd answers is read from /proc: %v", err)
	}
	for _, arg := range strings.Split(string(args), "\x00") {
		if found, ok := strings.CutPrefix(arg, "--listen-client-urls="); ok {
			return pid, found
		}
	}
	w.Fatalf("no etcd: %q", args)
	return 0, ""
}

// alarm raises etcd's alarm that its space is used up, or takes it away: while it is
// on, etcd takes no write.
func (w *world) alarm(url, action string) {
	w.Helper()
	ask := func(path string, question map[string]any) (answer struct {
		Header struct {
			MemberID string `json:"member_id"`
		}
	}) {
		body, err := json.Marshal(question)
		w.must(err)
		resp, err := http.Post(url+path, "application/json", bytes.NewReader(body))
		w.must(err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		w.must(err)
		if resp.StatusCode != http.StatusOK {
			w.Fatalf("%s: %s", path, text)
		}
		w.must(json.Unmarshal(text, &answer))
		return answer
	}
	member := ask("/v3/maintenance/status", map[string]any{}).Header.MemberID
	ask("/v3/maintenance/alarm", map[string]any{"action": action, "memberID": member, "alarm": "NOSPACE"})
}

// storageInDistress: an etcd whose space is used up, and one that stands still, in the middle of a
// release. All waits and goes on by itself.
func storageInDistress(w *world) {
	w.start()
	pid, url := w.etcd()
	w.connection = apply.Options{Timeout: 3 * time.Second}
	w.stop()
	w.start()
	w.release()
	for i, ill := range []struct {
		name        string
		begin, end  func()
		reason      string
		unreachable bool
	}{
		{"no space", func() { w.alarm(url, "ACTIVATE") }, func() { w.alarm(url, "DEACTIVATE") }, "etcdserver: mvcc: database space exceeded", false},
		{"stands still", func() { w.must(syscall.Kill(pid, syscall.SIGSTOP)) }, func() { w.must(syscall.Kill(pid, syscall.SIGCONT)) }, "", true},
	} {
		tag := fmt.Sprint(i + 2)
		w.app("app", tag, "one")
		w.commit()
		w.until("the canary", w.canary("app", i+2))
		w.until("the others", w.resting)
		func() {
			ill.begin()
			defer ill.end()
			w.now = w.now.Add(10 * time.Minute)
			waits := func() bool {
				target := w.unit("app").Targets["dev-2/c"]
				return target.Trouble == rollout.TroubleUnavailable || target.Trouble == rollout.TroubleUnreachable
			}
			w.until("the trouble: "+ill.name, func() bool {
				u := w.unit("app")
				return waits() || ill.unreachable && u.Targets["dev-1/a"].Trouble == rollout.TroubleUnreachable
			})
			for range 5 {
				w.now = w.now.Add(10 * time.Minute)
				w.pass()
			}
			u := w.unit("app")
			if u.Rollout.Status != rollout.Progressing || len(u.Quarantine) > 0 || !strings.Contains(w.describe(), ill.reason) {
				w.Errorf("%s: %d in quarantine\n%s", ill.name, len(u.Quarantine), w.describe())
			}
		}()
		w.now = w.now.Add(10 * time.Minute) // the next attempts are due
		w.until("the end of "+ill.name, w.is("app", i+2, rollout.Done))
		w.want("images", w.tags("app"), tag+" "+tag+" "+tag)
	}
}
