// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet connects a daemon to its clusters. It has their kubeconfigs and the
// changes in them, the identity that each cluster has had since swell first saw it,
// the connection, and the Lease that keeps other daemons from writing there.
//
// It decides no write, and reads or writes no object except Leases.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/store"
)

// Options of a [Fleet]. Pin and Changed are required.
type Options struct {
	// Clusters says how to reach clusters, by name.
	Clusters map[string]config.ClusterAccess
	// KubeconfigDir is a folder with the kubeconfigs of further clusters, and of
	// those of Clusters that name none. Empty is none.
	KubeconfigDir string
	// Allow is what kubeconfigs may hold besides the harmless.
	Allow []config.Allowance
	// Reach leads to a cluster that has no kubeconfig, such as a simulated one. Nil,
	// and where it returns nil, is by the kubeconfig.
	Reach func(cluster string) *rest.Config
	// ServiceAccount is the folder with the credentials of the pod that this process runs
	// in. Empty is where Kubernetes mounts them.
	ServiceAccount string
	// Connection is how each cluster is talked to.
	Connection apply.Options
	Lease      config.Lease
	// LeaseTimes are for tests. The zero value is a minute, renewed every 20 s.
	LeaseTimes LeaseTimes
	// Holder is who keeps the Leases.
	Holder store.Holder
	// Pin notes the identity of a cluster that is seen for the first time, and returns
	// the one that it has to have.
	Pin func(ctx context.Context, name, uid string) (pinned string, err error)
	// Known says whether the state knows what swell has in a cluster, by its name or, unless that
	// is empty, by its identity. Nil: it does.
	Known func(name, uid string) bool
	// Changed is called when a cluster answers again, and when a Lease was won or lost.
	Changed func()
}

// Fleet is the clusters of a daemon. It is used by one goroutine at a time; its
// clusters by many.
type Fleet struct {
	options    Options
	host       string
	repository string // whose objects are ours; empty before the first commit was taken
	clusters   map[string]*Cluster
	orders     string // that Leases carry

	keeping context.Context // of those who keep Leases; nil before the first
	cancel  context.CancelFunc
	leases  []*lease // that somebody keeps
}

// New prepares a fleet. It talks to nobody yet. repository is the monorepo's name,
// empty while it is not known.
func New(options Options, repository string) (*Fleet, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	if options.LeaseTimes == (LeaseTimes{}) {
		options.LeaseTimes = defaultLeaseTimes
	}
	if options.Connection.Room == nil {
		options.Connection.Room = apply.NewRoom(apply.RoomOfAll)
	}
	f := &Fleet{options: options, host: host, repository: repository, clusters: map[string]*Cluster{}}
	for name, access := range options.Clusters {
		f.add(name, access)
	}
	return f, nil
}

func (f *Fleet) add(name string, access config.ClusterAccess) {
	options, l := f.options.Connection, f.newLease(name)
	if l != nil {
		options.Fence = l.fence
	}
	from := kubeconfig{access: access, dir: f.options.KubeconfigDir, allow: f.options.Allow, account: f.options.ServiceAccount}
	if f.options.Reach != nil {
		from.given = f.options.Reach(name)
	}
	c := newCluster(name, f.repository, from, options)
	c.pin, c.back, c.lease = f.options.Pin, f.options.Changed, l
	f.clusters[name] = c
}

// Find looks for further clusters in the folder of kubeconfigs, and returns the names
// of those that are new. The error is of the folder.
func (f *Fleet) Find() (added []string, err error) {
	if f.options.KubeconfigDir == "" {
		return nil, nil
	}
	names, err := clustersIn(f.options.KubeconfigDir)
	for _, name := range names {
		if f.clusters[name] == nil {
			f.add(name, config.ClusterAccess{})
			added = append(added, name)
		}
	}
	return added, err
}

// Of is a cluster by its name; nil when nobody says how to reach it.
func (f *Fleet) Of(name string) *Cluster { return f.clusters[name] }

// Names are those of all clusters, sorted.
func (f *Fleet) Names() []string { return slices.Sorted(maps.Keys(f.clusters)) }

// Unknown is the error for a cluster that nobody says how to reach.
func (f *Fleet) Unknown(name string) error {
	err := errors.New("the daemon's configuration does not say how to reach it")
	if dir := f.options.KubeconfigDir; dir != "" {
		err = fmt.Errorf("it is not in the daemon's configuration, and there is no %s.yaml or %s.kubeconfig in %s", name, name, dir)
	}
	return fmt.Errorf("cluster %s: %w", name, err)
}

// BelongTo says whose objects are ours, once that is known.
func (f *Fleet) BelongTo(repository string) {
	f.repository = repository
	for _, c := range f.clusters {
		c.belongTo(repository)
	}
}

// Hurry has what failed, and is waited with, tried again at the next look.
func (f *Fleet) Hurry() {
	for _, c := range f.clusters {
		c.hurry()
	}
}

// newLease is for a cluster; nil when no Leases are kept.
func (f *Fleet) newLease(name string) *lease {
	if f.options.Lease.Off {
		return nil
	}
	is := f.options.Holder
	who := func(process string) string { return f.host + "/" + is.State + "/" + process }
	l := &lease{cluster: name, namespace: cmp.Or(f.options.Lease.Namespace, config.DefaultLeaseNamespace), times: f.options.LeaseTimes,
		process: is.Process, holder: who(is.Process), state: is.State, orders: f.orders, known: f.options.Known, changed: f.options.Changed, begun: make(chan struct{}), over: make(chan struct{}), resumed: make(chan struct{}, 1)}
	for _, process := range is.Before {
		l.before = append(l.before, who(process))
	}
	return l
}

// KeepLeases begins to keep the Leases of these clusters where that was not begun
// yet, and waits a little for what comes of it. They are kept when ctx has ended too,
// until [Fleet.Release].
func (f *Fleet) KeepLeases(ctx context.Context, names []string) {
	if f.repository == "" || f.options.Lease.Off {
		return
	}
	if f.keeping == nil {
		f.keeping, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	}
	patience := time.NewTimer(leasePatience)
	defer patience.Stop()
	var fresh []*lease
	for _, name := range names {
		c := f.clusters[name]
		if c == nil {
			continue
		}
		if c.lease.name != "" {
			continue
		}
		c.lease.name = "swell-" + f.repository
		c.lease.linked, c.lease.reach = c.Linked, c.Reach
		go c.lease.keep(f.keeping)
		fresh = append(fresh, c.lease)
	}
	f.leases = append(f.leases, fresh...)
	for _, l := range fresh {
		select {
		case <-l.begun:
		case <-patience.C:
			return
		}
	}
}

// SuspendLeases stops to renew the Leases of these clusters, without giving them back:
// that would be a write. Those of all others that were begun are kept, also where it is not
// known at the moment which clusters Git has.
func (f *Fleet) SuspendLeases(these func(name string) bool) {
	for name, c := range f.clusters {
		if c.lease != nil {
			c.lease.suspend(these(name))
		}
	}
}

// Release gives all Leases back, but those that are suspended.
func (f *Fleet) Release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
	defer cancel()
	f.end(func(l *lease) { l.release(ctx) })
}

// Abandon stops to renew the Leases without giving them back, as when the process is
// killed. Others may take them when they run out; who holds the same state next, see
// [store.Store.Hold], has them at once.
func (f *Fleet) Abandon() { f.end(func(*lease) {}) }

// end stops to renew the Leases, and does this with each as soon as nobody keeps it:
// a cluster that is slow holds up no other.
func (f *Fleet) end(then func(*lease)) {
	if f.keeping == nil {
		return
	}
	f.cancel()
	var all sync.WaitGroup
	for _, l := range f.leases {
		all.Go(func() {
			<-l.over
			then(l)
		})
	}
	all.Wait()
	f.keeping, f.cancel, f.leases = nil, nil, nil
}

// Named are the clusters that the settings say how to reach, sorted. The error is of the
// folder of kubeconfigs.
func Named(settings *config.Daemon) (names []string, err error) {
	if settings.KubeconfigDir != "" {
		names, err = clustersIn(settings.KubeconfigDir)
	}
	for name := range settings.Clusters {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// Connect makes a connection to a cluster for a command that looks at what the
// monorepo of that name has in it, with the credentials of the daemon with these
// settings. The cluster has answered.
func Connect(ctx context.Context, settings *config.Daemon, repository, name string) (*apply.Cluster, error) {
	from := kubeconfig{access: settings.Clusters[name], dir: settings.KubeconfigDir, allow: settings.Allow}
	l, _, err := newCluster(name, repository, from, apply.Options{}).connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	return l.Cluster, nil
}
