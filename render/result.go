// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unique"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/object"
)

// result is what rendering one unit gave. The cache keeps it in two parts: the
// head under a key of what is known before rendering, with everything that was
// read besides, and the objects under the key of both together.
type result struct {
	reads    reads
	problems document.Problems
	notes    document.Problems
	blames   document.Problems // of other units, for what this one collected of them
	heads    []head            // by place
	bundles  []*object.Bundle  // only right after rendering; those with objects
	// settings are kept also where the unit has a problem: they are what others meet.
	settings []setting
	// holds are the kinds of documents in the unit, see [world.scan].
	holds []string
	// foreign are the unit's files that hold no documents.
	foreign []string
	// values are those that no other spec may have.
	values []uniqueValue
	// sharedNames are names of what other tenants may have.
	sharedNames []sharedName
	// uses are what Checkers pick of the unit's objects.
	uses uses

	packed    []byte // as it was read from the cache; nil for a new one
	sameFiles bool   // the files that were read are known to be unchanged in this commit
}

// head is what the compiler keeps in memory of a bundle.
type head struct {
	digest object.Digest // empty where the unit renders to nothing
	// ids are the objects' [ObjectID.hash], in apply order.
	ids []uint64
	// needs are the namespaces and definitions that the objects cannot be
	// applied without.
	needs []object.ID
	// brings is set when one of the objects may be needed by others.
	brings bool
}

// collects says whether documents of other units were read.
func (r *result) collects() bool {
	return slices.ContainsFunc(r.reads, func(r read) bool { return r.what == readCollection })
}

// key of the objects of a result.
func (r *result) key(static cache.Key) cache.Key {
	sum := sha256.New()
	sum.Write(static[:])
	for _, read := range r.reads {
		if read.what == readSpace { // objects do not depend on what judges them
			continue
		}
		fmt.Fprintf(sum, "%c %q %q\n", read.what, read.name, read.hash)
	}
	return cache.Key(sum.Sum(nil))
}

// lasting says whether the result would be the same another time.
func (r *result) lasting() bool {
	for _, p := range r.problems {
		if p.Retry || p.Code == document.CodeInternal {
			return false
		}
	}
	return true
}

// shared returns the one copy of a text that many units have.
func shared(s string) string { return unique.Make(s).Value() }

var errDamaged = errors.New("damaged cache entry")

// encoding appends the parts of an entry.
type encoding []byte

func (e *encoding) number(n int) { *e = binary.AppendUvarint(*e, uint64(n)) }
func (e *encoding) flag(b bool) {
	if b {
		e.number(1)
	} else {
		e.number(0)
	}
}
func (e *encoding) text(s string) { e.number(len(s)); *e = append(*e, s...) }
func (e *encoding) id(id object.ID) {
	e.text(id.Group)
	e.text(id.Kind)
	e.text(id.Namespace)
	e.text(id.Name)
}

func (e *encoding) position(p document.Position) {
	e.text(p.File)
	e.number(p.Line)
	e.number(p.Column)
}

// decoding takes an entry apart. After an error everything is empty.
type decoding struct {
	rest []byte
	err  error
}

func (d *decoding) number() int {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > 1<<40 {
		d.err, d.rest = errDamaged, nil
		return 0
	}
	d.rest = d.rest[size:]
	return int(n)
}

// count is a number of things that follow, of at least a byte each.
func (d *decoding) count() int {
	n := d.number()
	if n > len(d.rest) {
		d.err, d.rest = errDamaged, nil
		return 0
	}
	return n
}

func (d *decoding) bytes() []byte {
	n := d.count()
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoding) texts() []string {
	var list []string
	for range d.count() {
		list = append(list, d.text())
	}
	return list
}

func (d *decoding) text() string { return string(d.bytes()) }

func (d *decoding) id() object.ID {
	return object.ID{Group: d.text(), Kind: d.text(), Namespace: d.text(), Name: d.text()}
}

func (d *decoding) position() document.Position {
	return document.Position{File: d.text(), Line: d.number(), Column: d.number()}
}

func (e *encoding) result(r *result) {
	e.number(len(r.reads))
	for _, read := range r.reads {
		e.number(int(read.what))
		e.text(read.name)
		e.text(read.hash)
	}
	problems, err := json.Marshal([3]document.Problems{r.problems, r.notes, r.blames})
	if err != nil {
		panic(err) // texts and numbers encode
	}
	if len(r.problems)+len(r.notes)+len(r.blames) == 0 {
		problems = nil
	}
	e.text(string(problems))
	e.number(len(r.heads))
	for _, h := range r.heads {
		e.text(string(h.digest))
		e.number(len(h.ids))
		for _, id := range h.ids {
			*e = binary.BigEndian.AppendUint64(*e, id)
		}
		e.flag(h.brings)
		e.number(len(h.needs))
		for _, id := range h.needs {
			e.id(id)
		}
	}
	e.number(len(r.settings))
	for _, set := range r.settings {
		e.number(set.place)
		for _, text := range [...]string{set.kind, set.namespace, set.name, set.content} {
			e.text(text)
		}
	}
	e.number(len(r.holds))
	for _, name := range r.holds {
		e.text(name)
	}
	e.number(len(r.foreign))
	for _, file := range r.foreign {
		e.text(file)
	}
	e.number(len(r.values))
	for _, v := range r.values {
		e.text(v.name)
		e.text(string(v.in))
		e.text(v.within)
		e.text(v.value)
		e.position(v.at)
		e.position(v.spec)
		e.flag(v.secret)
	}
	sharedNames, err := json.Marshal(r.sharedNames)
	if err != nil {
		panic(err) // texts and numbers encode
	}
	if len(r.sharedNames) == 0 {
		sharedNames = nil
	}
	e.text(string(sharedNames))
	e.number(len(r.uses))
	for _, u := range r.uses {
		e.number(int(u.part))
		e.text(u.name)
		e.text(u.more)
		e.number(u.item)
		e.number(u.count)
	}
}

// pack is the head, as [mustUnpack] reads it.
func (r *result) pack() []byte {
	if r.packed != nil {
		return slices.Clone(r.packed)
	}
	var e encoding
	e.result(r)
	return slices.Clip(slices.Clone(e))
}

func mustUnpack(packed []byte) *result {
	d := decoding{rest: packed}
	r, err := d.result()
	if err != nil {
		panic(err) // packed by this process
	}
	return r
}

// maxTraces is how many results are kept under one static key: as the inputs go
// back and forth between branches, a unit's results do too.
const maxTraces = 4

// keep stores a result that lasts in front of others of the same static key.
func (w *world) keep(static cache.Key, r *result, others []*result) {
	if len(r.bundles) > 0 {
		w.cache.Put(r.key(static), encodeBundles(r.bundles))
	}
	others = others[:min(len(others), maxTraces-1)]
	var e encoding
	e.number(1 + len(others))
	for _, trace := range slices.Concat([]*result{r}, others) {
		e.result(trace)
	}
	w.cache.Put(static, e)
}

// traces are the results that the cache has under a static key for a number of
// places, newest first; never nil.
func (w *world) traces(static cache.Key, places int) []*result {
	list := []*result{}
	packed, ok := w.cache.Get(static)
	if !ok {
		return list
	}
	d := decoding{rest: packed}
	for range d.count() {
		before := d.rest
		r, err := d.result()
		if err != nil || len(r.heads) != places {
			return list
		}
		r.packed = before[:len(before)-len(d.rest)]
		list = append(list, r)
	}
	return list
}

func (d *decoding) result() (*result, error) {
	r := &result{}
	r.reads = make(reads, d.count())
	for i := range r.reads {
		sort := d.number()
		r.reads[i] = read{what: what(sort), name: d.text(), hash: d.text()}
		if d.err == nil && (sort > 0xff || !r.reads[i].valid()) {
			return nil, errDamaged
		}
	}
	if problems := d.bytes(); len(problems) > 0 {
		var lists [3]document.Problems
		if err := json.Unmarshal(problems, &lists); err != nil {
			return nil, err
		}
		r.problems, r.notes, r.blames = lists[0], lists[1], lists[2]
	}
	r.heads = make([]head, d.count())
	for i := range r.heads {
		h := &r.heads[i]
		h.digest = object.Digest(d.text())
		h.ids = make([]uint64, d.count())
		for j := range h.ids {
			if len(d.rest) < 8 {
				return nil, errDamaged
			}
			h.ids[j] = binary.BigEndian.Uint64(d.rest)
			d.rest = d.rest[8:]
		}
		h.brings = d.number() == 1
		h.needs = make([]object.ID, d.count())
		for j := range h.needs {
			h.needs[j] = d.id()
		}
	}
	r.settings = make([]setting, d.count())
	for i := range r.settings {
		r.settings[i] = setting{place: d.number(), kind: d.text(), namespace: d.text(), name: d.text(), content: d.text()}
		if r.settings[i].place >= len(r.heads) {
			return nil, errDamaged
		}
	}
	r.holds = make([]string, d.count())
	for i := range r.holds {
		r.holds[i] = shared(d.text())
	}
	if n := d.count(); n > 0 {
		r.foreign = make([]string, n)
		for i := range r.foreign {
			r.foreign[i] = d.text()
		}
	}
	r.values = make([]uniqueValue, d.count())
	for i := range r.values {
		key := uniqueKey{shared(d.text()), kind.UniqueIn(shared(d.text())), shared(d.text()), d.text()}
		r.values[i] = uniqueValue{key, d.position(), d.position(), d.number() == 1}
	}
	if names := d.bytes(); len(names) > 0 {
		if err := json.Unmarshal(names, &r.sharedNames); err != nil {
			return nil, err
		}
		isLost := func(i int) bool { return i < 0 || i >= len(r.heads) }
		if slices.ContainsFunc(r.sharedNames, func(name sharedName) bool { return slices.ContainsFunc(name.Places, isLost) }) {
			return nil, errDamaged
		}
	}
	if n := d.count(); n > 0 {
		r.uses = make(uses, n)
		for i := range r.uses {
			key := useKey{usePart(d.number()), shared(d.text()), shared(d.text()), d.number()}
			r.uses[i] = use{key, d.number()}
		}
	}
	return r, d.err
}

func encodeBundles(bundles []*object.Bundle) []byte {
	var e encoding
	e.number(len(bundles))
	for _, b := range bundles {
		e.text(string(b.Target))
		e.number(len(b.Objects))
		for _, o := range b.Objects {
			e.id(o.ID)
			e.text(o.Version)
			e.number(o.Phase)
			e.position(o.Spec)
			e.position(o.Template)
			e.number(len(o.Secrets))
			for _, text := range o.Secrets {
				e.text(text)
			}
			e.text(o.Sealed)
			e.text(string(o.JSON))
		}
	}
	return e
}

// decodeBundles reads the objects of a unit and holds them against the
// digests that the unit has.
func decodeBundles(unit *Unit, packed []byte) ([]*object.Bundle, error) {
	d := decoding{rest: packed}
	bundles := make([]*object.Bundle, d.count())
	for i := range bundles {
		var err error
		if bundles[i], err = d.bundle(unit, config.TargetName(d.text())); err != nil {
			return nil, err
		}
	}
	return bundles, d.err
}

// decodeBundle reads the objects of a unit on one target; nil where the entry
// has none. It keeps nothing of the entry, which also has all other targets'.
func decodeBundle(unit *Unit, packed []byte, target config.TargetName) (found *object.Bundle, err error) {
	d := decoding{rest: packed}
	for range d.count() {
		if name := config.TargetName(d.text()); name != target {
			d.skipBundle()
		} else if found, err = d.bundle(unit, name); err != nil {
			return nil, err
		}
	}
	if found == nil || d.err != nil {
		return nil, d.err
	}
	for _, o := range found.Objects {
		o.JSON = bytes.Clone(o.JSON)
	}
	return found, nil
}

func (d *decoding) bundle(unit *Unit, target config.TargetName) (*object.Bundle, error) {
	objects := make([]*object.Object, d.count())
	for j := range objects {
		o := &object.Object{ID: d.id(), Version: d.text(), Phase: d.number(), Spec: d.position(), Template: d.position(), Secrets: d.texts(), Sealed: d.text(), JSON: d.bytes()}
		o.Digest = object.DigestOf(o.JSON)
		objects[j] = o
	}
	b := object.SealBundle(unit.Path, target, objects)
	if on := unit.On(target); on == nil || on.Digest != b.Digest {
		return nil, fmt.Errorf("unit %s on target %s: %w", unit.Path, target, errDamaged)
	}
	return b, nil
}

// skipBundle goes past what bundle reads.
func (d *decoding) skipBundle() {
	for range d.count() {
		for range 5 { // the ID and the version
			d.bytes()
		}
		d.number()
		for range 2 { // positions
			d.bytes()
			d.number()
			d.number()
		}
		d.texts()
		for range 2 { // the file of encrypted values and the object
			d.bytes()
		}
	}
}
