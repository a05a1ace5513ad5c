// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFence: a write that is not allowed never leaves, is known not to have
// happened, and is tried once; as soon as it is allowed, it is sent. Leases are
// written all the same.
func TestFence(t *testing.T) {
	closed := errors.New("somebody else writes there")
	var fence atomic.Value
	fence.Store(&closed)
	var writes, leases atomic.Int32
	c := fake(t, Options{Fence: func() error { return *fence.Load().(*error) }}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && r.URL.Path == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases":
			leases.Add(1)
			w.Header().Set("Content-Type", jsonType)
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"x","namespace":"kube-system","resourceVersion":"1"}}`))
		case r.Method != http.MethodGet:
			writes.Add(1)
			answerMeta(w)
		default:
			answerMeta(w)
		}
	})
	got := applyOne(t, c)
	if !errors.Is(got.Err, ErrFenced) || !errors.Is(got.Err, closed) || writes.Load() != 0 || got.Entry.Digest == "" {
		t.Errorf("fenced: %v, %d writes, entry %+v", got.Err, writes.Load(), got.Entry)
	}
	if IsLost(got.Err) {
		t.Error("it is taken for a cluster that does not answer")
	}
	lease, err := c.PutLease(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "kube-system"}})
	if err != nil || lease.ResourceVersion != "1" || leases.Load() != 1 {
		t.Errorf("lease: %v, %+v, %d writes", err, lease, leases.Load())
	}
	var open error
	fence.Store(&open)
	if got := applyOne(t, c); got.Err != nil || writes.Load() != 1 {
		t.Errorf("open: %v, %d writes", got.Err, writes.Load())
	}
	view := c.Fenced(func() error { return closed })
	for name, v := range map[string]*Cluster{"view": view, "view of a view": view.As("somebody")} {
		if got := applyOne(t, v); !errors.Is(got.Err, ErrFenced) || !errors.Is(got.Err, closed) || writes.Load() != 1 {
			t.Errorf("%s: %v, %d writes", name, got.Err, writes.Load())
		}
	}
}
