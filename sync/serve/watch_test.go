// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/store"
)

func (s *served) happen(n int) {
	s.Helper()
	s.update(func(tx *store.Tx) error {
		var events []store.Event
		for range n {
			events = append(events, store.Event{Time: noon, Unit: "shop/cart", Kind: "applied"}, store.Event{Time: noon, Unit: "search", Kind: "done", Text: "two\nlines"})
		}
		return tx.AddHistory(events)
	})
}

var errEnough = errors.New("enough")

// numbers watches until n events came, and returns their numbers and where to go on.
func (s *served) numbers(unit config.UnitPath, since int64, n int) (text string, last int64) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	last, err := s.client.Watch(ctx, unit, since, func(e store.Recorded) error {
		text += fmt.Sprintf("%d ", e.Seq)
		if n--; n == 0 {
			return errEnough
		}
		return nil
	}, func(r Resync) error {
		text += fmt.Sprintf("resync(%d,%d) ", r.After, r.Before)
		return nil
	})
	if !errors.Is(err, errEnough) {
		s.Fatalf("after %q: %v", text, err)
	}
	return strings.TrimSpace(text), last
}

func (s *served) saw(what, got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestWatchResumes: a client that comes back is sent what it has not seen, each event once;
// a client that asks for one unit is sent the events of that one.
func TestWatchResumes(t *testing.T) {
	s := newServed(t, config.API{})
	s.happen(2)
	got, last := s.numbers("", 0, 3)
	s.saw("from the beginning", got, "1 2 3")
	if last != 2 { // the third one was not taken
		t.Errorf("goes on after %d", last)
	}
	got, _ = s.numbers("", 3, 1)
	s.saw("the rest", got, "4")
	got, _ = s.numbers("shop", 0, 2)
	s.saw("of a folder", got, "1 3")
	happened := make(chan struct{})
	go func() {
		defer close(happened)
		time.Sleep(2 * watchEvery)
		s.happen(1)
	}()
	got, _ = s.numbers("", 4, 2)
	s.saw("as it happens", got, "5 6")
	<-happened

	r := must(http.NewRequestWithContext(t.Context(), "GET", "http://swell/v1/watch?since=1", nil))(t)
	r.Header.Set("Last-Event-ID", "5")
	answer := must(s.client.http.Do(r))(t)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	var text []string
	for len(text) < 7 && lines.Scan() {
		text = append(text, lines.Text())
	}
	s.saw("as it is sent", strings.Join(text, "|"),
		`retry: 1000|id: 5||id: 6|event: event|data: {"seq":6,"time":"2026-03-01T12:00:00Z","unit":"search","kind":"done","text":"two\nlines"}|`)
}

// TestWatchOverflows: events that the history does not have any more, another history, and
// a client that is too slow: each is one event resync, and no event after it is left out.
func TestWatchOverflows(t *testing.T) {
	s := newServed(t, config.API{})
	s.happen(30)
	file := must(sql.Open("sqlite", filepath.Join(filepath.Dir(s.server.API.Socket), "state.db")))(t)
	must(file.Exec(`DELETE FROM history WHERE seq <= 20`))(t) // as those beyond 100,000 are
	must(0, file.Close())(t)
	got, _ := s.numbers("", 5, 2)
	s.saw("what is not kept", got, "resync(5,20) 21 22")
	go func() {
		time.Sleep(2 * watchEvery)
		s.happen(1)
	}()
	got, _ = s.numbers("", 999, 2)
	s.saw("another history", got, "resync(999,60) 61 62")

	answer := httptest.NewRecorder()
	f := &feed{store: s.store, last: 22, most: 20, out: sent{answer, http.NewResponseController(deadlined{answer})}}
	must(0, f.send(t.Context()))(t)
	if n := strings.Count(answer.Body.String(), "event: event"); n != 40 || strings.Contains(answer.Body.String(), "resync") {
		t.Errorf("%d events are made up for", n)
	}
	answer.Body.Reset()
	s.happen(11)
	must(0, f.send(t.Context()))(t)
	s.saw("a slow client", answer.Body.String(), "id: 84\nevent: resync\ndata: {\"after\":62,\"before\":84}\n\n")
}

// TestWatchGivesItsPlaceUp: a client that takes nothing keeps its place for a while only, and one
// that is there goes on where it was.
func TestWatchGivesItsPlaceUp(t *testing.T) {
	s := newServed(t, config.API{})
	s.server.watchFor = 200 * time.Millisecond
	s.happen(2)
	var got []int64
	take := func(e store.Recorded) error { got = append(got, e.Seq); return nil }
	last, err := s.client.Watch(t.Context(), "", 0, take, func(Resync) error { return nil })
	if !errors.Is(err, io.EOF) || last != 4 || len(got) != 4 {
		t.Errorf("got %v up to %d, %v", got, last, err)
	}
	for deadline := time.Now().Add(time.Minute); len(s.server.watches) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the place is not given up")
		}
	}
}

// deadlined is a recorder that takes deadlines.
type deadlined struct{ *httptest.ResponseRecorder }

func (deadlined) SetWriteDeadline(time.Time) error { return nil }

// TestWatchEndsWithTheServer: a daemon that ends does not wait for who watches.
func TestWatchEndsWithTheServer(t *testing.T) {
	s := newServed(t, config.API{})
	s.happen(1)
	ended := make(chan error, 1)
	came := make(chan struct{}, 10)
	go func() {
		_, err := s.client.Watch(t.Context(), "", 0, func(store.Recorded) error { came <- struct{}{}; return nil }, nil)
		ended <- err
	}()
	<-came
	began := time.Now()
	must(0, s.server.Close())(t)
	if err := <-ended; err == nil || time.Since(began) > closePatience {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}
