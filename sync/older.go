// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/store"
)

// The state may be older than the clusters: a copy of it was put back, or the
// machine lost the last writes to its disk. What it believes was released long
// ago; to correct the clusters to that would take production back. So before
// anything is written to a cluster after the daemon's start, a survey of it is
// held against the inventory. Where swell itself wrote later than the state knows
// of, the cluster is treated as after the loss of the state: see rebuild.go. The
// newest commit then comes through the waves, and what Git does not want is found
// and handed to removal, by approval.

// barred says that nothing may be written to a cluster now, nor judged of it, and
// why, unless that is about to be over: then somebody tells. A cluster that nobody
// says how to reach is not barred: whoever tries to reach it says so.
func (d *Daemon) barred(name string) (barred bool, why error) {
	c := d.fleet.Of(name)
	if c == nil {
		return false, nil
	}
	if w := d.monorepo.wanted; w != nil && w.Clusters != nil && !w.Clusters[name] {
		return true, nil // a commit that has it again begins a pass
	}
	if d.isMasked(name) {
		return true, nil // its Lease is not kept; the end of the mask begins a pass
	}
	term, why := c.Term()
	if term == 0 {
		return true, why
	}
	return term != d.surveys.compared[name], d.surveys.failures[name]
}

// mayLook says whether a cluster may be looked at for drift: also one that is masked, if it is
// known what swell has there. Drift at a masked place is only reported, and tells when the mask
// may end.
func (d *Daemon) mayLook(name string) bool {
	if d.isMasked(name) {
		return d.fleet.Of(name) != nil && d.surveys.known[name].Survey == store.Known
	}
	barred, _ := d.barred(name)
	return !barred
}

// distrustTerms has clusters compared again whose Lease somebody else may have had
// since.
func (d *Daemon) distrustTerms() {
	for _, name := range d.fleet.Names() {
		if term, _ := d.fleet.Of(name).Term(); term != 0 && d.surveys.compared[name] != 0 && d.surveys.compared[name] != term {
			delete(d.surveys.compared, name)
			delete(d.surveys.due, name)
		}
	}
}

// newerThan says, of the first object that shows it, why the inventory of a
// cluster is older than the cluster; empty when it is not. Evidence is what only
// swell itself does, and notes in the same moment: the time of its own
// managedFields entry is later than that of its last apply on record, or an object
// with its marks is not on record at all, and not older than all that is. An object
// whose digest is not known explains anything: a write to it may have been cut
// short. What other managers do moves neither that time nor the marks.
//
// A cluster whose own storage was put back to an earlier time holds older times
// than the record: that is drift. Somebody who applies by hand under swell's name
// cannot be told from an older state; to go forward is right for both.
//
// unknown are the kinds that the last survey could not list, see [apply.Cluster.Survey]:
// what is found of them now is not on record for that reason. orphaned says of an object
// that it may have been left to the cluster, and is not on record for that reason. An object
// that was orphaned and is wanted again may be taken for evidence: then the cluster is
// taken in anew, which writes and deletes nothing.
func (d *Daemon) newerThan(inventory, found []store.Entry, unknown []string, orphaned func(store.Entry) bool) string {
	on, last := make(map[object.ID][]store.Entry, len(inventory)), ""
	for _, e := range inventory {
		on[e.ID] = append(on[e.ID], e)
		last = max(last, e.Written)
	}
	for _, live := range found {
		entries := on[live.ID]
		switch {
		case len(entries) > 0:
			if newer := d.newer(entries, live); newer != "" {
				return newer
			}
		case live.Written >= last && !isAmong(unknown, live.ID) && !orphaned(live):
			return fmt.Sprintf("%s was made by swell at %s, and the state does not know it", live.ID, live.Written)
		}
	}
	return ""
}

// orphaned is for objects of a cluster: what is marked to be kept, and no bundle wants. While
// it is not known what Git wants, nothing is: the cluster waits for that.
func (d *Daemon) orphaned(cluster string) func(store.Entry) bool {
	return func(e store.Entry) bool {
		return e.Keep && d.monorepo.isConfirmed() && len(d.monorepo.mayWant(cluster, e.ID)) == 0
	}
}

// isAmong says whether an object is of one of the kinds, or of one of the groups with
// their versions, that could not be listed.
func isAmong(unknown []string, id object.ID) bool {
	return slices.ContainsFunc(unknown, func(name string) bool {
		gv, err := schema.ParseGroupVersion(name)
		ofGroup := err == nil && gv.Group == id.Group && (gv.Group != "" || name == "v1")
		return ofGroup || schema.ParseGroupKind(name) == schema.GroupKind{Group: id.Group, Kind: id.Kind}
	})
}

// newer says why an object was written later than any of its entries knows.
func (d *Daemon) newer(entries []store.Entry, live store.Entry) string {
	known, judged := "", false
	for _, e := range entries {
		if e.UID == live.UID && e.Fingerprint == live.Fingerprint {
			return ""
		}
		if e.Digest == "" || d.reruns(e) {
			continue
		}
		if e.Written == "" && apply.AsWritten(e, live) {
			return ""
		}
		judged, known = true, max(known, e.Written)
	}
	if !judged || live.Written <= known {
		return ""
	}
	return fmt.Sprintf("%s was written by swell at %s, and the state knows of %s", live.ID, live.Written, cmp.Or(known, "an earlier time"))
}

// reruns says that an entry is of a Job that may have been made anew without its
// digest being cleared: a hook runs once for each bundle.
func (d *Daemon) reruns(e store.Entry) bool {
	if !e.ID.IsJob() {
		return false
	}
	unit := d.state.Units[e.Unit]
	return e.Ran != "" || unit == nil || unit.Targets[e.Target] == nil || unit.Targets[e.Target].Dirty
}

// strangeWriter says that a process which the state does not know wrote to a cluster last, by the
// cluster's Lease; empty when it does not say so. It may be our own later self, of which an older
// state was put back, or a standby. What either deleted leaves no other trace.
func (p *pass) strangeWriter(name string) (why string, err error) {
	writer := p.fleet.Of(name).Writer()
	writers, err := p.tx.Writers()
	if err != nil || writer == "" || writers[name] == nil || slices.Contains(writers[name], writer) {
		return "", err
	}
	return fmt.Sprintf("a process of swell that the state does not know, %s, wrote there last, by the annotation %s of the Lease",
		writer, config.AnnotationWriter), nil
}

// putWriters notes that this process may write to a cluster from now on. Until its Lease says so,
// the one before is named there.
func (p *pass) putWriters(name string) error {
	writers, err := p.tx.Writers()
	if err != nil {
		return err
	}
	next := map[string][]string{name: {p.fleet.Process()}}
	if last := p.fleet.Of(name).Writer(); last != "" && last != p.fleet.Process() {
		next[name] = append(next[name], last)
	}
	for other, known := range writers {
		if _, isKnown := p.surveys.known[other]; isKnown && other != name {
			next[other] = known
		}
	}
	if maps.EqualFunc(next, writers, slices.Equal) {
		return nil
	}
	return p.tx.PutWriters(next)
}

// distrust takes the cluster in as it is, and forgets what the state believes of
// it.
func (p *pass) distrust(name string, found surveyed, why string) error {
	entries := p.assign(name, found.entries)
	why = fmt.Sprintf("cluster %s: the state is older than the cluster: %s", name, why)
	p.fleetEvent("older", fmt.Sprintf("%s; %s taken in; nothing is corrected or deleted there before the newest commit is applied and healthy",
		why, document.Count(len(entries), "object")))
	p.r.Transitions = append(p.r.Transitions, p.state.Distrust(name, why, p.r.At)...)
	is := p.surveys.known[name]
	is.Name, is.Survey, is.Unknown = name, store.Rebuilding, strings.Join(found.unknown, ", ")
	p.sweeps.ledger.ForgetCluster(name)
	delete(p.sweeps.marks, name)
	p.surveys.known[name] = is
	p.guarded.pending, p.guarded.stale = nil, true
	p.openUp(name, found)
	return errors.Join(p.tx.Distrust(name, found.entries), p.tx.Adopt(entries), p.tx.Surveyed(name, is.Survey, is.Unknown))
}
