// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// one brings one object, whatever that takes.
func (a *applying) one(ctx context.Context, i int) {
	o, r := a.Objects[i], &a.results[i]
	switch o.Hook() {
	case object.HookBeforeDelete:
		a.ready(ctx, i)
		return
	case object.HookOnce:
		a.hook(ctx, i)
		return
	}
	a.object(ctx, i)
	if fields := immutableFields(r.Err); len(fields) > 0 {
		a.replace(ctx, i, fields)
		return
	}
	if a.isLeaving(ctx, i) {
		return
	}
	a.replacedBy(ctx, i)
}

// object sends one object and fills its result in.
func (a *applying) object(ctx context.Context, i int) {
	s, err := a.sending(ctx, i)
	if err != nil {
		a.results[i].Err = err
		return
	}
	meta, info, err := s.send(ctx)
	if err != nil && a.changed[a.gvk(i).GroupKind()] {
		meta, info, err = s.sendSettling(ctx, err)
	}
	a.record(i, meta, info, err)
	if r := &a.results[i]; err == nil {
		r.Entry.Replicas, r.Entry.Shared = replicasOf(s.o.ID, s.root), len(sharers(meta)) > 0
		if len(s.leftovers) > 0 && s.adopt != config.AdoptTake {
			r.Warnings = append(r.Warnings, leftoverText+document.Some(s.leftovers, maxNamed))
		}
	}
}

// sending is one object on its way.
type sending struct {
	*applying
	*body
	o     *object.Object
	r     *Result
	adopt config.Adoption
	owned object.Globs
	// ignored are fields that are not sent when the object is there already.
	ignored []pointer
	// left are the fields that were not sent.
	left []pointer
	// chosen are members of one-ofs that others had set, and that were taken away.
	chosen []store.Change
	// leftovers are fields that whoever applied the object before had set alone.
	leftovers []string
}

// sending reads what the object says of how it is to be sent.
func (a *applying) sending(ctx context.Context, i int) (*sending, error) {
	o, err := a.open(ctx, a.Objects[i])
	if err != nil {
		return nil, err
	}
	b, err := bodyOf(o, a.Bundle)
	if err != nil {
		return nil, err
	}
	s := &sending{applying: a, body: b, o: o, r: &a.results[i], ignored: pointersFor(a.Ignore, o.ID)}
	if s.adopt, err = a.adoption(o, b.annotations); err != nil {
		return nil, err
	}
	if s.owned, err = object.ParseGlobs(b.annotations[config.AnnotationOwned]); err != nil {
		return nil, refusal(o, "annotation "+config.AnnotationOwned+": "+err.Error())
	}
	return s, nil
}

// adoption is the policy for one object.
func (w *Work) adoption(o *object.Object, annotations map[string]string) (config.Adoption, error) {
	text, ok := annotations[config.AnnotationAdopt]
	if !ok {
		if w.Adopt == "" {
			return config.AdoptIfSame, nil
		}
		return w.Adopt, nil
	}
	switch adopt := config.Adoption(text); adopt {
	case config.AdoptNever, config.AdoptIfSame, config.AdoptTake:
		return adopt, nil
	}
	return "", refusal(o, "annotation "+config.AnnotationAdopt+": want never, ifSame or take, got "+strconv.Quote(text))
}

// send brings one object to the server, by one request if nobody is in the way.
func (s *sending) send(ctx context.Context) (*metav1.PartialObjectMetadata, answerInfo, error) {
	r := s.r
	r.Taken, r.Left, r.Adopted, r.Warnings, s.left = nil, nil, "", nil, nil
	meta, info, err := s.applyOrCreate(ctx)
	if err != nil {
		s.takeBack(err)
		return nil, info, err
	}
	s.outlived(meta)
	if s.adopt == config.AdoptTake && info.code != http.StatusCreated {
		if meta, err = s.cleanse(ctx, meta); err != nil {
			return nil, info, afterWrite(err)
		}
	}
	for _, finish := range []func(context.Context, *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error){s.trim, s.unmark} {
		if meta, err = finish(ctx, meta); err != nil {
			return nil, info, afterWrite(err)
		}
	}
	for _, changes := range [][]store.Change{r.Taken, r.Left} {
		slices.SortStableFunc(changes, func(a, b store.Change) int { return strings.Compare(a.Field, b.Field) })
	}
	return meta, info, nil
}

// applyOrCreate applies the object to the one that the inventory knows, or else makes
// first contact.
func (s *sending) applyOrCreate(ctx context.Context) (meta *metav1.PartialObjectMetadata, info answerInfo, err error) {
	if known := s.r.Entry; known.UID != "" && !s.TakenOver[s.o.ID] {
		meta, info, err = s.update(ctx, types.UID(known.UID), known.Fields, true)
		if !isOtherObject(err) {
			return meta, info, err
		}
	}
	s.r.Taken, s.r.Left = nil, nil
	var there *liveInfo
	if key, err := s.collectionOf(ctx, s.o); err == nil {
		there = s.contacts.recall(key, s.o.ID.Name)
	}
	for tries := 1; tries <= looks; tries++ {
		if there == nil {
			meta, info, err = s.create(ctx)
			if !isTaken(err) && !isStale(err) {
				return meta, info, err
			}
			var unseen error
			if there, unseen = s.liveInfo(ctx, s.o); unseen != nil {
				return nil, answerInfo{}, unseen
			}
			if there == nil { // it went again, or the conflict is about a quota
				if !wait(ctx, s.backoff(min(tries, 3))) {
					return nil, answerInfo{}, err
				}
				continue
			}
		}
		meta, info, err = s.adoptExisting(ctx, there)
		if !isOtherObject(err) {
			return meta, info, err
		}
		there = nil
	}
	return nil, answerInfo{}, err
}

// afterWrite marks an error that came when the object had been written: what was
// there before is no more, even if the last request changed nothing.
func afterWrite(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	marked := *e
	marked.unsent, marked.unsure = false, true
	return &marked
}

// create sends the whole object, if there is none yet. Fields that are to be
// ignored are disowned as soon as they are set.
func (s *sending) create(ctx context.Context) (*metav1.PartialObjectMetadata, answerInfo, error) {
	s.left = nil
	body, err := s.with("resourceVersion", neverVersion, nil)
	if err != nil {
		return nil, answerInfo{}, unsendable(s.o, err)
	}
	meta, info, err := s.patch(ctx, s.o, body, patchOptions{query: applyQuery, contentType: applyType, once: true})
	if err != nil || len(s.ignored) == 0 {
		return meta, info, err
	}
	s.left = s.ignored
	// If somebody is always faster, the next apply lets go of them.
	if disowned, err := s.disown(ctx, s.o, meta.UID, meta, s.isIgnored); err == nil {
		meta = disowned
	}
	return meta, info, nil
}

func (s *sending) isIgnored(path fieldpath.Path) bool { return covers(s.ignored, path, s.root) }

// adoptExisting is first contact with an object that is there.
func (s *sending) adoptExisting(ctx context.Context, there *liveInfo) (*metav1.PartialObjectMetadata, answerInfo, error) {
	if there.ours {
		return s.update(ctx, there.uid, there.fields, true)
	}
	if err := there.refusal(s.o, s.adopt); err != nil {
		return nil, answerInfo{}, err
	}
	meta, info, err := s.update(ctx, there.uid, "", s.adopt == config.AdoptTake)
	if err != nil {
		return nil, info, err
	}
	s.r.Adopted = there.by()
	if names := sharers(meta); s.adopt == config.AdoptIfSame && len(names) > 0 {
		s.r.Warnings = append(s.r.Warnings, "also held by "+document.Some(names, maxNamed)+" until it changes in Git")
	}
	return meta, info, nil
}

// update applies the object to the live one with the UID, of which fields are
// ours. What others hold is left to them where they hold it through the scale
// subresource or a rule says so, and otherwise taken by force, or, without
// force, refused.
func (s *sending) update(ctx context.Context, uid types.UID, fields string, force bool) (*metav1.PartialObjectMetadata, answerInfo, error) {
	if s.r.Entry.Shared {
		if err := s.unshare(ctx, uid); err != nil {
			return nil, answerInfo{}, err
		}
	}
	replicas, err := s.scaling(ctx, uid, fields)
	if err != nil {
		return nil, answerInfo{}, err
	}
	s.ignored = append(slices.Clip(s.ignored), replicas.released...)
	if len(s.ignored) > 0 && fields != "" {
		if err := s.releaseFields(ctx, uid, fields); err != nil {
			return nil, answerInfo{}, err
		}
	}
	s.r.Taken, s.r.Left, s.chosen = nil, replicas.note(), nil
	options := patchOptions{query: applyQuery, contentType: applyType}
	s.left = slices.Concat(s.ignored, replicas.left)
	migrated := false
	for tries := 1; ; tries++ {
		body, err := s.with("uid", string(uid), s.left)
		if err != nil {
			return nil, answerInfo{}, unsendable(s.o, err)
		}
		meta, info, err := s.patch(ctx, s.o, body, options)
		if isStale(err) && !migrated {
			migrated = true
			if cause := s.migrate(ctx, s.o); cause != nil {
				return nil, info, cause
			}
			continue
		}
		if force { // else nothing is taken from others
			if chosen, cause := s.choose(ctx, uid, err); cause != nil {
				return nil, info, cause
			} else if chosen && tries < looks {
				continue
			}
		}
		conflicts := conflictsOf(err)
		if len(conflicts) == 0 || tries == looks {
			s.r.Taken = append(s.r.Taken, s.chosen...)
			return meta, info, err
		}
		scale, rest := scaled(conflicts)
		if replicas.gitWins {
			scale, rest = nil, conflicts
		}
		if len(rest) > 0 && !force {
			return nil, info, heldByOthers(s.o, rest, err)
		}
		s.left = append(s.left, pointersTo(scale)...)
		s.r.Left, s.r.Taken = append(s.r.Left, scale...), append(s.r.Taken, rest...)
		if len(rest) > 0 {
			options.query = applyQuery + "&force=true"
		}
	}
}

// heldByOthers is the refusal to change what others have set.
func heldByOthers(o *object.Object, conflicts []store.Change, err error) *Error {
	e := met(o, fmt.Sprintf("it is there already, with other values: %s: %s", holders(conflicts), howToTake))
	e.Code, e.unsent, e.cause = http.StatusConflict, false, err
	return e
}

// releaseFields disowns fields that a rule says to ignore and that are still ours, as
// when the rule is new.
func (s *sending) releaseFields(ctx context.Context, uid types.UID, fields string) error {
	own, err := parseFields(fields)
	if err == nil && subset(own, s.isIgnored).Empty() {
		return nil
	}
	_, err = s.disown(ctx, s.o, uid, nil, s.isIgnored)
	if isGone(err, s.o.ID.Name) {
		return otherObject(s.o, &metav1.PartialObjectMetadata{})
	}
	return err
}

// What every apply is sent with: see [Cluster.Apply].
const (
	applyQuery = "fieldManager=" + FieldManager + "&fieldValidation=Strict"
	applyType  = "application/apply-patch+yaml"
)

// patchOptions are how a body is sent.
type patchOptions struct {
	query, contentType string
	// once: a conflict is an answer, not a reason to try again.
	once bool
}

// patch sends a patch of an object and returns what the server made of it.
func (a *applying) patch(ctx context.Context, o *object.Object, body []byte, opt patchOptions) (meta *metav1.PartialObjectMetadata, info answerInfo, err error) {
	err = a.addressed(ctx, a.resource, kindOf(o.ID, o.Version), func(found resource) error {
		path, err := found.path("apply", o.ID)
		if err != nil {
			return err
		}
		meta, info, err = a.meta(ctx, &request{
			op: "apply", object: o.ID.String(), method: http.MethodPatch, path: path, query: opt.query,
			contentType: opt.contentType, body: body, hide: hider(o), once: opt.once,
		})
		return err
	})
	return meta, info, on("apply", o.ID, err)
}
