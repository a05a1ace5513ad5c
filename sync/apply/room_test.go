// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const listHead = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",` +
	`"metadata":{"resourceVersion":"7","continue":%q},"items":[`

// writeLarge writes more than an answer may have, or until nobody reads it.
func writeLarge(w io.Writer) {
	block := []byte(strings.Repeat(" ", 1<<20))
	for range maxAnswer>>20 + 2 {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

func listConfigMaps(c *Cluster) (objects int, err error) {
	see := func(*metav1.PartialObjectMetadata) { objects++ }
	_, err = c.begin().list(context.Background(), schema.GroupKind{Kind: "ConfigMap"}, "/api/v1/configmaps", "", see)
	return objects, err
}

// Pages that are too large are asked for in smaller ones; a server that goes on sending is given up.
func TestLargePages(t *testing.T) {
	for name, test := range map[string]struct {
		most    string // the largest page that the server makes small enough
		want    string
		objects int
		limits  []string
	}{
		"large objects": {"50", "", 1, []string{"500", "50"}},
		"endless pages": {"0", "list ConfigMap: answer of more than 16 MiB", 0, []string{"500", "50", "5"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var limits []string
			c := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				limit := r.URL.Query().Get("limit")
				limits = append(limits, limit)
				w.Header().Set("Content-Type", jsonType)
				fmt.Fprintf(w, listHead, "")
				if len(limit) > len(test.most) || test.most == "0" {
					writeLarge(w)
					return
				}
				fmt.Fprint(w, `{"metadata":{"name":"a"}}]}`)
			})
			objects, err := listConfigMaps(c)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if objects != test.objects || !slices.Equal(limits, test.limits) || got != test.want {
				t.Errorf("%d objects, %q, limits %v", objects, got, limits)
			}
			if err != nil && (IsLost(err) || !errors.Is(err, ErrDistress)) {
				t.Error("a server that answers too much is not lost")
			}
			if c.room.taken != 0 {
				t.Errorf("%d bytes are still counted", c.room.taken)
			}
		})
	}
}

// A list whose pages lead to themselves ends.
func TestListThatLeadsToItself(t *testing.T) {
	var asked atomic.Int32
	c := fake(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		answer(w, 200, jsonType, fmt.Sprintf(listHead, "again")+`]}`)
	})
	_, err := listConfigMaps(c)
	if err == nil || err.Error() != "list ConfigMap: a page of the list leads to itself" || asked.Load() != 2 {
		t.Errorf("%v after %d requests", err, asked.Load())
	}
}

// However many pages have come, what they have together is bounded.
func TestListWithoutAnEnd(t *testing.T) {
	page := &response{body: make([]byte, maxAnswer)}
	c := fake(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, jsonType, "{}") })
	pages := 0
	req := &request{op: "list", object: "ConfigMap", path: "/api/v1/configmaps"}
	err := c.begin().pages(t.Context(), req, nil, func(answer *response) (string, error) {
		answer.body = page.body
		pages++
		return fmt.Sprint(pages), nil
	})
	const want = "list ConfigMap: the pages of the list have more than 512 MiB together, and there is no end"
	if err == nil || err.Error() != want || pages != maxList/maxAnswer+1 {
		t.Errorf("%v after %d pages", err, pages)
	}
}

// Of all answers that are read at a time, so many bytes are in memory and no more; one goes on
// beyond, so that they do not wait for one another.
func TestRoom(t *testing.T) {
	r := NewRoom(100)
	a, b, c := &roomShare{room: r}, &roomShare{room: r}, &roomShare{room: r}
	take := func(s *roomShare, bytes int64, want bool) {
		t.Helper()
		if _, ok := s.tryTake(bytes); ok != want {
			t.Errorf("%d bytes with %d taken: %t", bytes, r.taken, ok)
		}
	}
	take(a, 60, true)
	take(b, 40, true)
	take(a, 10, true) // beyond
	take(a, 10, true)
	take(b, 10, false)
	take(c, 10, false)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.take(ended, 10); !errors.Is(err, errNoRoom) {
		t.Error(err)
	}
	waits := make(chan error)
	go func() { waits <- b.take(t.Context(), 10) }()
	a.leave()
	if err := <-waits; err != nil {
		t.Error(err)
	}
	take(c, 40, true)
	b.leave()
	c.leave()
	c.leave()
	if r.taken != 0 || r.isExceeded {
		t.Errorf("%d bytes are taken", r.taken)
	}
}

// Clusters that share a room wait for one another.
func TestAnswersOfAllClustersAreBounded(t *testing.T) {
	shared := NewRoom(1)
	first := &roomShare{room: shared}
	if _, ok := first.tryTake(2); !ok { // the one that goes on beyond
		t.Fatal("no room")
	}
	c := fake(t, Options{Room: shared, Timeout: time.Hour}, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, jsonType, fmt.Sprintf(listHead, "")+`]}`)
	})
	listed := make(chan error)
	go func() {
		_, err := listConfigMaps(c)
		listed <- err
	}()
	waits := func() bool {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		return shared.freed != nil
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !waits() {
		select {
		case err := <-listed:
			t.Fatalf("it did not wait: %v", err)
		case <-ticker.C:
		}
	}
	first.leave()
	if err := <-listed; err != nil || shared.taken != 0 || c.room.taken != 0 {
		t.Errorf("%v, %d and %d bytes are still counted", err, shared.taken, c.room.taken)
	}
}
