// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// change is one change of one object.
type change struct {
	version  uint64
	resource resource
	kind     watch.EventType
	object   object // the last state of one that was deleted
	before   object // nil for a new one
	at       time.Time
}

// history is the changes that a watch may begin with.
type history struct {
	changes []change
	// forgotten is the version of the newest change that is not among them.
	forgotten uint64
}

// remembered is how long changes are kept: an etcd forgets after five minutes, and a
// watch that is under way is never so far behind.
const remembered = 5 * time.Minute

func (h *history) add(c change) {
	c.at = time.Now()
	if n := len(h.changes); n > 1000 && n == cap(h.changes) { // not each time
		old := 0
		for old < n && c.at.Sub(h.changes[old].at) > remembered {
			old++
		}
		if old > 0 {
			h.forgotten = h.changes[old-1].version
			h.changes = append([]change(nil), h.changes[old:]...)
		}
	}
	h.changes = append(h.changes, c)
}

func (h *history) compact(version uint64) { h.changes, h.forgotten = nil, version }

// after are the changes after a version; not ok when it is too old.
func (h *history) after(version uint64) (changes []change, ok bool) {
	if version < h.forgotten {
		return nil, false
	}
	low, high := 0, len(h.changes)
	for low < high {
		if middle := (low + high) / 2; h.changes[middle].version > version {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return h.changes[low:], true
}

const (
	bookmarkEvery = time.Minute
	watchLife     = 45 * time.Minute // a real server draws it, between 30 and 60
)

// stream is the body of the answer to a watch. Who reads it makes it: it has no
// goroutine.
type stream struct {
	cluster *Cluster
	q       *request
	picks   selection
	version uint64
	marks   bool // bookmarks are wanted
	markAt  time.Time
	endAt   time.Time
	buffer  bytes.Buffer
	ended   bool
	closed  chan struct{}
}

func (c *Cluster) watch(q *request) *answer {
	if err := q.known("watch", "labelSelector", "fieldSelector", "allowWatchBookmarks", "resourceVersion", "timeoutSeconds", "timeout", "pretty"); err != nil {
		return failed(err)
	}
	if err := c.readable(q); err != nil {
		return failed(err)
	}
	picks, err := q.selection()
	if err != nil {
		return failed(err)
	}
	version, err := strconv.ParseUint(q.query.Get("resourceVersion"), 10, 64)
	if err != nil || version == 0 || version > c.version {
		return failed(unmodelled("a watch from resourceVersion %q", q.query.Get("resourceVersion")))
	}
	if q.name != "" || q.subresource != "" {
		return failed(unmodelled("a watch of one object"))
	}
	now := time.Now()
	s := &stream{
		cluster: c, q: q, picks: picks, version: version, marks: q.query.Get("allowWatchBookmarks") == "true",
		markAt: now.Add(bookmarkEvery), endAt: now.Add(watchLife), closed: make(chan struct{}),
	}
	if seconds, err := strconv.Atoi(q.query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		s.endAt = now.Add(time.Duration(seconds) * time.Second)
	}
	a := &answer{code: http.StatusOK, contentType: jsonType, stream: s}
	if q.form.protobuf {
		a.contentType = protobufType + ";stream=watch"
	}
	return a
}

// Close ends the stream, and a Read that waits.
func (s *stream) Close() error {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

func (s *stream) Read(into []byte) (int, error) {
	for {
		if s.buffer.Len() > 0 {
			return s.buffer.Read(into)
		}
		if s.ended {
			return 0, io.EOF
		}
		changed, next := s.fill(time.Now())
		if s.buffer.Len() > 0 || s.ended {
			continue
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-changed:
		case <-timer.C:
		case <-s.closed:
			s.ended = true
		case <-s.q.http.Context().Done():
			timer.Stop()
			return 0, s.q.http.Context().Err()
		}
		timer.Stop()
	}
}

// Pending says whether a Read would return at once. Nobody may read meanwhile.
func (s *stream) Pending() bool {
	if s.buffer.Len() == 0 && !s.ended {
		s.fill(time.Now())
	}
	return s.buffer.Len() > 0 || s.ended
}

// fill writes what there is to tell. It returns what to wait for.
func (s *stream) fill(now time.Time) (changed <-chan struct{}, next time.Time) {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work()
	changes, ok := c.history.after(s.version)
	if !ok {
		expired := apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", s.version, c.history.forgotten))
		s.write("ERROR", typed(&expired.ErrStatus))
		s.ended = true
		return nil, now
	}
	for _, change := range changes {
		s.tell(change)
	}
	s.version = c.version
	switch {
	case !now.Before(s.endAt):
		s.mark()
		s.ended = true
	case !now.Before(s.markAt):
		s.mark()
		s.markAt = now.Add(bookmarkEvery)
	}
	next = s.endAt
	if s.markAt.Before(next) {
		next = s.markAt
	}
	if due, ok := c.tasks.next(); ok && due.Before(next) {
		next = due
	}
	return c.changed, next
}

// tell writes a change as this watch sees it: what is not selected any more is gone.
func (s *stream) tell(change change) {
	o := change.object
	if change.resource != s.q.resource || s.q.namespace != "" && o.GetNamespace() != s.q.namespace {
		return
	}
	is := change.kind != watch.Deleted && s.picks.matches(o)
	was := change.before != nil && s.picks.matches(change.before)
	var kind watch.EventType
	switch {
	case is && !was:
		kind = watch.Added
	case is:
		kind = watch.Modified
	case was:
		kind = watch.Deleted
		if change.kind != watch.Deleted {
			o = change.before.DeepCopyObject().(object)
			o.SetResourceVersion(change.object.GetResourceVersion())
		}
	default:
		return
	}
	s.writeObject(kind, s.q.as(o))
}

// mark writes a bookmark.
func (s *stream) mark() {
	if s.marks {
		o := s.q.empty()
		o.SetResourceVersion(strconv.FormatUint(s.version, 10))
		s.writeObject(watch.Bookmark, o)
	}
}

func (s *stream) writeObject(kind watch.EventType, o object) {
	if s.q.form.meta {
		s.write(kind, metadataOf(o))
		return
	}
	s.write(kind, o)
}

func (s *stream) write(kind watch.EventType, o runtime.Object) {
	if s.q.form.protobuf {
		var raw bytes.Buffer
		if err := protobufs.Encode(o, &raw); err != nil {
			panic(err) // it is one of the types of meta.k8s.io
		}
		frame, err := (&metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: raw.Bytes()}}).Marshal()
		if err != nil {
			panic(err)
		}
		s.buffer.Write(binary.BigEndian.AppendUint32(nil, uint32(len(frame))))
		s.buffer.Write(frame)
		return
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // it was stored
	}
	fmt.Fprintf(&s.buffer, "{\"type\":%q,\"object\":%s}\n", kind, text)
}
