// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// Action is what became of one object.
type Action string

// The actions, in ssa's words. An object that something went wrong with has
// none, unless it was skipped.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
	// Recreated: deleted and made anew, because of a field that cannot be changed.
	Recreated Action = "recreated"
	Deleted   Action = "deleted"
	Skipped   Action = "skipped"
)

// Result is what became of one object.
type Result struct {
	ID     object.ID
	Action Action
	// Entry is what the inventory should hold now. After an error that leaves
	// open what the server has, its Digest is empty, so that the next apply
	// sends the object again whatever is wanted by then.
	Entry store.Entry
	// Reason says why an object was skipped, or what its deletion waits for.
	// It is the same from pass to pass.
	Reason string
	// Adopted says who made an object that was there already and that was taken
	// up; empty when it was not, or was ours.
	Adopted string
	// Taken are fields that others had set to something else, and that were
	// taken from them, sorted by field. What a failed write would have taken is
	// not among them.
	Taken []store.Change
	// Left are fields with another value in Git that were left to those who
	// hold them through the scale subresource.
	Left []store.Change
	// Warnings are further things to know about an object that was applied, the
	// same from pass to pass.
	Warnings []string
	// Freed names the pod that was deleted because the object, which a later phase waits
	// for, never replaces it; empty when none was.
	Freed string
	// Waits is set when the object, and so the whole call, waits for something
	// that takes its time: "phase 1", "hook Job/shop/migrate". Reason says what
	// is in the way. The same call goes on from there.
	Waits string
	// Forget is set by [Cluster.Prune] when the entry has done its duty: the
	// object is gone, or is not ours.
	Forget bool
	// After is set by [Cluster.Prune] when the object's turn has not come, because
	// something is still there that has to go first.
	After bool
	// Changed is set by [Cluster.Prune] when a heavy object changed between the
	// look at it and its deletion, which therefore did not take place.
	Changed bool
	Err     error
}

// waitsDeletion begins the Waits of what waits until something is gone that
// somebody else deleted.
const waitsDeletion = "deletion"

// IsOutside says whether the result waits for something that is not the bundle's
// doing: somebody else's deletion.
func (r *Result) IsOutside() bool { return strings.HasPrefix(r.Waits, waitsDeletion+" of ") }

// record takes in what the server made of an object: its metadata, or the error.
func (a *applying) record(i int, meta *metav1.PartialObjectMetadata, info answerInfo, err error) {
	o, r := a.Objects[i], &a.results[i]
	switch {
	case isNamespaceLeaving(err): // waiting is enough
		r.Action, r.Waits = Skipped, waitsDeletion+" of Namespace/"+o.ID.Namespace
		r.Reason = "waits for " + r.Waits + ": terminating"
		return
	case err != nil:
		r.Err = err
		if !isUnwritten(err) {
			r.Entry.Digest = ""
		}
		return
	}
	before := r.Entry.Fingerprint
	r.Entry = entryOf(r.Entry, o, meta)
	switch {
	case meta.DeletionTimestamp != nil: // what was written will not last
		r.Entry.Digest = ""
		a.waitFor(i, waitsDeletion, terminating(meta))
	case info.code == http.StatusCreated:
		r.Action = Created
	case before == r.Entry.Fingerprint && entryTime(ownEntry(meta)).Before(info.asked):
		r.Action = Unchanged
	default: // or it was changed twice in a second, which leaves no trace
		r.Action = Configured
	}
}

// entryOf is the inventory's entry for an object that the server has accepted.
func entryOf(known store.Entry, o *object.Object, meta *metav1.PartialObjectMetadata) store.Entry {
	own := ownEntry(meta)
	known.ID, known.Version = o.ID, o.Version
	known.UID, known.Digest = string(meta.UID), o.Digest
	known.Ran = ""
	known.Fields = rawFields(own)
	known.Fingerprint, known.Written = fingerprint(known.Fields, entryTime(own)), store.Written(entryTime(own))
	known.Keep, known.Found, known.Phase = keeps(o), false, o.Phase
	return known
}

// keeps says whether an object, as rendered, is marked to be kept when nobody
// wants it any more.
func keeps(o *object.Object) bool {
	if !bytes.Contains(o.JSON, []byte(config.AnnotationPrune)) {
		return false
	}
	var object metav1.PartialObjectMetadata
	return json.Unmarshal(o.JSON, &object) == nil && isKept(object.Annotations)
}

// takeBack ends what the result says about others after a write that went wrong:
// nothing was taken from them or left to them. Where the write may have gone
// through unseen, a warning names what was to be taken.
func (s *sending) takeBack(err error) {
	taken := s.r.Taken
	s.r.Taken, s.r.Left, s.r.Adopted, s.r.Warnings = nil, nil, "", nil
	if len(taken) == 0 || isUnwritten(err) || errors.Is(err, ErrWebhook) {
		return
	}
	texts := make([]string, len(taken))
	for i, c := range taken {
		texts[i] = c.String()
	}
	slices.Sort(texts)
	s.r.Warnings = []string{"perhaps overwritten, the server's answer is unknown: " + document.Some(texts, maxNamed)}
}

// messageOf is an error's text without the object that it is about.
func messageOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// failed is the error for what was taken by the server and came to a bad end.
func failed(op string, id object.ID, reason string) *Error {
	return &Error{Op: op, Object: id.String(), class: ErrFailed, Message: reason}
}

// outlived warns of what was sent and is not there in the answer: fields that
// did not become ours, and labels and annotations with other values. That a
// webhook changes any other value cannot be seen in the answer, which holds
// metadata only: the server counts such fields as ours all the same.
func (s *sending) outlived(meta *metav1.PartialObjectMetadata) {
	own := ownEntry(meta)
	if own == nil {
		return // an API server without managed fields
	}
	var fields []string
	root := s.less(s.left)
	metadata := metadataOf(root)
	for key, live := range map[string]map[string]string{"labels": meta.Labels, "annotations": meta.Annotations} {
		sent := texts(metadata, key)
		for _, name := range slices.Sorted(maps.Keys(sent)) {
			if live[name] != sent[name] {
				fields = append(fields, fieldText(fieldpath.MakePathOrDie("metadata", key, name)))
			}
		}
	}
	all := fieldsOf(own)
	for _, name := range slices.Sorted(maps.Keys(root)) {
		if !notOwned(s.o.ID, name) {
			fields = append(fields, lacking(all, fieldpath.Path{element(name)}, root[name])...)
		}
	}
	slices.Sort(fields)
	if fields = slices.Compact(fields); len(fields) > 0 {
		s.r.Warnings = append(s.r.Warnings, "not as it was sent, the server or an admission webhook changed it: "+document.Some(fields, maxNamed))
	}
}

// notOwned says whether a field at the top of an object is never in managed
// fields: what identifies it, and what only stands for something else.
func notOwned(id object.ID, name string) bool {
	switch name {
	case "apiVersion", "kind", "metadata":
		return true
	}
	return name == "stringData" && id.IsSecret()
}

func element(name string) fieldpath.PathElement { return fieldpath.PathElement{FieldName: &name} }

// lacking are the fields of value, which stands at the end of the path, that the
// set around it does not have.
func lacking(around *fieldpath.Set, path fieldpath.Path, value any) []string {
	last := path[len(path)-1]
	inside, ok := around.Children.Get(last)
	switch {
	case !ok && (around.Members.Has(last) || isEmpty(value)):
		return nil // held as a whole
	case !ok:
		return []string{fieldText(path)}
	}
	var fields []string
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			fields = append(fields, lacking(inside, append(slices.Clone(path), element(name)), child)...)
		}
	case []any:
		elements := elementsOf(inside)
		for i, item := range value {
			at := slices.IndexFunc(elements, func(e fieldpath.PathElement) bool { return means(e, item) })
			if at < 0 {
				fields = append(fields, fieldText(path)+"["+strconv.Itoa(i)+"]")
				continue
			}
			fields = append(fields, lacking(inside, append(slices.Clone(path), elements[at]), item)...)
		}
	}
	return fields
}

// isEmpty says whether a value has nothing in it that could be owned.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, child := range value {
			if !isEmpty(child) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	}
	return false
}

// elementsOf are the items of a list that a set has.
func elementsOf(set *fieldpath.Set) []fieldpath.PathElement {
	var elements []fieldpath.PathElement
	set.Members.Iterate(func(e fieldpath.PathElement) { elements = append(elements, e) })
	set.Children.Iterate(func(e fieldpath.PathElement) {
		if !set.Members.Has(e) {
			elements = append(elements, e)
		}
	})
	return elements
}
