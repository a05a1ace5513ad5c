// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/swell-sh/swell/sync/apply"
)

// Cluster is the daemon's end of one API server. Its methods are safe for concurrent
// use.
type Cluster struct {
	name       string
	kubeconfig kubeconfig
	options    apply.Options
	pin        func(ctx context.Context, name, uid string) (pinned string, err error)
	back       func() // is called when a lost cluster answers again
	lease      *lease // nil when none is kept

	mu sync.Mutex
	// repository is the name of the monorepo; empty before the first commit was
	// taken. Until then nobody asks the cluster anything.
	repository string
	// pinned is the identity that the cluster has had since swell first saw
	// it, once that was looked up.
	pinned string
	// forgotten is how often [Cluster.Forget] was called: what was looked up before is of no use.
	forgotten int
	stranger  string // see [Cluster.Stranger]
	link      *link  // nil before the first look, and after a loss
	// down says why the last look failed. While it is set, a look is under way
	// in the background, so that no pass waits for a cluster that is gone.
	down error
	// stale says why the newest kubeconfig is not in use although it differs
	// from that of the link. One that could be read, and led to no answer, has
	// the sum failed, and is tried again from retryAt on.
	stale   error
	failed  [sha256.Size]byte
	retryAt time.Time
}

// link is a connection and the kubeconfig that it was made with.
type link struct {
	*apply.Cluster
	sum [sha256.Size]byte
}

func newCluster(name, repository string, from kubeconfig, options apply.Options) *Cluster {
	from.access.Name = name
	options.Concurrency = cmp.Or(from.access.Concurrency, options.Concurrency)
	return &Cluster{name: name, repository: repository, kubeconfig: from, options: options}
}

// belongTo says whose objects are ours.
func (c *Cluster) belongTo(repository string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.repository = repository
}

// Reach returns a connection to the cluster. It asks for the identity of the cluster
// each time: one may have been made anew under the old address, and the kubeconfig
// may have changed. It is an error when it is not the cluster that swell knows by
// this name. A cluster that did not answer the last time is asked in the background,
// and the error of that time is returned at once.
func (c *Cluster) Reach(ctx context.Context) (*apply.Cluster, error) {
	conn, uid, err := c.reach(ctx)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	pinned, err := c.identity(ctx, conn, uid)
	if err != nil {
		return nil, err
	}
	c.noteStranger(pinned, uid)
	if pinned != uid {
		return nil, fmt.Errorf("cluster %s: not the cluster we knew: its kube-system namespace has the UID %s, ours had %s: "+
			"where it was made anew, swell cluster accept %s --uid %s forgets what the old one had", c.name, uid, pinned, c.name, uid)
	}
	return conn, nil
}

// noteStranger keeps which cluster answers in place of the one that is known.
func (c *Cluster) noteStranger(pinned, uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stranger = ""; pinned != uid {
		c.stranger = uid
	}
}

// Stranger is the UID of the cluster that answered at last in place of the one that is known; empty: none did.
func (c *Cluster) Stranger() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stranger
}

func (c *Cluster) reach(ctx context.Context) (*apply.Cluster, string, error) {
	c.mu.Lock()
	down, before := c.down, c.link
	c.mu.Unlock()
	if down != nil {
		return nil, "", down
	}
	l, uid, err := c.identify(ctx, before)
	switch {
	case errors.Is(err, apply.ErrThrottled): // it is there, and busy
		return nil, "", err
	case err != nil:
		c.Lost(ctx, err)
		return nil, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = l
	return l.Cluster, uid, nil
}

// identify asks for the cluster's identity, over the link or, when the kubeconfig
// is not that of the link any more, over a new one. A new kubeconfig that does
// not lead to an answer is not taken up as long as the link does. A link takes the first
// cluster that it led to for its own, and would refuse to write to another, also to the right one:
// when another one answers, there is a new link.
func (c *Cluster) identify(ctx context.Context, before *link) (*link, string, error) {
	if before == nil {
		return c.connect(ctx)
	}
	_, sum, err := c.kubeconfig.read()
	if err != nil || sum != before.sum {
		if l, uid, ok := c.renew(ctx, sum, err); ok {
			return l, uid, nil
		}
	} else {
		c.setStale(nil, sum)
	}
	uid, err := before.Identity(ctx)
	if err == nil && before.LedElsewhere() {
		return c.connect(ctx)
	}
	return before, uid, err
}

// Linked is the connection as it is; nil when there is none at the moment.
func (c *Cluster) Linked() *apply.Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return nil
	}
	return c.link.Cluster
}

// retryKubeconfig is how long after a kubeconfig that leads nowhere it is tried
// again, so that not every pass waits for an answer that does not come.
const retryKubeconfig = 15 * time.Second

// renew connects with a changed kubeconfig; not ok when that did not work, for
// a reason that is noted. unread says why it could not even be read.
func (c *Cluster) renew(ctx context.Context, sum [sha256.Size]byte, unread error) (*link, string, bool) {
	if unread != nil {
		c.setStale(unread, [sha256.Size]byte{})
		return nil, "", false
	}
	c.mu.Lock()
	wait := c.stale != nil && c.failed == sum && time.Now().Before(c.retryAt)
	c.mu.Unlock()
	if wait {
		return nil, "", false
	}
	l, uid, err := c.connect(ctx)
	if ctx.Err() == nil {
		c.setStale(err, sum)
	}
	return l, uid, err == nil
}

func (c *Cluster) setStale(err error, sum [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale, c.failed, c.retryAt = err, sum, time.Now().Add(retryKubeconfig)
}

// Stale says why the newest kubeconfig is not in use; nil when it is.
func (c *Cluster) Stale() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stale == nil || c.link == nil {
		return nil
	}
	return fmt.Errorf("cluster %s: the connection made before stays in use: %w", c.name, c.stale)
}

// hurry has a kubeconfig that led nowhere tried again at the next look.
func (c *Cluster) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retryAt = time.Time{}
}

// IsDown says that the cluster did not answer when it was last asked.
func (c *Cluster) IsDown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down != nil
}

// Condition is why the cluster cannot be reached, or not as its kubeconfig says;
// nil when it can, as far as anybody has tried.
func (c *Cluster) Condition() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		return c.down
	}
	if c.link != nil {
		return c.stale
	}
	return nil
}

// connect makes a new link with the present kubeconfig, and asks over it.
func (c *Cluster) connect(ctx context.Context) (*link, string, error) {
	cfg, sum, err := c.kubeconfig.read()
	if err != nil {
		return nil, "", err
	}
	c.mu.Lock()
	repository := c.repository
	c.mu.Unlock()
	if repository == "" {
		return nil, "", errors.New("no commit was taken yet, so it is not known whose objects to look for")
	}
	conn, err := apply.Connect(cfg, repository, c.options)
	if err != nil {
		return nil, "", err
	}
	uid, err := conn.Identity(ctx)
	if err != nil {
		return nil, "", err
	}
	return &link{conn, sum}, uid, nil
}

// Lost notes a request that got no answer, or whose credentials are no longer
// accepted. The next connection is a new one, with the kubeconfig of that moment.
// Until ctx ends, a goroutine tries to reach the cluster.
func (c *Cluster) Lost(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil || ctx.Err() != nil {
		return
	}
	c.link, c.down, c.stale = nil, err, nil
	go func() {
		l := c.awaitReconnect(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.link, c.down = l, nil
		if l != nil {
			c.back()
		}
	}()
}

// lookEvery is how often a cluster that does not answer is asked again, on top
// of the time that asking takes.
const lookEvery = 2 * time.Second

// awaitReconnect looks for the cluster until it answers; nil when ctx ended first.
func (c *Cluster) awaitReconnect(ctx context.Context) *link {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		l, _, err := c.connect(ctx)
		if err == nil {
			return l
		}
		c.mu.Lock()
		c.down = err // it may be another reason by now
		c.mu.Unlock()
	}
}

// identity is what the cluster must have: the one that it had when swell first saw
// it, which is uid when nobody saw it before, and its Lease does not say that it is another
// cluster. The lock is not held while the identity is pinned: that waits for the transaction of a
// pass, which may wait for the lock.
func (c *Cluster) identity(ctx context.Context, conn *apply.Cluster, uid string) (string, error) {
	c.mu.Lock()
	known, forgotten := c.pinned, c.forgotten
	c.mu.Unlock()
	if known != "" {
		return known, nil
	}
	if c.lease != nil {
		if isSure, err := c.lease.mayBe(ctx, conn, uid); err != nil || !isSure {
			return uid, err
		}
	}
	pinned, err := c.pin(ctx, c.name, uid) // the same for all who ask at a time: the first one's
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if pinned == uid && forgotten == c.forgotten { // else another one may be accepted at this moment
		c.pinned = pinned
	}
	return pinned, nil
}

// Forget drops the identity of the cluster: the next one that answers is pinned. The state has to have
// forgotten it before: whoever asks meanwhile would find the old one.
func (c *Cluster) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinned, c.link = "", nil
	c.forgotten++
}

// Term is the number of the time for which the cluster's Lease is ours, from 1. Zero
// is not ours, and why says so; it is nil before the first try. Where no Leases are
// kept, the term is always 1.
func (c *Cluster) Term() (term int, why error) { return c.lease.term() }

// During is a connection for what began in a term of the Lease: it writes in no
// other.
func (c *Cluster) During(conn *apply.Cluster, term int) *apply.Cluster {
	return conn.Fenced(c.lease.during(term))
}
