// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
)

// Preview is what an apply would make of one object.
type Preview struct {
	ID object.ID
	// Live is the object as it is, and Applied as it would be, without what an
	// apply cannot change: status, managed fields, versions, times. Live is nil
	// when there is none. Of a Secret nothing is read: both are nil.
	Live, Applied *object.Object
	Action        Action // [Created], [Configured] or [Unchanged]; empty with Err
	// Unproved says why the server could not try it out: the namespace or the kind comes
	// with the same change, or the values of a Secret are encrypted.
	Unproved string
	// Owner is whose the object is, where it is not ours, and Stays are fields that its
	// owner set and Git does not say, which stay as they are; see [Cluster.TakeOver].
	Owner string
	Stays []string
	Err   error
}

// Preview asks the server what an apply of the work would change, and changes
// nothing. It returns a result for each object, by index. What the rules leave to
// others, or is held through the scale subresource, is not looked at. Values of
// Secrets are never asked for: what would change there is told by the time of our
// managed fields. [Work.Known] is only asked whether a Secret with encrypted values is
// what was applied last: what carries our managed fields is ours.
func (c *Cluster) Preview(ctx context.Context, work Work) []Preview {
	return c.preview(ctx, &previewing{call: c.begin(), Work: work})
}

func (c *Cluster) preview(ctx context.Context, p *previewing) []Preview {
	objects := p.Objects
	p.brings = map[need]bool{}
	for _, o := range objects {
		if o.ID.IsNamespace() {
			p.brings[need{namespace: o.ID.Name}] = true
		}
		if o.ID.IsDefinition() {
			var d definition
			if json.Unmarshal(o.JSON, &d) == nil {
				p.brings[need{kind: d.groupKind()}] = true
			}
		}
	}
	results := make([]Preview, len(objects))
	p.all(len(objects), func(i int) { results[i] = p.object(ctx, objects[i]) })
	return results
}

type previewing struct {
	*call
	Work
	brings map[need]bool // what comes with the same objects
	taking bool          // see [Cluster.TakeOver]
}

func (p *previewing) object(ctx context.Context, o *object.Object) Preview {
	r := Preview{ID: o.ID}
	err := p.addressed(ctx, p.resource, kindOf(o.ID, o.Version), func(found resource) error {
		path, err := found.path("preview", o.ID)
		if err != nil {
			return err
		}
		if o.IsRun() {
			return p.run(ctx, o, path, &r)
		}
		b, err := bodyOf(o, p.Bundle)
		switch {
		case err != nil:
			return err
		case o.Sealed != "":
			return p.sealed(ctx, o, b, path, &r)
		case o.ID.IsSecret():
			return p.secret(ctx, o, b, path, &r)
		}
		return p.whole(ctx, o, b, path, &r)
	})
	fields := immutableFields(err)
	never := neverReplaced(o, fields)
	if len(fields) > 0 && never == "" && o.Annotation(config.AnnotationReplace) == config.ReplaceAllowed {
		never = p.keptNow(ctx, o)
	}
	switch {
	case err == nil:
	case len(fields) > 0 && never == "" && o.Annotation(config.AnnotationReplace) == config.ReplaceAllowed:
		r.Action, r.Unproved = Created, "it is deleted and made anew"
	case len(fields) > 0:
		r.Action, r.Err = "", explained(o, on("preview", o.ID, err), fields, never)
	case len(oneOfs(err)) > 0:
		if removed := p.removed(ctx, o, err); len(removed) > 0 {
			r.Action = Configured
			r.Unproved = "it has another member of a one-of, which is taken away: " + document.Some(fieldTexts(removed), maxNamed)
		} else {
			r.Action, r.Err = "", on("preview", o.ID, err)
		}
	case errors.Is(err, ErrNoKind) && p.brings[need{kind: kindOf(o.ID, "").GroupKind()}]:
		r.Action, r.Unproved = Created, "its kind is not there yet"
	case isGone(err, o.ID.Namespace) && p.brings[need{namespace: o.ID.Namespace}]:
		r.Action, r.Unproved = Created, "its namespace is not there yet"
	default:
		r.Action, r.Err = "", on("preview", o.ID, err)
	}
	return r
}

// keptNow says why the live object is not deleted to make it anew; empty when it is, or when it
// cannot be read.
func (p *previewing) keptNow(ctx context.Context, o *object.Object) string {
	live, _, err := p.readObject(ctx, "preview", o.ID, o.Version)
	if err != nil || live == nil || live.GetDeletionTimestamp() != nil {
		return ""
	}
	return p.keptWhileLive(live, o)
}

// removed are the members of one-ofs that an apply takes away before it sends an object that
// was refused for their sake.
func (p *previewing) removed(ctx context.Context, o *object.Object, refusal error) []fieldpath.Path {
	b, err := bodyOf(o, p.Bundle)
	if err != nil {
		return nil
	}
	live, _, err := p.readObject(ctx, "preview", o.ID, o.Version)
	if err != nil || live == nil || !isChosen(o.ID) {
		return nil
	}
	isOurs := ownEntry(metaOf(live)) != nil && p.othersRepository(metaOf(live)) == ""
	if adopt, err := p.adoption(o, b.annotations); err != nil || !isOurs && adopt != config.AdoptTake {
		return nil
	}
	return chooseAll(oneOfs(refusal), b.root, live.Object).removed
}

// maxReads is how often an object is read that somebody writes at the same time.
const maxReads = 5

// read gives the object at the path, nil when there is none, and what an apply
// would make of just that.
func (p *previewing) read(ctx context.Context, o *object.Object, text []byte, path string) (live, applied *unstructured.Unstructured, err error) {
	for range maxReads {
		version := ""
		switch live, err = p.getObject(ctx, o.ID, path); {
		case err == nil:
			version = live.GetResourceVersion()
		case !isGone(err, o.ID.Name):
			return nil, nil, err
		}
		applied, err = p.tryApply(ctx, "preview", o, text, path)
		if err != nil || applied.GetResourceVersion() == version {
			return live, applied, err
		}
	}
	return nil, nil, fmt.Errorf("somebody writes it all the time: it changed between %d looks at it and their dry runs", maxReads)
}

// whole compares an object before and after.
func (p *previewing) whole(ctx context.Context, o *object.Object, b *body, path string, r *Preview) error {
	live, applied, err := p.read(ctx, o, b.text, path)
	if err != nil {
		return err
	}
	if live != nil {
		if err := p.met(ctx, o, b, metaOf(live), path); err != nil {
			return err
		}
		left := slices.Concat(pointersFor(p.Ignore, o.ID), scaledPointers(metaOf(live)))
		leave(live, left)
		leave(applied, left)
		if p.taking {
			p.owned(o, b, metaOf(live), metaOf(applied), r, p.defaulted(ctx, o, b, path, live))
			tool, _ := claim(o.ID, metaOf(live))
			marks := b.markPointers(metaOf(live), tool)
			unmark(live, marks)
			unmark(applied, marks)
		}
	}
	if r.Applied, err = stripped(o, applied); err != nil {
		return err
	}
	r.Action = Created
	if live == nil {
		return nil
	}
	if r.Live, err = stripped(o, live); err != nil {
		return err
	}
	r.Action = Configured
	if r.Live.Digest == r.Applied.Digest {
		r.Action = Unchanged
	}
	return nil
}

// run is about a hook: it is made anew once for each bundle, or once for each change of
// itself.
func (p *previewing) run(ctx context.Context, o *object.Object, path string, r *Preview) error {
	live, err := p.getMeta(ctx, o.ID.String(), path)
	switch {
	case isGone(err, o.ID.Name) && o.Hook() == object.HookOnce:
		r.Action, r.Unproved = Created, "it runs, unless it has run and is gone"
	case isGone(err, o.ID.Name):
		r.Action = Created
	case err != nil:
		return err
	case live.Annotations[config.AnnotationHookRun] == string(o.RunOf(p.Bundle)):
		r.Action = Unchanged
	default:
		r.Action, r.Unproved = Created, "it runs anew"
	}
	return nil
}

// met is the refusal of first contact with a live object, nil when there is none.
func (p *previewing) met(ctx context.Context, o *object.Object, b *body, live *metav1.PartialObjectMetadata, path string) error {
	if ownEntry(live) != nil && p.othersRepository(live) == "" {
		return nil // also where somebody took our label away
	}
	adopt, err := p.adoption(o, b.annotations)
	if err != nil {
		return err
	}
	if err := p.liveInfoOf(o.ID, live).refusal(o, adopt); err != nil {
		return err
	}
	if adopt == config.AdoptTake || len(pointersFor(p.Ignore, o.ID)) > 0 {
		return nil
	}
	req := dryRun("preview", o, b.text, path)
	req.query, req.accept, req.once = applyQuery+"&dryRun=All", acceptMeta, true
	_, _, err = p.meta(ctx, req)
	if _, rest := scaled(conflictsOf(err)); len(rest) > 0 {
		return heldByOthers(o, rest, err)
	}
	return nil
}

// secret finds out whether an apply would change a Secret, by metadata alone:
// the server moves the time of our entry when it does.
func (p *previewing) secret(ctx context.Context, o *object.Object, b *body, path string, r *Preview) error {
	live, err := p.getMeta(ctx, o.ID.String(), path)
	if err != nil && !isGone(err, o.ID.Name) {
		return err
	}
	applied, _, err := p.meta(ctx, dryRun("preview", o, b.text, path))
	if err != nil {
		return err
	}
	r.Action = Created
	if live == nil {
		return nil
	}
	if err := p.met(ctx, o, b, live, path); err != nil {
		return err
	}
	was, is := ownEntry(live), ownEntry(applied)
	if p.taking {
		p.owned(o, b, live, applied, r, isSecretDefault)
		if was == nil {
			return p.takeSecret(ctx, o, b, live, applied, path, r)
		}
	}
	r.Action = Configured
	if was != nil && rawFields(was) == rawFields(is) && entryTime(was).Equal(entryTime(is)) {
		r.Action = Unchanged
	}
	return nil
}

// sealed finds out whether an apply would change a Secret with encrypted values, which
// are not decrypted for that: it does, unless the daemon applied just these and nobody
// touched it since.
func (p *previewing) sealed(ctx context.Context, o *object.Object, b *body, path string, r *Preview) error {
	live, err := p.getMeta(ctx, o.ID.String(), path)
	switch {
	case isGone(err, o.ID.Name):
		r.Action = Created
		return nil
	case err != nil:
		return err
	}
	own := ownEntry(live)
	if own == nil || p.othersRepository(live) != "" {
		adopt, err := p.adoption(o, b.annotations)
		if err != nil {
			return err
		}
		if err := p.liveInfoOf(o.ID, live).refusal(o, adopt); err != nil {
			return err
		}
	}
	if p.taking && own == nil {
		r.Owner, r.Unproved = p.liveInfoOf(o.ID, live).by(), "its values are encrypted and are not compared"
	}
	r.Action = Configured
	known := p.Known[o.ID]
	if own != nil && known.Digest == o.Digest && known.UID == string(live.UID) && known.Fingerprint == fingerprint(rawFields(own), entryTime(own)) {
		r.Action = Unchanged
	}
	return nil
}

// stripped is an object of the server without what an apply cannot change.
func stripped(o *object.Object, live *unstructured.Unstructured) (*object.Object, error) {
	text, err := json.Marshal(changeable(live))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return &object.Object{ID: o.ID, Version: o.Version, JSON: text, Digest: object.Digest(hex.EncodeToString(sum[:])), Secrets: o.Secrets}, nil
}

// dryRun asks what an apply of the object's text by force would make of the one at
// the path, and keeps nothing. The caller says what the answer should be.
func dryRun(op string, o *object.Object, text []byte, path string) *request {
	return &request{
		op: op, object: o.ID.String(), method: http.MethodPatch, path: path, query: applyQuery + "&force=true&dryRun=All",
		accept: jsonType, contentType: applyType, body: text, hide: hider(o),
	}
}

// tryApply is what an apply of the object's text would make of the one at the path. It
// must not be used for Secrets.
func (c *call) tryApply(ctx context.Context, op string, o *object.Object, text []byte, path string) (*unstructured.Unstructured, error) {
	req := dryRun(op, o, text, path)
	answer, err := c.do(ctx, req)
	if err != nil {
		return nil, err
	}
	var applied unstructured.Unstructured
	if err := applied.UnmarshalJSON(answer.body); err != nil {
		return nil, undecodable(req, answer, err)
	}
	return &applied, nil
}
