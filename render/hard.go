// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// hardKinds are the schemas of hard objects: Kubernetes' own and those that the tree and
// the clusters define. A kind of custom resources means in a cluster what defines it
// there: a unit that is placed on the cluster, else the cluster by its facts, else the
// folder of schemas.
type hardKinds struct {
	clusters    []*config.Cluster
	versions    []string      // of Kubernetes, in the fleet
	open        bool          // kinds whose definition is nowhere pass
	definitions []*definition // of units by path, then those in the folder of schemas
	hash        string
	texts       map[document.Position][]byte // of those in units
	// problems of definitions freeze the units that hold them.
	problems map[config.UnitPath]document.Problems
	shared   document.Problems // of the folder of schemas; they freeze nothing by themselves
	unread   bool              // a file that may hold some could not be read

	// facts are definitions that clusters have, by cluster.
	facts map[string]*config.Facts

	mu     sync.Mutex
	live   map[string][]crdText   // of facts, by the hash of all definitions in them
	sets   map[string]*schema.Set // by version and definitions
	within map[string]*schema.Set // by cluster
	every  *schema.Set            // see [hardKinds.all]

	published map[*definition]*Definition
}

// definition is a CustomResourceDefinition of the tree.
type definition struct {
	unit  config.UnitPath // empty in the folder of schemas
	place document.Position
	text  []byte // canonical JSON
	hash  string // of the text
	claim schema.Claim
	// on are the clusters that the unit goes to; lost says that they are not known,
	// because the unit's Defaults have a problem.
	on   map[string]bool
	lost bool
}

func newDefinition(place document.Position, object map[string]any) *definition {
	d := &definition{place: place, text: schema.AppendJSON(nil, object), claim: schema.ClaimOf(object)}
	sum := sha256.Sum256(d.text)
	d.hash = hex.EncodeToString(sum[:])
	return d
}

// groupKind tells definitions apart: a cluster has one of each.
func groupKind(c schema.Claim) schema.Claim {
	c.Plural = ""
	return c
}

// ofCluster returns the schemas of a cluster. Clusters with the same definitions have the
// same.
func (h *hardKinds) ofCluster(c *config.Cluster) *schema.Set {
	h.mu.Lock()
	defer h.mu.Unlock()
	if set := h.within[c.Name]; set != nil {
		return set
	}
	set := h.setOf(c.Kubernetes, h.inCluster(c.Name))
	h.within[c.Name] = set
	return set
}

// all are the schemas of the newest version with the definitions of all clusters, for
// what belongs to none of them.
func (h *hardKinds) all() *schema.Set {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.every == nil {
		var list []crdText
		for _, d := range h.definitions {
			list = append(list, d.named())
		}
		seen := map[string]bool{}
		for _, cluster := range slices.Sorted(maps.Keys(h.facts)) {
			if hash := h.facts[cluster].DefinitionsHash; !seen[hash] {
				seen[hash] = true
				list = append(list, h.inFacts(cluster)...)
			}
		}
		h.every = h.setOf("", list)
	}
	return h.every
}

// crdText is a definition, and how messages call it.
type crdText struct {
	name, hash string
	text       []byte
	live       bool
	claim      schema.Claim
}

func (d *definition) named() crdText {
	return crdText{d.place.String(), d.hash, d.text, false, d.claim}
}

// setOf makes a set, once.
func (h *hardKinds) setOf(version string, list []crdText) *schema.Set {
	sum := sha256.New()
	fmt.Fprintln(sum, version)
	for _, n := range list {
		fmt.Fprintf(sum, "%q %s %t\n", n.name, n.hash, n.live)
	}
	key := string(sum.Sum(nil))
	if set := h.sets[key]; set != nil {
		return set
	}
	kubernetes, err := schema.Kubernetes(version)
	if err != nil {
		panic(err) // a problem of the cluster
	}
	definitions := make([]*schema.Definition, len(list))
	for i, n := range list {
		definitions[i] = kubernetes.Define(n.name, n.text, n.live)
	}
	set := kubernetes.With(definitions)
	set.Open = h.open
	h.sets[key] = set
	return set
}

// inCluster are the definitions that hold in a cluster, one of each kind.
func (h *hardKinds) inCluster(cluster string) (list []crdText) {
	known := map[schema.Claim]bool{}
	add := func(n crdText) {
		if of := groupKind(n.claim); !known[of] {
			known[of] = true
			list = append(list, n)
		}
	}
	addIf := func(holds func(*definition) bool) {
		for _, d := range h.definitions {
			if holds(d) {
				add(d.named())
			}
		}
	}
	addIf(func(d *definition) bool { return d.on[cluster] })
	for _, n := range h.inFacts(cluster) {
		add(n)
	}
	addIf(func(d *definition) bool { return d.unit == "" })
	addIf(func(d *definition) bool { return d.lost }) // to freeze others for it would say nothing true
	return list
}

// inFacts are the definitions in the facts of a cluster. Clusters with the same ones share
// them, with the name of the first.
func (h *hardKinds) inFacts(cluster string) []crdText {
	f := h.facts[cluster]
	if f == nil || len(f.Definitions) == 0 {
		return nil
	}
	if known, ok := h.live[f.DefinitionsHash]; ok {
		return known
	}
	for _, name := range slices.Sorted(maps.Keys(h.facts)) {
		if h.facts[name].DefinitionsHash == f.DefinitionsHash {
			cluster = name
			break
		}
	}
	list := make([]crdText, len(f.Definitions))
	for i, object := range f.Definitions {
		d := newDefinition(document.Position{}, object)
		list[i] = crdText{"the facts of cluster " + cluster, d.hash, d.text, true, d.claim}
	}
	h.live[f.DefinitionsHash] = list
	return list
}

// elsewhere finds a definition of a kind that is placed on other clusters only, where
// nothing defines the kind in the cluster with these schemas; nil when there is none.
func (h *hardKinds) elsewhere(set *schema.Set, apiVersion, kindName string) *definition {
	group, _, _ := strings.Cut(apiVersion, "/")
	if set.Defines(group, kindName) {
		return nil
	}
	for _, d := range h.definitions {
		if d.claim.Group == group && d.claim.Kind == kindName {
			return d
		}
	}
	return nil
}

// distinct are the schemas of all clusters, each once, in the order of the fleet.
func (h *hardKinds) distinct() (sets []*schema.Set) {
	for _, c := range h.clusters {
		if set := h.ofCluster(c); !slices.Contains(sets, set) {
			sets = append(sets, set)
		}
	}
	return sets
}

// servedName is a kind as a manifest names it.
type servedName struct{ apiVersion, kind string }

// served are the kinds of all clusters. One comes again where another cluster has other schemas.
func (h *hardKinds) served() iter.Seq2[servedName, *schema.Kind] {
	return func(yield func(servedName, *schema.Kind) bool) {
		for _, set := range h.distinct() {
			for _, text := range set.Names() {
				apiVersion, kindName, _ := strings.Cut(text, " ")
				if k := set.Kind(apiVersion, kindName); k != nil && !yield(servedName{apiVersion, kindName}, k) {
					return
				}
			}
		}
	}
}

// hardHash is the address of what a kind is in the clusters of a unit, for the name of a
// read, see [hardName]. Many units may have the same one.
func (w *world) hardHash(name string) string {
	known, ok := w.hards.Load(name)
	if !ok {
		known, _ = w.hards.LoadOrStore(name, sync.OnceValue(func() string { return w.hardHashOf(name) }))
	}
	return known.(func() string)()
}

func (w *world) hardHashOf(name string) string {
	on, rest, _ := strings.Cut(name, " ")
	apiVersion, kindName, _ := strings.Cut(rest, " ")
	found, _ := w.places.groups.Load(on)
	clusters, _ := found.([]*config.Cluster)
	by := map[*schema.Set]string{}
	sum := sha256.New()
	for _, c := range clusters {
		set := w.hard.ofCluster(c)
		hash, known := by[set]
		switch k := set.Kind(apiVersion, kindName); {
		case known:
		case k != nil:
			hash = k.Hash()
		default:
			hash = string(w.repository.Checks.UnknownKinds) + w.noKind(set, apiVersion, kindName).message // what is said about it
		}
		by[set] = hash
		fmt.Fprintf(sum, "%q %q\n", c.Name, hash)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
