// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render/object"
)

// Suspect is an object that may have drifted.
type Suspect struct {
	ID          object.ID
	Fingerprint string // as it was seen
	// Anyway: it is looked at whatever its fingerprint was. No watch says so.
	Anyway bool
}

// Suppression is an object whose drift is known and left alone: until it looks
// different, and before Until whatever happens to it.
type Suppression struct {
	Fingerprint string
	Until       time.Time
}

// Ended is a watch for drift that does not go on by itself: what happens to the kind
// has to be found by a sweep.
type Ended struct {
	Cluster string
	Kind    schema.GroupKind
	Err     error
}

// Found is what the watches for drift saw.
type Found struct {
	Suspects map[string][]Suspect // by cluster, in apply order
	Flooded  []string             // clusters of which more was seen than could be noted
	Ended    []Ended              // by cluster and kind
}

// MaxSuspects is how many objects of a cluster are noted between two passes.
// More are a reason for a sweep.
const MaxSuspects = 20_000

// Listed has the kinds that a full sweep listed watched from there on, and ends the
// watches for drift of an earlier connection to the cluster. Where the sweep is
// complete, kinds that it did not list are watched for drift no more.
func (in *Informer) Listed(ctx context.Context, cluster string, conn Connection, lists map[schema.GroupVersionKind]string, complete bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for k, w := range in.watches {
		if k.cluster != cluster || !w.drift {
			continue
		}
		if _, listed := lists[k.kind.WithVersion(w.version)]; w.conn != conn || complete && !listed {
			in.closeLocked(k)
		}
	}
	for kind, since := range lists {
		k := key{cluster: cluster, kind: kind.GroupKind()}
		if w := in.watches[k]; w != nil {
			if w.drift {
				continue
			}
			in.closeLocked(k) // the new one serves health too
		}
		in.openLocked(ctx, k, &watch{conn: conn, version: kind.Version, drift: true}, since)
		in.enqueueKindLocked(cluster, k.kind)
	}
}

// Busy tells which clusters jobs are at work in: each from before its first write
// until all writes are recorded. Meanwhile the inventory says less than what is
// known, and all that is seen there is suspect. The caller changes the map no more.
func (in *Informer) Busy(clusters map[string]bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.busy = clusters
}

// Suppress tells which objects are left as they are, by cluster. The caller changes
// the map no more. What an object looked like meanwhile is a suspect once it is left no more: a job may
// have written it, and somebody else after that.
func (in *Informer) Suppress(all map[string]map[object.ID]Suppression) {
	if in.suppress(all) {
		in.wake()
	}
}

// suppress says whether there are suspects.
func (in *Informer) suppress(all map[string]map[object.ID]Suppression) (found bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.suppressed = all
	for cluster, objects := range in.overlooked {
		for id, fingerprint := range objects {
			if _, isLeft := all[cluster][id]; isLeft {
				continue
			}
			delete(objects, id)
			in.suspectLocked(cluster, Suspect{ID: id, Fingerprint: fingerprint})
			found = true
		}
		if len(objects) == 0 {
			delete(in.overlooked, cluster)
		}
	}
	return found
}

// overlooksLocked says that an object is left as it is.
func (in *Informer) overlooksLocked(cluster string, seen Seen) bool {
	s, ok := in.suppressed[cluster][seen.ID]
	if !ok || s.Fingerprint != seen.Fingerprint && !time.Now().Before(s.Until) {
		return false
	}
	if in.overlooked[cluster] == nil {
		in.overlooked[cluster] = map[object.ID]string{}
	}
	in.overlooked[cluster][seen.ID] = seen.Fingerprint
	return true
}

// suspectLocked notes a suspect, as it was seen last.
func (in *Informer) suspectLocked(cluster string, s Suspect) {
	noted := in.suspects[cluster]
	if noted == nil {
		noted = map[object.ID]string{}
		in.suspects[cluster] = noted
	}
	if len(noted) < MaxSuspects {
		noted[s.ID] = s.Fingerprint
	} else {
		in.flooded[cluster] = true
	}
}

// Requeue notes suspects once more that could not be looked at yet.
func (in *Informer) Requeue(cluster string, suspects []Suspect) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, s := range suspects {
		if _, seen := in.suspects[cluster][s.ID]; !seen {
			in.suspectLocked(cluster, s)
		}
	}
}

// Drain takes what was seen since the last time.
func (in *Informer) Drain() Found {
	in.mu.Lock()
	defer in.mu.Unlock()
	found := Found{Suspects: map[string][]Suspect{}, Flooded: slices.Sorted(maps.Keys(in.flooded))}
	for k, w := range in.watches {
		if w.drift && w.err != nil {
			found.Ended = append(found.Ended, Ended{k.cluster, k.kind, w.err})
			delete(in.watches, k)
		}
	}
	slices.SortFunc(found.Ended, func(a, b Ended) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Kind.String(), b.Kind.String()))
	})
	for cluster, seen := range in.suspects {
		for _, id := range slices.SortedFunc(maps.Keys(seen), object.CompareApplyOrder) {
			found.Suspects[cluster] = append(found.Suspects[cluster], Suspect{ID: id, Fingerprint: seen[id]})
		}
	}
	clear(in.flooded)
	clear(in.suspects)
	return found
}
