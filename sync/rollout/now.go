// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// Now tells a preview how the fleet differs from one that has all of the newest commit. Nobody
// changes it once it is made. The zero value differs in nothing.
type Now struct {
	// Units are those that are not as the commit wants them, or have bundles in quarantine.
	Units map[config.UnitPath]UnitNow `json:"units,omitempty"`
	// Unreleased are those that have a problem, and were never released; sorted.
	Unreleased []config.UnitPath `json:"unreleased,omitempty"`
	// More counts those for which there was no room.
	More int `json:"more,omitempty"`
	// Standing are the orders in force.
	Standing order.Standing `json:"standing,omitempty"`
	// Clusters are those that the daemon's configuration says how to reach; nil: nobody knows.
	Clusters []string `json:"clusters"`
}

// UnitNow is a unit in a [Now].
type UnitNow struct {
	State json.RawMessage `json:"state"` // the JSON of [Unit]
	// Key is another one when the unit stands in another way; how far it is within a wave is
	// not in it.
	Key string `json:"-"`
}

// maxNow is how many bytes of units a Now has at most.
const maxNow = 4 << 20

// Now returns how the fleet is. The units that failed come before those under way where there is not
// room for all.
func (s *State) Now(standing order.Standing) (Now, error) {
	now := Now{Units: map[config.UnitPath]UnitNow{}, Standing: standing}
	room := maxNow
	var behind, failed []config.UnitPath
	for path, u := range s.Units {
		switch {
		case u.failed() || u.Blocked != "" || len(u.Quarantine) > 0:
			failed = append(failed, path)
		case u.IsUnderWay():
			behind = append(behind, path)
		}
	}
	slices.Sort(behind)
	slices.Sort(failed)
	for _, path := range slices.Concat(failed, behind) {
		if room <= 0 {
			now.More++
			continue
		}
		row, err := json.Marshal(s.Units[path])
		if err != nil {
			return Now{}, err
		}
		room -= len(row)
		now.Units[path] = UnitNow{State: row, Key: s.Units[path].key()}
	}
	return now, nil
}

// Released is what the unit's newest release that began brings, and the commit that it came with; of one that
// waits for its turn the bundles are nil. Both are empty where nothing was released.
func (u *Unit) Released() (commit config.Commit, bundles map[config.TargetName]object.Digest) {
	if u.Pending != nil {
		return u.Pending.Commit, nil
	}
	bundles = map[config.TargetName]object.Digest{}
	for _, target := range u.list() {
		if target.Wanted != "" {
			bundles[target.name] = target.Wanted
		}
	}
	return u.Rollout.Commit, bundles
}

// key is that of a [UnitNow].
func (u *Unit) key() string {
	troubles := map[string]bool{}
	for _, t := range u.list() {
		switch {
		case t.Masked != "" && !t.applied():
			troubles[t.Masked] = true
		case t.Trouble != NoTrouble:
			troubles[string(t.Trouble)] = true
		}
	}
	r := u.Rollout
	return strings.Join(slices.Concat([]string{string(r.Status), string(r.Commit), r.Failure, u.Blocked, u.Waiting},
		texts(slices.Sorted(maps.Keys(u.Quarantine))), slices.Sorted(maps.Keys(troubles))), "\n")
}

func texts(digests []object.Digest) (all []string) {
	for _, d := range digests {
		all = append(all, string(d))
	}
	return all
}

// Same says that all units stand in the same way, under the same orders.
func (n *Now) Same(other *Now) bool {
	return n.KeyOf(nil) == other.KeyOf(nil) && n.More == other.More &&
		maps.EqualFunc(n.Units, other.Units, func(a, b UnitNow) bool { return a.Key == b.Key })
}

// KeyOf is another text when some of the units stand in another way, or other orders are in force.
func (n *Now) KeyOf(units []config.UnitPath) string {
	var b strings.Builder
	for i := range n.Standing {
		if o := &n.Standing[i]; o.Verb != order.Approve {
			fmt.Fprintf(&b, "%d %s\n", o.Seq, o.Until)
		}
	}
	fmt.Fprintf(&b, "%q\n", n.Clusters)
	for _, path := range units {
		if u, ok := n.Units[path]; ok {
			fmt.Fprintf(&b, "%s %q\n", path, u.Key)
		}
	}
	return b.String()
}

// Decode returns the units. Each call makes them anew.
func (n *Now) Decode() (map[config.UnitPath]*Unit, error) {
	units := make(map[config.UnitPath]*Unit, len(n.Units))
	for path, row := range n.Units {
		u, err := DecodeUnit(path, row.State)
		if err != nil {
			return nil, fmt.Errorf("state of unit %s: %w", path, err)
		}
		units[path] = u
	}
	return units, nil
}

// DecodeUnit reads the JSON of a unit. A field that it does not know is an error: a newer swell wrote
// it.
func DecodeUnit(path config.UnitPath, row []byte) (*Unit, error) {
	decoder := json.NewDecoder(bytes.NewReader(row))
	decoder.DisallowUnknownFields()
	unit := &Unit{}
	if err := decoder.Decode(unit); err != nil {
		return nil, fmt.Errorf("%w; was it written by a newer version of swell?", err)
	}
	if unit.Rollout == nil || unit.Path != path {
		return nil, errors.New("not the state of this unit")
	}
	return unit, nil
}

// InQuarantineFor says why the commit's release of the unit does not begin: it brings a bundle that
// failed before. Empty: it brings none, or the unit has that release already.
func (u *Unit) InQuarantineFor(w *Wanted) string {
	unit := w.Units[u.Path]
	if unit == nil || unit.frozen() != "" || u.Begun(w) {
		return ""
	}
	return u.quarantined(unit)
}
