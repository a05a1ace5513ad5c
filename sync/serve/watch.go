// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/store"
)

// Watching is server-sent events. The id of an event is its number in the history, so a
// client that comes back says with Last-Event-ID where it was. The history is the queue of
// every client: nothing is kept for one but a number. A client that comes for events that
// the history has dropped, or that stays more than maxBehind behind what happens, gets one
// event "resync" in place of what it missed, whose id is where it goes on.

const (
	maxBehind      = 10_000
	watchPage      = 500                    // events read at a time
	watchEvery     = 250 * time.Millisecond // how often a client is looked after; a read of two numbers
	heartbeatEvery = 15 * time.Second
	watchPatience  = 30 * time.Second // for a client to take what it is sent
	// watchFor is how long one connection lasts. A client that is there comes again, and one
	// that is stopped gives its place up: what a socket buffers would last it for days.
	watchFor = 10 * time.Minute
)

// Resync is the data of the event that stands for what a client missed.
type Resync struct {
	After  int64 `json:"after"`  // the last event that the client was sent
	Before int64 `json:"before"` // it goes on after this one
}

type watchInput struct {
	Below
	Since       int64 `query:"since" default:"-1" doc:"Number of the last event that is known. Without it, what happens from now on"`
	LastEventID int64 `header:"Last-Event-ID" default:"-1" doc:"The same, from a client that comes back"`
}

func (s *Server) registerWatch(api huma.API) {
	huma.Register(api, huma.Operation{OperationID: "watch", Method: http.MethodGet, Path: "/v1/watch",
		Summary:     "Events as they happen",
		Description: "Server-sent events: the id is the number in the history, data is an event as /v1/history has it. An event resync says that some were missed.",
		Responses:   map[string]*huma.Response{"200": {Description: "Events", Content: map[string]*huma.MediaType{"text/event-stream": {}}}},
	}, func(ctx context.Context, in *watchInput) (*huma.StreamResponse, error) {
		select {
		case s.watches <- struct{}{}:
		default:
			return nil, refuse(http.StatusServiceUnavailable, "%d clients watch already", watchesAtOnce)
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			defer func() { <-s.watches }()
			_, w := humago.Unwrap(c)
			since := in.Since
			if in.LastEventID >= 0 {
				since = in.LastEventID
			}
			s.watch(c.Context(), w, config.UnitPath(in.Unit), since)
		}}, nil
	})
}

// watch sends events until the client or the server goes.
func (s *Server) watch(ctx context.Context, w http.ResponseWriter, below config.UnitPath, since int64) {
	ctx, cancel := context.WithTimeout(ctx, s.watchFor)
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	f := &feed{store: s.Store, below: below, last: since, most: maxBehind, out: sent{w, http.NewResponseController(w)}}
	if err := f.begin(); err != nil {
		return
	}
	tick, beat := time.NewTicker(watchEvery), time.NewTicker(heartbeatEvery)
	defer tick.Stop()
	defer beat.Stop()
	for f.send(ctx) == nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-beat.C:
			if f.out.write(": heartbeat\n\n") != nil {
				return
			}
		}
	}
}

// feed is what one client was sent.
type feed struct {
	store *store.Store
	below config.UnitPath
	last  int64 // number of the last event that it knows; negative: it wants no earlier ones
	live  bool  // it has had all that there was when it came
	most  int64 // how many events it may be behind from then on
	out   sent
}

// begin says at once that there is an answer.
func (f *feed) begin() error {
	_, newest, err := f.store.Range()
	if err != nil {
		return err
	}
	if f.last < 0 {
		f.last = newest
	}
	return f.out.write(fmt.Sprintf("retry: 1000\nid: %d\n\n", f.last))
}

// send sends all that happened since.
func (f *feed) send(ctx context.Context) error {
	for ctx.Err() == nil {
		oldest, newest, err := f.store.Range()
		if err != nil {
			return err
		}
		switch {
		case newest == f.last:
			f.live = true
			return nil
		case f.last < oldest-1:
			if err := f.resync(oldest - 1); err != nil {
				return err
			}
			continue
		case newest < f.last, f.live && newest-f.last > f.most: // another state, or a slow client
			if err := f.resync(newest); err != nil {
				return err
			}
			continue
		}
		if err := f.page(newest); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// page sends the next events, up to one that there is.
func (f *feed) page(newest int64) error {
	events, err := f.store.After(f.last, f.below, watchPage)
	if err != nil {
		return err
	}
	text, last := "", newest
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		text += fmt.Sprintf("id: %d\nevent: event\ndata: %s\n\n", e.Seq, data)
	}
	if len(events) == watchPage {
		last = events[len(events)-1].Seq
	}
	if len(events) > 0 {
		last = max(last, events[len(events)-1].Seq)
		err = f.out.write(text)
	}
	f.last = last
	return err
}

// resync says that the client misses what is up to an event.
func (f *feed) resync(seq int64) error {
	data, err := json.Marshal(Resync{f.last, seq})
	if err != nil {
		return err
	}
	f.last = seq
	return f.out.write(fmt.Sprintf("id: %d\nevent: resync\ndata: %s\n\n", seq, data))
}

// sent is what goes to a client at once, or not at all.
type sent struct {
	w io.Writer
	c *http.ResponseController
}

func (s sent) write(text string) error {
	if err := s.c.SetWriteDeadline(time.Now().Add(watchPatience)); err != nil {
		return err
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.c.Flush()
}
