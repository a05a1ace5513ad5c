// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// Store is what a daemon remembers from one process to the next: a [store.Store]. A pass
// reads and writes in one Update, and an error of it ends the daemon. Besides that, it is
// read when the daemon begins, and by jobs, sweeps and watches, which tell of an error as
// their own failure.
type Store interface {
	Update(ctx context.Context, do func(*store.Tx) error) error

	Units() (map[config.UnitPath][]byte, error)
	Repository() (string, error)
	Bounds() (json.RawMessage, error)
	Conditions() ([]store.Condition, error)
	Unreached() ([]string, error)

	Clusters() (map[string]store.ClusterState, error)
	PinCluster(ctx context.Context, name, uid string, belongs func() bool) (pinned string, err error)
	Hold(ctx context.Context) (store.Holder, error)

	Inventory(unit config.UnitPath, target config.TargetName) (map[object.ID]store.Entry, error)
	ClusterInventory(cluster string) ([]store.Entry, error)
	InventoryAfter(cluster string, after store.Object, n int) ([]store.Entry, error)
	Holders(cluster string, id object.ID) ([]store.Entry, error)

	SweptAt() (map[string]time.Time, error)
	DeepAfter(cluster string) (store.Object, error)
	Drifts() ([]store.Drift, error)
	Fights() ([]store.Fight, error)

	// Changes is a number that grows when somebody else writes to the state.
	Changes() (int64, error)
	Plans() ([]store.Plan, error)
	Orders() ([]order.Order, error)
	Standing() (order.Standing, error)
	Asks() ([]order.Ask, error)
	Names() (store.Names, error)
	Brought() (store.Brought, error)
	Approvals() ([]store.Approval, error)
	Deleted() (map[object.UnitTarget]store.Tally, error)
}

var _ Store = (*store.Store)(nil)

// LoadState reads the state of all units from a store.
func LoadState(s Store) (*rollout.State, error) {
	rows, err := s.Units()
	if err != nil {
		return nil, err
	}
	paths := slices.Sorted(maps.Keys(rows))
	units := make([]*rollout.Unit, len(paths))
	var decoding errgroup.Group
	decoding.SetLimit(runtime.GOMAXPROCS(0))
	for i, path := range paths {
		decoding.Go(func() (err error) {
			if units[i], err = rollout.DecodeUnit(path, rows[path]); err != nil {
				return fmt.Errorf("state of unit %s: %w", path, err)
			}
			return nil
		})
	}
	if err := decoding.Wait(); err != nil {
		return nil, err
	}
	state := &rollout.State{Units: make(map[config.UnitPath]*rollout.Unit, len(rows))}
	for i, path := range paths {
		state.Units[path] = units[i]
	}
	return state, nil
}
