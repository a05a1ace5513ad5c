// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/swell-sh/swell/sync/store"
)

// identityTimeout bounds [Cluster.Identity], which is also how a pass finds out
// that a cluster cannot be reached: it must not take long to say so.
const identityTimeout = 5 * time.Second

// identity is which cluster a connection led to at first. When a request got no answer,
// another cluster may stand at the address by the time of the next one: then nothing
// is written, and nothing forgotten, before the UID was read again. The zero value is ready for use.
type identity struct {
	asked singleflight.Group

	mu      sync.Mutex
	uid     string // empty: nobody asked yet
	doubted bool
	doubts  int // how often it came to be in doubt
}

// Identity is the UID of the kube-system namespace: two clusters never share
// it, and a cluster keeps it for life. It answers within 5 s and so serves as
// the probe whether the cluster can be reached at all: it is the one request
// that is sent to a cluster that is known not to answer, and an answer ends
// that state. It is asked with the connection's own credentials, whoever's view
// it is.
func (c *Cluster) Identity(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, identityTimeout)
	defer cancel()
	call := c.As("").begin()
	call.probing = true
	doubts := c.identity.doubtsSoFar()
	meta, err := call.getMeta(ctx, "Namespace/kube-system", "/api/v1/namespaces/kube-system")
	if err != nil {
		return "", err
	}
	uid := string(meta.UID)
	c.identity.mu.Lock()
	defer c.identity.mu.Unlock()
	if c.identity.uid == "" {
		c.identity.uid = uid
	}
	c.identity.doubted = c.identity.uid != uid || c.identity.doubts != doubts // another request got no answer meanwhile
	return uid, nil
}

// doubt notes that a request got no answer.
func (i *identity) doubt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.doubted = i.uid != ""
	i.doubts++
}

// doubtsSoFar tells, from one moment to another, whether it was in doubt between them.
func (i *identity) doubtsSoFar() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.doubts
}

func (i *identity) isKnown() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.uid != ""
}

func (i *identity) isDoubted() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.doubted
}

// otherCluster says why it is not known, where it is in doubt, whether the connection still leads
// to the cluster that it led to. Empty is that it does.
func (c *call) otherCluster(ctx context.Context) string {
	if !c.identity.isDoubted() {
		return ""
	}
	_, err, _ := c.identity.asked.Do("", func() (any, error) {
		if !c.identity.isDoubted() {
			return nil, nil
		}
		_, err := c.Identity(context.WithoutCancel(ctx)) // others wait for it, too
		return nil, err
	})
	switch {
	case err != nil:
		return fmt.Sprintf("it is not known whether it is still the same cluster: %v", err)
	case c.identity.isDoubted():
		return anotherCluster
	}
	return ""
}

const anotherCluster = "another cluster answers than before"

// sameCluster is the error for a write while [call.otherCluster] has something to say; nil
// when it has not.
func (c *call) sameCluster(ctx context.Context, req *request) *Error {
	if why := c.otherCluster(ctx); why != "" {
		return &Error{Op: req.op, Object: req.object, class: ErrUnreachable, unsent: true, Message: "not tried: " + why}
	}
	return nil
}

// certain is what a look at an object found, in the cluster that the connection led to at
// first. Where that was in doubt meanwhile, another one may have answered, which has none of
// the objects, or others under their names: then it looks again.
func (c *call) certain(ctx context.Context, entry store.Entry, look func() Result) Result {
	why := "it was in doubt again and again which cluster answers"
	for range maxAttempts {
		if other := c.otherCluster(ctx); other != "" {
			why = other
			break
		}
		doubts := c.identity.doubtsSoFar()
		r := look()
		if !c.identity.isDoubted() && c.identity.doubtsSoFar() == doubts {
			return r
		}
		if r.Err != nil {
			return r
		}
	}
	err := &Error{Op: "prune", Object: entry.ID.String(), class: ErrUnreachable, Message: "not known: " + why}
	return Result{ID: entry.ID, Entry: entry}.failed(err)
}

// stayed is the error for what was read since the identity was known, if not all of it
// may be the same cluster's. Where nobody asked who it is, nothing is compared.
func (c *call) stayed(ctx context.Context) error {
	if !c.identity.isKnown() {
		return nil
	}
	if _, err := c.Identity(ctx); err != nil {
		return err
	}
	if c.identity.isDoubted() {
		return &Error{Op: "survey", Object: "all kinds", class: ErrUnreachable, Message: anotherCluster}
	}
	return nil
}
