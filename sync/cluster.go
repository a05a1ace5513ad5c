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
	conn *apply.Cluster // nil before the first look, and after a loss
	// down says why the last look failed. While it is set, a look is under way
	// in the background, so that no pass waits for a cluster that is gone.
	down error
}

func newCluster(name string, access config.ClusterAccess) *cluster {
	return &cluster{name: name, access: access}
}

// Reachable returns the connection and the identity of the cluster that is at
// its end now: it looks each time, for a cluster may have been made anew under
// the old address. A cluster that did not answer the last time is asked in the
// background, and the error of that time is returned at once.
func (c *cluster) Reachable(ctx context.Context) (*apply.Cluster, string, error) {
	c.mu.Lock()
	down, conn := c.down, c.conn
	c.mu.Unlock()
	if down != nil {
		return nil, "", down
	}
	conn, uid, err := c.look(ctx, conn)
	if err != nil {
		c.Lost(ctx, err)
		return nil, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = conn
	return conn, uid, nil
}

// look asks for the cluster's identity, over a new connection where conn is
// nil.
func (c *cluster) look(ctx context.Context, conn *apply.Cluster) (*apply.Cluster, string, error) {
	if conn == nil {
		var err error
		if conn, err = c.connect(); err != nil {
			return nil, "", err
		}
	}
	uid, err := conn.Identity(ctx)
	return conn, uid, err
}

// Lost is told of a request that got no answer, or whose credentials were not
// taken any more. The next connection is a new one, with what the kubeconfig
// says then. Until ctx ends, somebody looks for the cluster.
func (c *cluster) Lost(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil || ctx.Err() != nil {
		return
	}
	c.conn, c.down = nil, err
	go func() {
		conn := c.await(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conn, c.down = conn, nil
	}()
}

// lookEvery is how often a cluster that does not answer is asked again, on top
// of the time that asking takes.
const lookEvery = 2 * time.Second

// await looks for the cluster until it answers; nil when ctx ended first.
func (c *cluster) await(ctx context.Context) *apply.Cluster {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if conn, _, err := c.look(ctx, nil); err == nil {
			return conn
		}
	}
}

// Connect makes a connection to a cluster for a command that looks at it. It
// sends nothing.
func Connect(access config.ClusterAccess) (*apply.Cluster, error) {
	return newCluster(access.Name, access).connect()
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
