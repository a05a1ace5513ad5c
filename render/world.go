// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
)

// format is part of every key: raise it when rendering gives other bytes or
// an entry of the cache gets another form.
const format = "17"

// world is all that the units of one commit are rendered from. It is safe for
// concurrent use.
type world struct {
	version    string // of the program
	cache      *cache.Cache
	repository *config.Repository
	charts     Charts // nil: none can be rendered
	rules
	hard       *hardKinds
	places     *places
	kinds      *kind.Kinds
	data       *kind.Data
	offers     *offers
	problems   document.Problems // of the data files
	claims     document.Problems // of definitions in the folder of schemas that have the names of easy kinds
	builds     sync.Map          // *build by unit
	again      lastFile
	defaults   defaultOverrides
	names      sync.Map   // by kind, see [world.named]
	hards      sync.Map   // by the name of a read, see [world.hardHash]
	spaces     spaces     // what the tree sets for namespaces
	inFacts    lazySpaces // what clusters have by their facts
	inBase     lazySpaces // the same of the base
	namespaces sync.Map   // *policy.Namespace by [namespaceKey]
	texts      sync.Map   // *kind.PlaceText, or why there is none, by the text of Defaults
	unmatched  sync.Map   // func() string by the position of a reference, see [world.whyNothing]
}

// hash is the address of what a render reads, as it is in this commit; empty
// where there is none.
func (w *world) hash(what what, name string) string {
	switch what {
	case readKind:
		apiVersion, kindName, _ := strings.Cut(name, " ")
		return w.kinds.HashOf(apiVersion, kindName)
	case readClaim:
		parts := strings.SplitN(name, " ", 3)
		return w.kinds.Claimed(schema.Claim{Group: parts[0], Kind: parts[1], Plural: parts[2]})
	case readHard:
		return w.hardHash(name)
	case readServed:
		return w.servedHash(name)
	case readNamed:
		return w.named(name)
	case readFile, readFolder:
		hash, err := w.repository.Tree.Hash(name)
		if err != nil {
			return ""
		}
		return hash
	case readData:
		return w.data.Hash(dataPath(name))
	case readMapping:
		if !w.data.IsMapping(dataPath(name)) {
			return ""
		}
		return "mapping"
	case readChecks:
		return w.checks.hash(name)
	case readCollection:
		return w.offers.hash(w, name)
	case readYAML:
		return strconv.FormatBool(w.repository.StrictYAML)
	case readUnjudged:
		if w.policies == nil {
			return "unjudged"
		}
		return ""
	}
	panic(fmt.Sprintf("a read of type %q", what))
}

// places are the targets that units may be placed on, in both topologies.
type places struct {
	cells, clusters []place
	named           map[config.TargetName]place

	mu    sync.Mutex
	known map[*config.Defaults]placed

	groups sync.Map // []*config.Cluster by name, see [places.clustersOf]
}

// clustersOf names the clusters that a unit goes to, in one word for however many. The
// same clusters have the same name in every commit.
func (p *places) clustersOf(placed []place) string {
	sum := sha256.New()
	var clusters []*config.Cluster
	for _, on := range placed {
		if n := len(clusters); n == 0 || clusters[n-1] != on.cluster { // cells stand together
			clusters = append(clusters, on.cluster)
			fmt.Fprintf(sum, "%q", on.cluster.Name)
		}
	}
	const enough = 16
	name := hex.EncodeToString(sum.Sum(nil)[:enough])
	p.groups.LoadOrStore(name, clusters)
	return name
}

// placed is what is known of a placement.
type placed struct {
	places []place
	why    string // it picks nothing, see [config.Repository.WhyNoTarget]
	closed string // the first cluster that is picked and does not take the tenant
}

type place struct {
	target  *config.Target
	cluster *config.Cluster
	facts   string // the address of all that templates can see of it
}

func newPlaces(r *config.Repository) *places {
	list := func(whole bool) (all []place) {
		for _, cluster := range r.Clusters {
			for _, target := range cluster.Targets(whole) {
				all = append(all, place{&target, cluster, factsOf(&target, cluster.Kubernetes)})
			}
		}
		return all
	}
	p := &places{cells: list(false), clusters: list(true), named: map[config.TargetName]place{}, known: map[*config.Defaults]placed{}}
	for _, place := range slices.Concat(p.cells, p.clusters) {
		p.named[place.target.Name] = place
	}
	return p
}

// factsOf is the address of a target, and of the Kubernetes version of its
// cluster.
func factsOf(target *config.Target, kubernetes string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %q\n", target.Name, target.Cluster, target.Cell, kubernetes)
	for _, values := range []map[string]string{target.Labels, target.Variables} {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			fmt.Fprintf(sum, "%q: %q\n", key, values[key])
		}
		fmt.Fprintln(sum)
	}
	return string(sum.Sum(nil))
}

// maxPlacements bounds what is remembered of Defaults that are in use no more.
const maxPlacements = 10_000

// placed finds where a unit with these defaults goes.
func (w *world) placed(d *config.Defaults) placed {
	if d.Placement == nil || len(d.Problems) > 0 {
		return placed{}
	}
	p := w.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.known[d]; ok {
		return known
	}
	all := p.cells
	if d.Placement.WholeClusters {
		all = p.clusters
	}
	found := placed{why: w.repository.WhyNoTarget(d.Placement.Match)}
	for _, place := range all {
		switch {
		case !d.Placement.Match.Matches(place.target.Labels):
		case w.repository.Takes(place.cluster, d.Tenant):
			found.places = append(found.places, place)
		case found.closed == "":
			found.closed = place.cluster.Name
		}
	}
	if len(p.known) > maxPlacements {
		clear(p.known)
	}
	p.known[d] = found
	return found
}

// placesOf are the places of a unit as it stands in a snapshot. Its Defaults
// may have been written anew since, to the same effect.
func (w *world) placesOf(unit *Unit) []place {
	list := make([]place, len(unit.Placements))
	for i, on := range unit.Placements {
		list[i] = w.places.named[on.Target.Name]
	}
	return list
}

// key is the static key of a unit: what is known to matter before it is
// rendered.
func (w *world) key(unit *config.Unit, placed []place) cache.Key {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %q %q %q %s\n", format, w.version, w.repository.Name, unit.Path, unit.Hash)
	fmt.Fprintf(sum, "%+v\n", w.treatments)
	d := unit.Defaults
	held := len(unit.Problems)+len(d.Problems) > 0 // nothing is rendered then
	fmt.Fprintf(sum, "%q %s %q %t %q %s %t\n", d.Tenant, d.OverridesHash, unit.Kustomization, held, d.Namespace, d.NamespaceAt, d.Keeps)
	for _, key := range slices.Sorted(maps.Keys(d.Labels)) {
		fmt.Fprintf(sum, "%q: %q\n", key, d.Labels[key])
	}
	for _, p := range placed {
		fmt.Fprintf(sum, "%x", p.facts)
		if f := w.repository.Facts[p.cluster.Name]; f != nil { // its definitions and namespaces are read one by one
			fmt.Fprintf(sum, "%q", f.PoliciesHash)
		}
	}
	w.places.clustersOf(placed) // what was read names them
	fmt.Fprintf(sum, "%q %q\n", w.repository.Policies, w.repository.PoliciesHash)
	if w.basePolicies != nil {
		fmt.Fprintf(sum, "%q\n", w.basePolicies.hash)
	}
	for _, t := range w.tenantsOf(unit) {
		fmt.Fprintf(sum, "\n%x %q", t.rules(), t.Position.File) // which messages name
	}
	return cache.Key(sum.Sum(nil))
}
