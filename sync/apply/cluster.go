// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package apply talks to the API server of one cluster: it applies the objects
// of a bundle, prunes objects, reports health, and finds drift. It uses the
// vocabulary of fluxcd/pkg/ssa (order of kinds, stages, actions) and is the only
// package that imports it; the requests are its own, because ssa asks twice
// before each write, writes one object after another and deletes without a
// precondition.
//
// What it sends:
//
//   - one server-side-apply PATCH for an object whose digest changed, nothing
//     for one whose digest did not; where others hold its fields, or an object
//     that is not known stands in its place, a few more;
//   - one metadata GET and one DELETE, with the UID as its precondition and for
//     heavy kinds the resource version too, for an object to prune;
//   - one metadata LIST per 500 labelled objects of every kind there is, for a
//     survey;
//   - one metadata LIST per 500 objects of a kind for drift, for a tenant's
//     account one per namespace, and one metadata GET for a single object that
//     may have drifted;
//   - where drift is watched for, one metadata watch per kind, on the same
//     connection;
//   - where objects are compared in full, one GET and one dry run for each, but
//     none for a Secret;
//   - one GET per workload, and one LIST of its pods while it is not ready, for
//     health; the same for what a later phase of a bundle waits for;
//   - one more LIST of its pods while a StatefulSet that replaces them in order is not
//     ready, and where it waits for one that it never replaces, one access review and
//     one DELETE with UID and resource version as its preconditions;
//   - one GET of a hook's Job for each look at it while it runs, one merge PATCH
//     to release its time to live or to resume it, one DELETE for an earlier run;
//   - for an object that is deleted and made anew because of a field that cannot
//     be changed, one GET, one dry run under another name, one DELETE with UID and
//     resource version as its preconditions, GETs until it is gone, one PATCH;
//   - one metadata GET of kube-system after a request that nobody answered, before the
//     next write: another cluster may stand at the address by then;
//   - one PUT of a Lease at intervals, or a GET while somebody else holds it;
//   - one discovery request per group and version, remembered;
//   - one or two access reviews for a write that was answered with a 403, to
//     tell a missing right from admission that denies the object.
//
// It never decides which objects should exist, never deletes an object without
// having just seen that it is ours, or a pod of such an object, never asks for more
// than the metadata of a Secret, and never touches the state file. Nothing here
// depends on the wall clock except time-outs.
package apply

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// FieldManager is the name under which swell owns fields.
const FieldManager = "swell"

// Options of a [Cluster]. The zero value is fit for use.
type Options struct {
	// Concurrency is how many requests may be under way at once at the most,
	// over all calls and views; how many do is found out, see [limiter]. Zero is
	// 32, which is a tenth faster than 16 against one API server of two cores.
	Concurrency int
	// FirstConcurrency is how many requests may be under way at once to begin with, and
	// whatever their latency. Zero is 4.
	FirstConcurrency int
	// Jitter makes a pause of one that is to be about that long. Nil: by chance, between
	// half and one and a half times as long. It is for simulations.
	Jitter func(time.Duration) time.Duration
	// Timeout is how long one request may take, the reading of its answer
	// included, before it counts as unreachable. Zero is 15 s.
	Timeout time.Duration
	// WriteTimeout is the same for a request that admission judges, trials included: webhooks
	// may take their time. Once it has taken longer than Timeout, it is given up as soon as
	// nobody answers at all. Zero is Timeout where that is set, and else 40 s.
	WriteTimeout time.Duration
	// Silence is how long the connection may bring nothing before it is asked
	// for a sign of life, and then how long that may take before the connection
	// is given up for a new one. Zero is 4 s: both fit into a request's time, so
	// that the request is still answered.
	Silence time.Duration
	// EstablishTimeout is how long a custom resource definition may take from
	// being applied to being served. Zero is 30 s.
	EstablishTimeout time.Duration
	// SettleTime is how long the server may go on judging objects by an earlier
	// form of a definition that was just changed. Its watch brings the new one
	// within milliseconds; the rest is for a server under load. Zero is 10 s.
	SettleTime time.Duration
	// Fence is asked before each write; while it returns an error, none is sent,
	// and the write fails with [ErrFenced]. Leases are written all the same. Nil:
	// this process is the only writer.
	Fence func() error
	// Room bounds the bytes of answers that are read at a time of all clusters that have the
	// same one. Nil: each cluster has its own bound alone.
	Room *Room
}

// Cluster is one API server, as seen by one user. All requests share one HTTP/2
// connection and the bound on their number. It is safe for concurrent use.
type Cluster struct {
	*connection
	// user is whom requests are made as; empty: whoever the connection's
	// credentials are of.
	user string
	// fence is asked before each write of this view, see [Cluster.Fenced]; nil: all
	// that [Options.Fence] lets through is sent.
	fence func() error
}

// connection is what all views of an API server share.
type connection struct {
	base       *url.URL
	client     *http.Client
	repository string
	options    Options
	limiter    *limiter
	room       *Room // of its answers that are read at a time
	breaker    breaker
	identity   identity

	contacts *contacts
	rights   rights
	// replaced are the objects, as they were, that were deleted to be made anew,
	// until the new ones are there. It is not needed to go on after a restart,
	// only to put an old one back.
	replaced sync.Map // object.ID to *unstructured.Unstructured

	mu sync.Mutex // guards kinds
	// kinds is what discovery said, by group and version.
	kinds map[schema.GroupVersion]map[string]resource
}

// Connect makes a Cluster for a client configuration, and for the monorepo of
// that name, whose objects are ours. It sends nothing. The
// rate limits of the configuration are ignored: [Options.Concurrency] bounds
// the load instead.
func Connect(cfg *rest.Config, repository string, opt Options) (*Cluster, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = cmp.Or(cfg.UserAgent, FieldManager)
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w", cfg.Host, err)
	}
	opt.Concurrency = cmp.Or(opt.Concurrency, 32)
	opt.FirstConcurrency = min(cmp.Or(opt.FirstConcurrency, firstLimit), opt.Concurrency)
	if opt.Jitter == nil {
		opt.Jitter = func(d time.Duration) time.Duration { return d/2 + rand.N(d) }
	}
	opt.WriteTimeout = cmp.Or(opt.WriteTimeout, opt.Timeout, serverTime+6*time.Second)
	opt.Timeout = cmp.Or(opt.Timeout, 15*time.Second)
	opt.Silence = cmp.Or(opt.Silence, 4*time.Second)
	opt.EstablishTimeout = cmp.Or(opt.EstablishTimeout, 30*time.Second)
	opt.SettleTime = cmp.Or(opt.SettleTime, 10*time.Second)
	client, err := newClient(cfg, opt.Silence)
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w", cfg.Host, err)
	}
	return &Cluster{connection: &connection{
		base:       base,
		client:     client,
		repository: repository,
		options:    opt,
		room:       NewRoom(roomOfCluster),
		limiter:    newLimiter(opt.FirstConcurrency, opt.Concurrency),
		contacts:   &contacts{},
		kinds:      map[schema.GroupVersion]map[string]resource{},
	}}, nil
}

// As is the same API server as another user sees it: every request of the view
// is made as that user, which the API server allows to whoever may impersonate
// it. Connection, limits and known kinds are shared. The empty user is the one
// of the connection's own credentials.
func (c *Cluster) As(user string) *Cluster {
	if c.user == user {
		return c
	}
	return &Cluster{connection: c.connection, user: user, fence: c.fence}
}

// Fenced is the same API server, where each write is also subject to fence, as to
// [Options.Fence].
func (c *Cluster) Fenced(fence func() error) *Cluster {
	return &Cluster{connection: c.connection, user: c.user, fence: fence}
}

// call is one of the exported calls under way. It keeps what the requests of
// that call learn together.
type call struct {
	*Cluster
	// probing is set where the question is whether anybody answers.
	probing bool
	// asked makes one discovery request of several for the same thing; fresh
	// holds the answers, so that a kind that is not there is not asked for
	// again by each of its objects.
	asked singleflight.Group
	fresh sync.Map // schema.GroupVersion to map[string]resource, group to []string
}

func (c *Cluster) begin() *call { return &call{Cluster: c} }
