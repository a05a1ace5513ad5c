// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// # First contact
//
// An object that the inventory has no UID for is sent as one that may only be
// created: its resourceVersion is [neverVersion], which no live object has. So
// a new object costs one request, and one that is there is not touched.
// Only then it is looked at, alone, or with all of its kind and namespace when
// this is the third one there within seconds.

// neverVersion is a resourceVersion that no object has: the first write to an
// empty etcd makes revision 2. An apply with it creates, or fails with a 409.
const neverVersion = "1"

// liveInfo is what has to be known of an object that is there.
type liveInfo struct {
	uid types.UID
	// ours: it carries our labels, and fields that we applied. Then fields is our
	// entry of the managed fields, and nothing else is set.
	ours   bool
	fields string
	// tool claims the object for release; nil when none does.
	tool    *tool
	release string
	// maker is the oldest manager, without a time; empty when there is none.
	maker string
}

func (c *connection) liveInfoOf(id object.ID, meta *metav1.PartialObjectMetadata) *liveInfo {
	own := ownEntry(meta)
	s := &liveInfo{uid: meta.UID, ours: own != nil && c.isOurs(meta.Labels)}
	if s.ours {
		s.fields = rawFields(own)
		return s
	}
	if s.release = c.othersRepository(meta); s.release == "" {
		s.tool, s.release = claim(id, meta)
	}
	if s.release == "" {
		if owner := metav1.GetControllerOf(meta); owner != nil {
			s.release = "its controller, " + owner.Kind + " " + owner.Name
		}
	}
	if oldest := oldestManager(meta); oldest != nil {
		var c store.Change
		setAuthor(&c, oldest)
		s.maker = c.Author()
	}
	return s
}

// by whom the object is, for people.
func (s *liveInfo) by() string {
	switch {
	case s.release != "":
		return s.release
	case s.maker != "":
		return s.maker
	}
	return store.UnknownManager
}

// refusal says why the object of somebody else is not taken over for o, nil when
// it may be.
func (s *liveInfo) refusal(o *object.Object, adopt config.Adoption) error {
	switch {
	case adopt == config.AdoptNever:
		return met(o, fmt.Sprintf("it is there already, made by %s, and nothing may be adopted: %s", s.by(), howToTake))
	case adopt == config.AdoptIfSame && s.release != "":
		return met(o, fmt.Sprintf("it is there already and belongs to %s: %s", s.release, howToTake))
	}
	return nil
}

// refusal is an error of our own: nothing was written.
func refusal(o *object.Object, message string) *Error {
	return &Error{Op: "apply", Object: o.ID.String(), class: ErrRefused, unsent: true, Message: message}
}

// met is a refusal because of an object that is there already.
func met(o *object.Object, message string) *Error {
	e := refusal(o, message)
	e.met = true
	return e
}

// howToTake is what a refusal ends with.
const howToTake = config.HowToTake

// collection is where objects are listed together.
type collection struct {
	resource
	kind      string
	namespace string // empty for a cluster-scoped kind
	user      string // who looks: what is seen depends on it
}

// contacts are looks at objects of others, shared by all units of a cluster for
// the few seconds in which they mostly come. The zero value is ready for use.
type contacts struct {
	// keep is for how long a look holds; zero is contactTime.
	keep time.Duration

	mu       sync.Mutex
	listings map[collection]*listing
	asked    singleflight.Group
}

// listing is what is known of a collection.
type listing struct {
	until time.Time
	// met is how many objects were come upon one by one.
	met int
	// seen is what a LIST showed, by name; nil before, and when there is none.
	seen map[string]*liveInfo
	// alone: the collection cannot be listed, or is too large to be.
	alone bool
}

const (
	// contactTime is for how long a look holds. What is done on the strength of
	// it has the UID as its precondition, so an old one does no harm.
	contactTime = 5 * time.Second
	// contactPages is how many pages of a collection are read at most. Where
	// there are more objects, each is looked at alone.
	contactPages = 20
	// contactLimit is from which object of a collection on all are listed.
	contactLimit = 3
)

// around is what is known of a collection now.
func (c *contacts) around(key collection) *listing {
	if c.listings == nil {
		c.listings = map[collection]*listing{}
	}
	now := time.Now()
	for k, l := range c.listings {
		if now.After(l.until) {
			delete(c.listings, k)
		}
	}
	l := c.listings[key]
	if l == nil {
		l = &listing{until: now.Add(cmp.Or(c.keep, contactTime))}
		c.listings[key] = l
	}
	return l
}

// recall is what a LIST showed of an object a moment ago; nil for nothing. It is
// told once, so that a second look is a new one.
func (c *contacts) recall(key collection, name string) *liveInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.listings[key]
	if l == nil || time.Now().After(l.until) {
		return nil
	}
	s := l.seen[name]
	delete(l.seen, name)
	return s
}

// crowded notes that one more object was come upon, and says whether it is time
// to list them.
func (c *contacts) crowded(key collection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.around(key)
	l.met++
	return l.met >= contactLimit && !l.answered()
}

// open says whether nobody has tried to list the collection yet.
func (c *contacts) open(key collection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.around(key).answered()
}

func (l *listing) answered() bool { return l.alone || l.seen != nil }

// liveInfo looks at the object that is in the way of a new one. nil without an
// error is none: it went meanwhile.
func (a *applying) liveInfo(ctx context.Context, o *object.Object) (*liveInfo, error) {
	key, err := a.collectionOf(ctx, o)
	if err != nil {
		return nil, on("apply", o.ID, err)
	}
	if a.contacts.crowded(key) {
		_, _, _ = a.contacts.asked.Do(key.user+" "+key.path(), func() (any, error) {
			if a.contacts.open(key) { // else who asked before has just had the answer
				a.listCollection(ctx, key)
			}
			return nil, nil
		})
	}
	if s := a.contacts.recall(key, o.ID.Name); s != nil {
		return s, nil
	}
	meta, err := a.liveMeta(ctx, o)
	switch {
	case isGone(err, o.ID.Name):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return a.liveInfoOf(o.ID, meta), nil
}

func (a *applying) collectionOf(ctx context.Context, o *object.Object) (collection, error) {
	found, err := a.resource(ctx, kindOf(o.ID, o.Version))
	return collection{found, o.ID.Kind, o.ID.Namespace, a.user}, err
}

func (c collection) path() string {
	if c.namespace == "" {
		return c.collection()
	}
	return groupVersionPath(c.GroupVersion) + "/namespaces/" + c.namespace + "/" + c.plural
}

// listCollection lists a collection. What cannot be listed is looked at one by one.
func (a *applying) listCollection(ctx context.Context, key collection) {
	seen, err := a.listInfos(ctx, key)
	a.contacts.mu.Lock()
	defer a.contacts.mu.Unlock()
	l := a.contacts.around(key)
	l.until = time.Now().Add(cmp.Or(a.contacts.keep, contactTime))
	l.seen, l.alone = seen, err != nil
}

var errTooMany = errors.New("too many objects to list")

func (a *applying) listInfos(ctx context.Context, key collection) (map[string]*liveInfo, error) {
	seen := map[string]*liveInfo{}
	req := &request{op: "list", object: key.plural, path: key.path(), accept: acceptMetaList}
	pages := 0
	err := a.pages(ctx, req, url.Values{}, func(answer *response) (next string, err error) {
		var page metav1.PartialObjectMetadataList
		if err := answer.decode("PartialObjectMetadataList", &page); err != nil {
			return "", undecodable(req, answer, err)
		}
		for i := range page.Items {
			item := &page.Items[i]
			seen[item.Name] = a.liveInfoOf(object.ID{Group: key.Group, Kind: key.kind, Namespace: item.Namespace, Name: item.Name}, item)
		}
		if pages++; page.Continue != "" && pages == contactPages {
			return "", errTooMany
		}
		return page.Continue, nil
	})
	if err != nil {
		return nil, err
	}
	return seen, nil
}
