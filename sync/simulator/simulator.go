// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package simulator is a Kubernetes API server in memory, for tests and for the
// simulation of a whole daemon. It stands in at the HTTP transport: a [Cluster] is an
// [http.RoundTripper], so the code under test is the real one, and it works inside a
// bubble of testing/synctest.
//
// Server-side apply is by the API server's own library,
// k8s.io/apimachinery/pkg/util/managedfields, over the OpenAPI schemas of Kubernetes
// 1.36. TestAgainstServer sends the same random requests to a simulator and to a real
// API server and compares the answers.
//
// # What it models
//
// Of Kubernetes' own kinds those of [Modelled] can be written; of the others there are
// none, and a write of one is refused. Custom resources have the schema of their
// definition: types, defaults, pruning and the checks of OpenAPI. Namespaces end with
// what is in them, and objects end with their owners. Workloads become ready, see
// [Cluster.Ready].
//
// What is not modelled is answered with 501 and a text that says so.
//
// # What is different from a real server
//
//   - There are no rights, no webhooks, no quotas and no admission plugins but
//     NamespaceLifecycle. Everybody may do everything.
//   - There are no warnings in the header of an answer.
//   - A new namespace is empty: no ServiceAccount, no ConfigMap with a certificate.
//   - A write of a claim of storage that changes nothing may yet change its
//     resourceVersion in a real server, and does not here.
//   - A claim of storage is bound at once, and there is no object of its volume.
//   - A workload has pods only while it waits for an image, and never a ReplicaSet.
//   - The controllers work between requests: what has no delay is done when the next
//     request comes.
//   - What is refused about Kubernetes' own kinds for what is in the object is said in
//     swell's words, which end with [OwnText]; and a refusal that quotes a template of
//     pods prints it in another form.
//   - Lists do not go on with an old token, and nothing is listed or watched from the
//     past but what a watch missed in the last five minutes.
package simulator

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Cluster is one API server with its controllers. Its methods are safe for concurrent
// use; its fields are not to be changed once it is in use.
type Cluster struct {
	// Fault is asked first for each request. It answers, or fails, or returns nil
	// and nil to let the request through. The body of the request may be read. May
	// be nil.
	Fault func(*http.Request) (*http.Response, error)
	// Ready is how workloads become ready.
	Ready Readiness
	// NewUID makes the UIDs of objects. Nil: by chance.
	NewUID func() types.UID

	mu      sync.Mutex
	version uint64 // of the last change
	kinds   *kinds
	stores  map[resource]*store
	history history
	pages   pages
	tasks   tasks
	address int  // of the last Service
	still   bool // no controller does anything; for tests
	// changed is closed with the next change, or new task.
	changed chan struct{}
}

// New is a cluster with the namespaces that each cluster has.
func New() *Cluster { return NewWith(nil) }

// NewWith is the same with UIDs that newUID makes, see [Cluster.NewUID].
func NewWith(newUID func() types.UID) *Cluster {
	c := &Cluster{NewUID: newUID, kinds: newKinds(), stores: map[resource]*store{}, changed: make(chan struct{})}
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		c.addNamespace(name)
	}
	return c
}

// Config leads to the cluster. The address says nothing.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{Host: "http://simulator.invalid", Transport: c, QPS: -1}
}

// RoundTrip is [http.RoundTripper].
func (c *Cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if c.Fault != nil {
		if answer, err := c.Fault(r); answer != nil || err != nil {
			return answer, err
		}
	}
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work()
	answer := c.serve(r, body)
	return answer.response(r), nil
}

// Compact forgets the past: lists that go on, and watches that begin, with what was
// before fail with 410.
func (c *Cluster) Compact() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history.compact(c.version)
	c.pages = nil
}

// Version is the resourceVersion of the last change.
func (c *Cluster) Version() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.version)
}

// Due is when a controller does something next; ok says whether one will.
func (c *Cluster) Due() (at time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tasks.next()
}

// Object is an object as it is stored: one of the API's own types, or unstructured.
type Object interface {
	runtime.Object
	metav1.Object
}

// Look shows all objects of a group's kind, in the order of a list, and does what the
// controllers have to do before. They must not be changed, nor the cluster be asked
// for anything meanwhile.
func (c *Cluster) Look(group, plural string, see func(Object)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work()
	if s := c.stores[resource{group, plural}]; s != nil {
		for _, o := range s.sorted("") {
			see(o)
		}
	}
}
