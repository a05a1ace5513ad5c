// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// sending is one object on its way.
type sending struct {
	*applying
	o *render.Object
	r *Result
	// root is the object decoded, as Git has it.
	root        map[string]any
	annotations map[string]string
	adopt       config.Adoption
	owned       render.Globs
	// ignored are fields that are not sent when the object is there already.
	ignored []pointer
	// left are the fields that were not sent.
	left []pointer
}

func (a *applying) sending(o *render.Object, r *Result) (*sending, error) {
	root, err := parsed(o)
	if err != nil {
		return nil, err
	}
	s := &sending{applying: a, o: o, r: r, root: root, annotations: texts(metadataOf(root), "annotations"), ignored: pointersFor(a.Ignore, o.ID)}
	if s.adopt, err = a.adoption(o, s.annotations); err != nil {
		return nil, err
	}
	s.owned, err = render.ParseGlobs(s.annotations[config.AnnotationOwned])
	if err != nil {
		return nil, refusal(o, "annotation "+config.AnnotationOwned+": "+err.Error())
	}
	return s, nil
}

// send brings one object to the server, by one request if nobody is in the way.
func (a *applying) send(ctx context.Context, o *render.Object, r *Result) (*metav1.PartialObjectMetadata, answerInfo, error) {
	r.Taken, r.Left, r.Adopted, r.Warnings = nil, nil, "", nil
	s, err := a.sending(o, r)
	if err != nil {
		return nil, answerInfo{}, err
	}
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
	if meta, err = s.trim(ctx, meta); err != nil {
		return nil, info, afterWrite(err)
	}
	for _, changes := range [][]Change{r.Taken, r.Left} {
		slices.SortStableFunc(changes, func(a, b Change) int { return strings.Compare(a.Field, b.Field) })
	}
	return meta, info, nil
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
	s.r.Warnings = []string{"perhaps overwritten, the server's answer is unknown: " + enumerate(texts)}
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
				if !wait(ctx, backoff(min(tries, 3))) {
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
	body, err := withPrecondition(s.o, "resourceVersion", neverVersion)
	if err != nil {
		return nil, answerInfo{}, err
	}
	meta, info, err := s.patchBody(ctx, s.o, body, patchOptions{query: applyQuery, contentType: applyType, once: true})
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
	if s.adopt == config.AdoptIfSame {
		s.shared(meta)
	}
	return meta, info, nil
}

// update applies the object to the live one with the UID, of which fields are
// ours. What others hold is left to them where they hold it through the scale
// subresource or a rule says so, and otherwise taken by force, or, without
// force, refused.
func (s *sending) update(ctx context.Context, uid types.UID, fields string, force bool) (*metav1.PartialObjectMetadata, answerInfo, error) {
	if err := s.releaseFields(ctx, uid, fields); err != nil {
		return nil, answerInfo{}, err
	}
	s.r.Taken, s.r.Left = nil, nil
	options := patchOptions{query: applyQuery, contentType: applyType}
	s.left = slices.Clone(s.ignored)
	migrated := false
	for tries := 1; ; tries++ {
		body, err := s.body(uid)
		if err != nil {
			return nil, answerInfo{}, err
		}
		meta, info, err := s.patchBody(ctx, s.o, body, options)
		if isStale(err) && !migrated {
			migrated = true
			if cause := s.migrate(ctx, s.o); cause != nil {
				return nil, info, cause
			}
			continue
		}
		conflicts := conflictsOf(err)
		if len(conflicts) == 0 || tries == looks {
			return meta, info, err
		}
		scale, rest := scaled(conflicts)
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
func heldByOthers(o *render.Object, conflicts []Change, err error) *Error {
	e := refusal(o, fmt.Sprintf("it is there already, with other values: %s: %s", holders(conflicts), howToTake))
	e.Code, e.unsent, e.cause = http.StatusConflict, false, err
	return e
}

// releaseFields disowns fields that a rule says to ignore and that are still ours, as
// when the rule is new.
func (s *sending) releaseFields(ctx context.Context, uid types.UID, fields string) error {
	if len(s.ignored) == 0 || fields == "" {
		return nil
	}
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

// body is the object less what is left to others, for the live one with the UID.
func (s *sending) body(uid types.UID) ([]byte, error) {
	if len(s.left) == 0 {
		return withPrecondition(s.o, "uid", string(uid))
	}
	root, err := parsed(s.o)
	if err != nil {
		return nil, err
	}
	without(root, s.left)
	metadata := metadataOf(root)
	if metadata == nil {
		return nil, refusal(s.o, "has no metadata")
	}
	metadata["uid"] = string(uid)
	body, err := json.Marshal(root)
	if err != nil {
		return nil, unsendable(s.o, err)
	}
	return body, nil
}
