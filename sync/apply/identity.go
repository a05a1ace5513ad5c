// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// identityTimeout bounds [Cluster.Identity], which is also how a pass finds out
// that a cluster cannot be reached: it must not take long to say so.
const identityTimeout = 5 * time.Second

// identity is which cluster a connection led to at first. When a request got no answer,
// another cluster may stand at the address by the time of the next one: then nothing
// is written before the UID was read again. The zero value is ready for use.
type identity struct {
	asked singleflight.Group

	mu      sync.Mutex
	uid     string // empty: nobody asked yet
	doubted bool
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
	c.identity.doubted = c.identity.uid != uid
	return uid, nil
}

// LedElsewhere says that the last answer of [Cluster.Identity] was another cluster's than the
// connection's first.
func (c *Cluster) LedElsewhere() bool { return c.identity.isDoubted() }

// doubt notes that a request got no answer.
func (i *identity) doubt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.doubted = i.uid != ""
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

// sameCluster is the error for a write or a removal while it is not known whether the
// connection still leads to the cluster that it led to; nil when it does.
func (c *call) sameCluster(ctx context.Context, op, id string) *Error {
	if !c.identity.isDoubted() {
		return nil
	}
	_, err, _ := c.identity.asked.Do("", func() (any, error) {
		if !c.identity.isDoubted() {
			return nil, nil
		}
		_, err := c.Identity(ctx)
		return nil, err
	})
	switch {
	case err != nil:
		why := fmt.Sprintf("not tried: it is not known whether it is still the same cluster: %v", err)
		return &Error{Op: op, Object: id, class: ErrUnreachable, unsent: true, Message: why}
	case c.identity.isDoubted():
		return &Error{Op: op, Object: id, class: ErrUnreachable, unsent: true, Message: "not tried: another cluster answers than before"}
	}
	return nil
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
		return &Error{Op: "survey", Object: "all kinds", class: ErrUnreachable, Message: "another cluster answers than before"}
	}
	return nil
}
