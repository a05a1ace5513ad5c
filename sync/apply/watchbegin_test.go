// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// TestWatchFromNow: what happens after it has begun is seen, the status of objects
// too, and nothing of another namespace or of others' objects.
func TestWatchFromNow(t *testing.T) {
	c, _ := connect(t, Options{})
	ns, elsewhere := space(t), space(t)
	web := newObject(t, deployment, ns, "web", "broken")
	applied(t, c, web)
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	began, lines, ended := make(chan bool, 1), make(chan string, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- c.Watch(ctx, Watch{Kind: kind, Namespace: ns, Began: func() { began <- true }, See: func(s Seen) { lines <- s.ID.String() }})
	}()
	select {
	case <-began:
	case err := <-ended:
		t.Fatal(err)
	}
	applied(t, c, newObject(t, deployment, elsewhere, "web", "1"))
	patch := types.MergePatchType
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	if _, err := somebody(t).Resource(resource).Namespace(ns).Patch(t.Context(), "web", patch, []byte(`{"status":{"collisionCount":7}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	next(t, lines, "Deployment/"+ns+"/web")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for len(lines) > 0 {
		next(t, lines, "Deployment/"+ns+"/web")
	}
}

// TestWatchFromNowRefused: who may not even list is told so.
func TestWatchFromNowRefused(t *testing.T) {
	cfg := apiServer(t)
	cfg.Impersonate.UserName = "nobody"
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Watch(t.Context(), Watch{Kind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, Began: func() { t.Error("began") }})
	if !errors.Is(err, ErrRights) || !strings.Contains(err.Error(), `list Job.batch: jobs.batch is forbidden`) {
		t.Errorf("got %v", err)
	}
}
