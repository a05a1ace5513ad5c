// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/line"
	"github.com/swell-sh/swell/sync/store"
)

// ErrExpired means that a watch cannot go on from where it was: what happened
// in between has to be found by a sweep.
var ErrExpired = errors.New("expired")

// Seen is one change of an object. It must not be kept beyond the function that
// it was handed to.
type Seen struct {
	ID object.ID
	// Gone says that the object was deleted, or lost one of our labels.
	Gone bool
	// Fingerprint is that of the object after the change, to tell one change
	// from another; empty when it is gone.
	Fingerprint string

	live *metav1.PartialObjectMetadata
}

// Differs says whether the object is not as the entry has it. An entry that
// nothing can be held against differs from everything. What ignore names for
// the entry is not looked at.
func (s *Seen) Differs(entry store.Entry, ignore Ignored) bool {
	return s.Gone || !Judged(entry) || compare(entry, s.live, ignore.of(entry)...) != nil
}

// Pauses between the streams of a watch that broke.
const (
	minWatchPause = time.Second
	maxWatchPause = time.Minute
)

const (
	// watchLife is about how old a stream may become: the server is asked to end it then.
	// Left alone, it would do so after half an hour or a whole one. client-go asks for
	// five to ten minutes.
	watchLife = 8 * time.Minute
	// watchGrace is how much later a stream is taken for lost that nobody ended: what is
	// between may keep a connection open over which nothing comes any more.
	watchGrace = 30 * time.Second
)

// Watch is what to watch.
type Watch struct {
	Kind      schema.GroupVersionKind
	Namespace string // empty: all of them
	// Since is the resourceVersion behind which the watch begins, which a
	// [Cluster.Sweep] gave for the kind. Where it is empty, it begins with what is
	// now, and again where it cannot go on from where it was.
	Since string
	// Began is called each time that a watch without Since begins: what happened
	// before is then unknown.
	Began func()
	// See is called for each event.
	See func(Seen)
}

// Watch tells what happens to objects of a kind with our label. It asks for
// metadata only, on the connection that all requests share, and keeps nothing
// of any object. A stream that breaks, ends, does not begin, or is not ended in time is
// taken up again where it was, after a pause that grows up to a minute while that fails.
//
// It returns nil when ctx ends, [ErrExpired] when only another sweep can tell
// what was missed, and any other error when the server refuses the watch, or to say
// what is now.
func (c *Cluster) Watch(ctx context.Context, watch Watch) error {
	if watch.Since != "" {
		return c.watch(ctx, watch)
	}
	for {
		since, err := c.begin().newest(ctx, watch.Kind, watch.Namespace)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		watch.Began()
		watch.Since = since
		if err = c.watch(ctx, watch); !errors.Is(err, ErrExpired) {
			return err
		}
	}
}

// newest is the resourceVersion of a kind's objects as they are now.
func (c *call) newest(ctx context.Context, kind schema.GroupVersionKind, namespace string) (version string, err error) {
	err = c.addressed(ctx, c.anyResource, kind, func(found resource) error {
		query := url.Values{"limit": {"1"}, "labelSelector": {c.ours()}}
		req := &request{
			op: "list", object: kind.GroupKind().String(), method: http.MethodGet, path: found.within(namespace), query: query.Encode(), accept: acceptMetaList,
		}
		answer, err := c.do(ctx, req)
		if err != nil {
			return err
		}
		var page metav1.PartialObjectMetadataList
		if err := answer.decode("PartialObjectMetadataList", &page); err != nil {
			return undecodable(req, answer, err)
		}
		version = page.ResourceVersion
		return nil
	})
	return version, err
}

// watch goes on from a resourceVersion.
func (c *Cluster) watch(ctx context.Context, watch Watch) error {
	w := &watching{call: c.begin(), Watch: watch, version: watch.Since}
	pause := minWatchPause
	for {
		before, began := w.version, time.Now()
		err := w.stream(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrThrottled) && !errors.Is(err, ErrDistress):
			return err
		case err == nil || w.version != before:
			pause = minWatchPause
		}
		if err == nil && time.Since(began) > minWatchPause {
			continue // the server ends each stream after some minutes
		}
		if !wait(ctx, c.options.Jitter(pause)) {
			return nil
		}
		pause = min(2*pause, maxWatchPause)
	}
}

// watching is one Watch under way.
type watching struct {
	*call
	Watch
	version string // of the last thing that was seen
	broke   bool   // the last stream did not end when the server was asked to end it
}

// acceptWatch is the same as for a list's items; the server adds the framing.
const acceptWatch = acceptMeta

// stream reads one answer to its end.
func (w *watching) stream(ctx context.Context) error {
	if w.broke {
		if err := w.mayGoOn(ctx); err != nil {
			return err
		}
	}
	w.broke = true
	found, err := w.anyResource(ctx, w.Kind)
	if err != nil {
		return err
	}
	life := w.options.Jitter(watchLife).Truncate(time.Second)
	ends := time.Now().Add(life - time.Second)
	query := url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {w.version},
		"labelSelector": {w.ours()}, "timeoutSeconds": {strconv.Itoa(int(life / time.Second))},
	}
	req := &request{op: "watch", object: w.Kind.GroupKind().String(), method: http.MethodGet, path: found.within(w.Namespace), query: query.Encode(), accept: acceptWatch}
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	waited := w.options.Timeout
	timer := time.AfterFunc(waited, func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	httpReq, err := w.httpRequest(bounded, req)
	if err != nil {
		return err
	}
	resp, err := w.client.Do(httpReq)
	if err != nil {
		w.identity.doubt()
		return transportError(ctx, req, waited, cmp.Or(context.Cause(bounded), err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return w.refused(req, resp)
	}
	waited = life + watchGrace
	timer.Reset(waited)
	next, err := frames(resp)
	if err != nil {
		return watchError(req, resp.StatusCode, ErrUnreachable, err)
	}
	for {
		event, err := next()
		if errors.Is(err, io.EOF) {
			w.broke = time.Now().Before(ends)
			return nil
		}
		if err != nil {
			w.identity.doubt() // the connection broke, and the next one may lead elsewhere
			return transportError(ctx, req, waited, cmp.Or(context.Cause(bounded), err))
		}
		if err := w.event(req, event); err != nil {
			return err
		}
	}
}

// mayGoOn says why a watch whose stream broke cannot be taken up where it was; nil when it can.
// Another cluster may answer by now, or the same one whose etcd was put back: it would tell
// nothing until its resourceVersion is past the one that is asked for, and what happened before
// that, never.
func (w *watching) mayGoOn(ctx context.Context) error {
	w.identity.doubt()
	if err := w.sameCluster(ctx, "watch", w.Kind.GroupKind().String()); err != nil {
		return err
	}
	newest, err := w.newest(ctx, w.Kind, w.Namespace)
	if err != nil {
		return err
	}
	newer, errNewer := strconv.ParseUint(newest, 10, 64)
	before, errBefore := strconv.ParseUint(w.version, 10, 64)
	if errNewer != nil || errBefore != nil || newer >= before { // or nobody can tell
		return nil
	}
	e := watchError(&request{op: "watch", object: w.Kind.GroupKind().String()}, 0, ErrExpired, nil)
	e.Message = fmt.Sprintf("the cluster went back from resourceVersion %d to %d", before, newer)
	return e
}

// refused is the error for an answer that is no stream.
func (w *watching) refused(req *request, resp *http.Response) error {
	body, err := readBody(resp, resp.Body)
	if err != nil {
		w.identity.doubt()
		return transportError(context.Background(), req, 0, err)
	}
	answer := &response{contentType: resp.Header.Get("Content-Type"), body: body}
	answer.code = resp.StatusCode
	status, _ := answer.status()
	if resp.StatusCode == http.StatusGone {
		return expired(req, status)
	}
	return answerError(req, answer, status, resp.Header)
}

// watchEvent is one event with its object not yet read.
type watchEvent struct {
	kind   string // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
	object response
}

// event takes in one event.
func (w *watching) event(req *request, e watchEvent) error {
	if e.kind == "ERROR" {
		status, err := e.object.status()
		if err == nil && status.Code == http.StatusGone {
			return expired(req, status)
		}
		if err == nil {
			err = errors.New(line.One(status.Message))
		}
		return watchError(req, 0, ErrUnreachable, err)
	}
	var live metav1.PartialObjectMetadata
	if err := e.object.decode("PartialObjectMetadata", &live); err != nil {
		return watchError(req, 0, ErrRefused, err) // whole objects are not for us to see
	}
	if live.ResourceVersion != "" {
		w.version = live.ResourceVersion
	}
	if e.kind == "BOOKMARK" {
		return nil
	}
	seen := Seen{
		ID:   object.ID{Group: w.Kind.Group, Kind: w.Kind.Kind, Namespace: live.Namespace, Name: live.Name},
		Gone: e.kind == "DELETED", live: &live,
	}
	if own := ownEntry(&live); !seen.Gone {
		seen.Fingerprint = fingerprint(rawFields(own), entryTime(own))
	}
	w.See(seen)
	return nil
}

func expired(req *request, status *metav1.Status) *Error {
	e := watchError(req, http.StatusGone, ErrExpired, nil)
	if e.Message = statusText(http.StatusGone); status != nil && status.Message != "" {
		e.Message = line.One(status.Message)
	}
	return e
}

func watchError(req *request, code int, class, cause error) *Error {
	e := &Error{Op: req.op, Object: req.object, Code: code, class: class, cause: cause}
	if cause != nil {
		e.Message = line.One(cause.Error())
	}
	return e
}

// maxFrame is the largest event that is read: metadata of one object, of which etcd takes 1.5 MiB
// in all. There is a watch for each kind in a cluster, so all of them together count.
const maxFrame = 4 << 20

// frames reads a stream of either content type event by event. At the end it
// gives [io.EOF].
func frames(resp *http.Response) (next func() (watchEvent, error), err error) {
	contentType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("answered with content type %q", resp.Header.Get("Content-Type"))
	}
	switch {
	case contentType == protobufType:
		return protobufFrames(resp.Body), nil
	case contentType == jsonType:
		return jsonFrames(resp.Body), nil
	}
	return nil, fmt.Errorf("answered with content type %q", contentType)
}

// protobufFrames reads a length of four bytes, big-endian, and a WatchEvent, again and
// again. The WatchEvent stands bare, the object in it has magic and envelope.
func protobufFrames(body io.Reader) func() (watchEvent, error) {
	return func() (watchEvent, error) {
		var size [4]byte
		if _, err := io.ReadFull(body, size[:]); err != nil {
			return watchEvent{}, err
		}
		n := binary.BigEndian.Uint32(size[:])
		if n > maxFrame {
			return watchEvent{}, fmt.Errorf("event of %d bytes", n)
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(body, frame); err != nil {
			return watchEvent{}, noEOF(err)
		}
		var e metav1.WatchEvent
		if err := e.Unmarshal(frame); err != nil {
			return watchEvent{}, err
		}
		return watchEvent{e.Type, response{contentType: protobufType, body: e.Object.Raw}}, nil
	}
}

// jsonFrames reads one JSON document after another.
func jsonFrames(body io.Reader) func() (watchEvent, error) {
	limited := &io.LimitedReader{R: body}
	decoder := json.NewDecoder(limited)
	return func() (watchEvent, error) {
		limited.N = maxFrame
		var e struct {
			Type   string
			Object json.RawMessage
		}
		switch err := decoder.Decode(&e); {
		case err != nil && limited.N == 0:
			return watchEvent{}, fmt.Errorf("event of more than %d bytes", maxFrame)
		case err != nil:
			return watchEvent{}, err
		}
		return watchEvent{e.Type, response{contentType: jsonType, body: bytes.Clone(e.Object)}}, nil
	}
}

// noEOF keeps the end of a stream in the middle of an event from being taken
// for a proper one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
