// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/apply"
)

// cluster is the daemon's end of one API server.
type cluster struct {
	name   string
	access config.ClusterAccess
	// pinned is the identity that the cluster has had since swell first saw
	// it, once that was looked up. Only the pass uses it.
	pinned string

	mu   sync.Mutex
	conn *apply.Cluster
	// uid is that of kube-system, once this process has seen it.
	uid string
	// down says why the last look failed. While it is set, a look is under way
	// in the background, so that no pass waits for a cluster that is gone.
	down error
}

func newCluster(name string, access config.ClusterAccess) *cluster {
	return &cluster{name: name, access: access}
}

// Reachable returns the connection after a look at who is there. A cluster
// that did not answer the last time is asked in the background, and the error
// of that time is returned at once.
func (c *cluster) Reachable(ctx context.Context) (*apply.Cluster, string, error) {
	c.mu.Lock()
	down, conn, uid := c.down, c.conn, c.uid
	c.mu.Unlock()
	switch {
	case down != nil:
		return nil, "", down
	case uid != "":
		return conn, uid, nil
	}
	err := c.look(ctx)
	if err != nil {
		return nil, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn, c.uid, nil
}

// look connects where that has not been done, and asks for the cluster's
// identity. On failure it goes on looking in the background.
func (c *cluster) look(ctx context.Context) error {
	conn, err := c.connect()
	var uid string
	if err == nil {
		uid, err = conn.Identity(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn, c.uid = conn, uid
	if err != nil && ctx.Err() == nil {
		c.lostLocked(ctx, err)
	}
	return err
}

// Lost is told of a request that got no answer.
func (c *cluster) Lost(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lostLocked(ctx, err)
}

// lookEvery is how often a cluster that does not answer is asked again, on top
// of the time that asking takes.
const lookEvery = 2 * time.Second

func (c *cluster) lostLocked(ctx context.Context, err error) {
	if c.down != nil || ctx.Err() != nil {
		return
	}
	c.down = err
	c.uid = ""
	go func() {
		timer := time.NewTicker(lookEvery)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			conn, err := c.connect()
			var uid string
			if err == nil {
				uid, err = conn.Identity(ctx)
			}
			if err == nil {
				c.mu.Lock()
				c.conn, c.uid, c.down = conn, uid, nil
				c.mu.Unlock()
				return
			}
		}
	}()
}

// connect reads the kubeconfig anew, so that new credentials are taken up.
func (c *cluster) connect() (*apply.Cluster, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: c.access.Kubeconfig}
	loaded, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", c.access.Kubeconfig, err)
	}
	if loaded.Contexts[c.access.Context] == nil {
		return nil, fmt.Errorf("kubeconfig %s: no context %q", c.access.Kubeconfig, c.access.Context)
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*loaded, c.access.Context, nil, rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s, context %q: %w", c.access.Kubeconfig, c.access.Context, err)
	}
	return apply.Connect(cfg, apply.Options{})
}
