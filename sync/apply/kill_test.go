// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"sync"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/render/object"
)

// mortal carries requests until the process dies: after so many writes, whose
// last answer nobody hears.
type mortal struct {
	mu      sync.Mutex
	writes  int // until death; negative: for ever
	sent    int
	dead    bool
	created map[string]int // by kind and name
}

func (m *mortal) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.dead {
			return nil, syscall.ECONNREFUSED
		}
		resp, err := next.RoundTrip(r)
		if err != nil || r.Method == http.MethodGet {
			return resp, err
		}
		if resp.StatusCode == http.StatusCreated && r.URL.Query().Get("dryRun") == "" {
			m.created[path.Base(path.Dir(r.URL.Path))+"/"+path.Base(r.URL.Path)]++
		}
		m.sent++
		if m.writes--; m.writes == 0 {
			m.dead = true
			resp.Body.Close()
			return nil, syscall.ECONNRESET
		}
		return resp, nil
	})
}

// kill -9 anywhere: an apply with hooks, phases and a replacement is killed after
// each of its writes. Whoever goes on with what was written ahead comes to the
// same end, and no hook runs twice.
func TestKilledAfterAnyWrite(t *testing.T) {
	t.Parallel()
	all, _ := killedAfter(t, -1)
	if all < 12 {
		t.Errorf("only %d writes", all)
	}
	for writes := 1; writes <= all; writes++ {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			t.Parallel()
			// Towards the end it may be one less, where a retry is not needed.
			if _, died := killedAfter(t, writes); !died && writes < 12 {
				t.Error("it was not killed")
			}
		})
	}
}

// killedAfter returns how many writes the apply had, and whether it was killed.
func killedAfter(t *testing.T, writes int) (all int, died bool) {
	ns := space(t)
	bundle := func(n, role string) []*object.Object {
		return []*object.Object{
			hookJob(t, ns, "migrate", object.HookBefore, "1", ""),
			configMap(t, ns, "a", n),
			newObject(t, roleBinding, ns, "b", role, allowed),
			hookJob(t, ns, "drain", object.HookBeforeDelete, n, ""),
			inPhase(1, configMap(t, ns, "c", n)),
			inPhase(1, hookJob(t, ns, "announce", object.HookAfter, "1", "ttlSecondsAfterFinished: 3600")),
		}
	}
	m := &mortal{writes: -1, created: map[string]int{}}
	cluster := func() *Cluster {
		cfg := apiServer(t)
		cfg.Wrap(m.wrap)
		c, err := Connect(cfg, testRepository, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	s := newState(t, cluster())
	s.toTheEnd("x", bundle("1", "reader")...)

	m.writes, m.sent = writes, 0
	clear(m.created)
	second := bundle("2", "writer")
	eventually(t, func() (bool, string) {
		before := maps.Clone(s.known)
		results := s.apply("y", second...)
		if m.dead { // what was answered is lost, what was written ahead is not
			for id, e := range before {
				if s.known[id].Digest != e.Digest {
					e.Digest = ""
				}
				before[id] = e
			}
			s.known = before
			return true, ""
		}
		for _, r := range results {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if r.Waits != "" {
				return false, r.Reason
			}
		}
		return true, ""
	})
	all, died = m.sent, m.dead
	m.dead, m.writes = false, -1
	s.c = cluster()
	s.toTheEnd("y", second...)

	for _, o := range second {
		if e := s.known[o.ID]; e.Digest != o.Digest {
			t.Errorf("%s is not known as it is wanted", o.ID)
		}
	}
	role, _, _ := unstructured.NestedString(liveOf(t, roleBindings, ns, "b").Object, "roleRef", "name")
	same(t, "writer", role)
	for _, name := range []string{"a", "c"} {
		value, _, _ := unstructured.NestedString(liveOf(t, configMaps, ns, name).Object, "data", "value")
		same(t, "2", value)
	}
	same(t, 1, m.created["jobs/migrate"])
	same(t, 1, m.created["jobs/announce"])
	same(t, true, isSuspended(liveJob(t, ns, "drain")))
	return all, died
}
