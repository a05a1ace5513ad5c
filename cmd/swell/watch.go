// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/status"
	"github.com/swell-sh/swell/sync/store"
)

func watchCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var once bool
	cmd := &cobra.Command{
		Use:   "watch [UNIT | FOLDER | TARGET | CLUSTER] --config FILE",
		Short: "Show the rollouts under way as they go on",
		Long: `Show a live picture of the rollouts under way, the worst first: a line for each unit, with
a letter for each target, wave by wave; where they do not fit, the numbers of targets by
state. What a unit waits for is shown as a whole where there is room. Then come the letters'
meaning and the newest events. It follows the daemon over its socket, and connects again
when the daemon starts again. Ctrl-C ends it.

Where the output is no terminal, or with --once, print one picture and end; where no
daemon runs, of its last state. Colours are used on a terminal unless NO_COLOR is set.

Exit codes: 0 ended, 2 there is no such unit or target, or the state could not be read.`,
		Example: `  swell watch
  swell watch services/shop
  swell watch sas-1 --once`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			place := unitArgument(args)
			out, ok := raw(cmd.OutOrStdout()).(*os.File)
			if once || !ok || !term.IsTerminal(int(out.Fd())) {
				return pictureOnce(cmd, file, place)
			}
			w := &watcher{place: place, out: out, is: picture{unknown: true}, color: in.colors(),
				size: func() (int, int, error) { return term.GetSize(int(out.Fd())) }}
			return w.run(cmd.Context(), file)
		},
	}
	daemonFlags(cmd, &file)
	cmd.Flags().BoolVar(&once, "once", false, "print one picture and end")
	return cmd
}

// pictureOnce prints one picture, of any height.
func pictureOnce(cmd *cobra.Command, file configPath, place string) error {
	return asking(cmd, file, func(t teller) error {
		p := &picture{now: time.Now(), width: widthOf(cmd.OutOrStdout())}
		if err := look(cmd.Context(), t, place, p); err != nil {
			return err
		}
		p.events = concerning(p.events, place)
		_, err := io.WriteString(cmd.OutOrStdout(), strings.Join(p.lines(), "\n")+"\n")
		return err
	})
}

// look asks for what a picture shows.
func look(ctx context.Context, t teller, place string, p *picture) (err error) {
	if p.rollouts, err = t.Rollouts(ctx, place, false); err != nil {
		return err
	}
	status.Worst(p.rollouts)
	p.events, err = t.History(ctx, serve.Query{Since: -1, Limit: recentEvents})
	return err
}

// recentEvents is how many events are looked through for those of a place.
const recentEvents = 200

// concerning are the newest of the events that are about a place.
func concerning(events []store.Recorded, place string) []store.Recorded {
	var of []store.Recorded
	for _, e := range events {
		if place == "" || config.Within(string(e.Unit), place) || e.Target != "" && config.Within(string(e.Target), place) {
			of = append(of, e)
		}
	}
	return of[max(0, len(of)-mostEvents):]
}

// watcher shows picture after picture on a terminal.
type watcher struct {
	place string
	out   io.Writer
	color bool
	size  func() (columns, lines int, err error)

	mu    sync.Mutex
	is    picture
	stale bool  // something has happened since the daemon was asked
	seq   int64 // of the newest event

	last     string // that was drawn
	lastSize [2]int
}

const (
	// redrawEvery is how often the terminal's size is looked at, and times are brought up
	// to date.
	redrawEvery = 250 * time.Millisecond
	// askEvery is the least time between two questions to the daemon, and askAnyway when
	// it is asked although nothing happened.
	askEvery, askAnyway = time.Second, 10 * time.Second
)

// What a terminal takes for: another screen without a cursor, and back; to the upper left;
// clear the rest of the line, of the screen.
const (
	screenOpen  = "\x1b[?1049h\x1b[?25l"
	screenClose = "\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// run shows pictures until ctx ends, or until the terminal is gone.
func (w *watcher) run(ctx context.Context, file configPath) (err error) {
	settings, err := readDaemonConfig(file)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- w.follow(ctx, settings.API.Socket) }()
	if _, err := io.WriteString(w.out, screenOpen); err != nil {
		return nil // nobody looks
	}
	defer func() { _, _ = io.WriteString(w.out, screenClose) }()
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		if w.draw(time.Now()) != nil {
			return nil // nobody looks
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-tick.C:
		}
	}
}

// draw shows the picture, where it is another one than the last.
func (w *watcher) draw(now time.Time) error {
	columns, lines, err := w.size()
	if err != nil || columns < 1 || lines < 1 {
		columns, lines = 80, 24
	}
	w.mu.Lock()
	p := w.is
	w.mu.Unlock()
	p.now, p.width, p.height, p.color = now, columns, lines, w.color
	// A line is cleared before it is written: behind one that is as wide as the terminal
	// the cursor stands on its last character.
	drawn := p.lines()
	text := screenHome + clearLine + strings.Join(drawn, "\r\n"+clearLine)
	if len(drawn) < lines {
		text += "\r\n" + clearBelow
	}
	if size := [2]int{columns, lines}; text == w.last && size == w.lastSize {
		return nil
	}
	w.last, w.lastSize = text, [2]int{columns, lines}
	_, err = io.WriteString(w.out, text)
	return err
}

// follow keeps the picture up to date. The error is one that does not go away.
func (w *watcher) follow(ctx context.Context, socket string) error {
	for ctx.Err() == nil {
		err := w.connected(ctx, socket)
		w.mu.Lock()
		if isProblem(err) || w.is.unknown && errors.Is(err, fs.ErrPermission) {
			w.mu.Unlock()
			return err
		}
		var theirs *serve.Error
		switch {
		case ctx.Err() != nil, errors.Is(err, io.EOF):
		case errors.As(err, &theirs):
			w.is.note = theirs.Detail + "; trying again"
		case w.is.note == "":
			w.is.note = "the daemon does not answer since " + time.Now().UTC().Format(clockLayout) + ": waiting for it"
		}
		w.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
	return nil
}

// connected follows for as long as the connection lasts.
func (w *watcher) connected(ctx context.Context, socket string) error {
	c, err := serve.Dial(ctx, socket)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := w.ask(ctx, c); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asking := make(chan error, 1)
	go func() { asking <- w.askOn(ctx, c); cancel() }()
	_, err = c.Watch(ctx, "", w.known(), w.happened, w.missed)
	cancel()
	if asked := <-asking; isProblem(asked) {
		return asked
	}
	return err
}

// known is the number of the newest event that is known.
func (w *watcher) known() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seq
}

// happened takes in an event.
func (w *watcher) happened(e store.Recorded) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale = true
	if e.Seq > w.seq {
		w.seq = e.Seq
		w.is.events = concerning(append(slices.Clone(w.is.events), e), w.place)
	}
	return nil
}

// missed takes in that events are missing, or that the history has begun anew.
func (w *watcher) missed(gap serve.Resync) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale = true
	if gap.Before < gap.After {
		w.seq, w.is.events = 0, nil
	}
	return nil
}

// askOn asks again when something has happened, and not more often than a daemon of a
// large fleet can answer.
func (w *watcher) askOn(ctx context.Context, c *serve.Client) error {
	took, asked := time.Duration(0), time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(askEvery, 4*took)):
		}
		w.mu.Lock()
		stale := w.stale
		w.stale = false
		w.mu.Unlock()
		if !stale && time.Since(asked) < askAnyway {
			continue
		}
		asked = time.Now()
		if err := w.ask(ctx, c); err != nil {
			return err
		}
		took = time.Since(asked)
	}
}

func (w *watcher) ask(ctx context.Context, c *serve.Client) error {
	var p picture
	if err := look(ctx, c, w.place, &p); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.is.rollouts, w.is.note, w.is.unknown = p.rollouts, "", false
	if n := len(p.events); n > 0 && p.events[n-1].Seq > w.seq {
		w.seq, w.is.events = p.events[n-1].Seq, concerning(p.events, w.place)
	}
	return nil
}
