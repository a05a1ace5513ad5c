// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package announce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/render/report"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/rollout"
)

// Options of an [Announcer]. All but Wake and Now are required.
type Options struct {
	Forge forge.Forge
	// Dir is the folder of what is stored.
	Dir string
	// Between are the commits that a branch went over from one commit to another one, with
	// that one, the newest first: merges of pull requests are among them.
	Between func(from, to config.Commit) ([]config.Commit, error)
	// Wake has a pass made soon, and so Observe called and Trouble asked for.
	Wake func()
	Log  *slog.Logger
	Now  func() time.Time
}

const (
	// lookEvery is how often the state is looked at when nothing is said to have happened.
	lookEvery = 30 * time.Second
	// lookShare bounds how often it is looked at otherwise: a look of 10 ms is followed by
	// 190 ms without one, since the pass waits for it.
	lookShare = 20
	// maxPulls is how many commits of a push are asked after: each is a request.
	maxPulls = 20
	// keptFor is how long it is known what was told of a commit.
	keptFor = 30 * 24 * time.Hour
)

// told is what was told of a commit.
type told struct {
	Name     string                `json:"name"`            // of the monorepo
	Since    config.Commit         `json:"since,omitempty"` // the commit before it; empty: not known
	Statuses map[string]toldStatus `json:"statuses,omitempty"`
	Pulls    []int                 `json:"pulls,omitempty"`    // that it merges
	Asked    bool                  `json:"asked,omitempty"`    // these are known
	Comments map[int]toldComment   `json:"comments,omitempty"` // by pull request
	Over     bool                  `json:"over,omitempty"`
}

type toldStatus struct {
	State forge.State `json:"state"`
	Text  string      `json:"text"`
}

type toldComment struct {
	ID     int64  `json:"id"`
	Digest string `json:"digest"`
}

// Announcer is at work between Run and the end of its context. Observe is called by passes.
type Announcer struct {
	Options

	// Of Observe alone.
	looked time.Time
	took   time.Duration // the last look
	due    bool          // something happened since, and Wake was or will be called

	mu     sync.Mutex // guards what follows
	known  map[config.Commit]bool
	is     map[config.Commit]*Progress
	name   string
	newest config.Commit // empty: none yet
	// verdict says what becomes of the newest one.
	verdict Wave                            // of the zero value: it was told by an earlier process
	judged  map[config.Commit]bool          // by earlier processes
	before  map[config.Commit]config.Commit // the commit before a new one
	wake    chan struct{}
	// trouble is why not all was told; empty: it was.
	trouble string

	// Of Run alone.
	told   map[config.Commit]*told
	failed int
	next   time.Time
}

// Open reads what was told.
func Open(o Options) (*Announcer, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Announcer{Options: o, known: map[config.Commit]bool{}, judged: map[config.Commit]bool{}, before: map[config.Commit]config.Commit{}, wake: make(chan struct{}, 1), told: map[config.Commit]*told{}}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	return a, a.load()
}

func (a *Announcer) load() error {
	entries, err := os.ReadDir(a.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := filepath.Join(a.Dir, entry.Name())
		info, gone := entry.Info()
		if gone == nil && a.Now().Sub(info.ModTime()) > keptFor {
			err = errors.Join(err, os.Remove(name))
			continue
		}
		content, unread := os.ReadFile(name)
		is := &told{}
		commit := config.Commit(strings.TrimSuffix(entry.Name(), ".json"))
		if unread != nil || json.Unmarshal(content, is) != nil || len(commit) != 40 {
			continue // it is told once more
		}
		a.told[commit] = is
		_, a.judged[commit] = is.Statuses[verdictName]
		a.known[commit] = !is.Over
	}
	return err
}

// Pass is what a pass was about.
type Pass struct {
	Monorepo string        // its name
	Commit   config.Commit // the newest one
	// New says that the pass was the first one with it. Then Refused says why nothing is
	// taken from it, empty: it is; and Broken is how many units have problems since it.
	New     bool
	Refused string
	Broken  int
	// Happened says that anything changed.
	Happened bool
}

// Observe looks at the state after a pass. It keeps nothing of it. Where looks take long, not
// every pass has one: then a later one is asked for.
func (a *Announcer) Observe(state *rollout.State, pass Pass) {
	now := a.Now()
	a.mu.Lock()
	if pass.New {
		a.judge(pass)
	}
	a.mu.Unlock()
	since := now.Sub(a.looked)
	if !pass.Happened && !a.due && since < lookEvery {
		return
	}
	if wait := (lookShare-1)*a.took - since; wait > 0 {
		if !a.due && a.Wake != nil {
			time.AfterFunc(wait, a.Wake)
		}
		a.due = true
		return
	}
	a.look(state, pass.Commit, now)
	a.looked, a.due = a.Now(), false
	a.took = a.looked.Sub(now)
}

// judge takes note of a new commit.
func (a *Announcer) judge(pass Pass) {
	if pass.Commit != a.newest && a.newest != "" {
		a.before[pass.Commit] = a.newest
	}
	told := a.newest == "" && a.judged[pass.Commit]
	a.name, a.newest = pass.Monorepo, pass.Commit
	switch {
	case told:
		a.verdict = Wave{}
	case pass.Refused != "":
		a.verdict = Wave{Name: verdictName, State: forge.Failure, Text: "nothing is taken from it: " + strings.TrimPrefix(pass.Refused, "commit "+pass.Commit.Short()+": ")}
	case pass.Broken > 0:
		a.verdict = Wave{Name: verdictName, State: forge.Failure, Text: "taken, but for " + diff.Count(pass.Broken, "unit") + " with new problems"}
	default:
		a.verdict = Wave{Name: verdictName, State: forge.Success, Text: "taken"}
	}
}

// verdictName stands where the name of a wave does, and is none.
const verdictName = "the commit"

// look takes note of how all commits get on.
func (a *Announcer) look(state *rollout.State, newest config.Commit, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := map[config.Commit]bool{}
	for commit, open := range a.known {
		if open {
			known[commit] = true
		}
	}
	if newest == a.newest {
		known[newest] = true
	}
	a.is = Of(state, known, now)
	if newest == a.newest && a.verdict.Name != "" {
		a.is[newest].Waves = slices.Insert(a.is[newest].Waves, 0, a.verdict)
	}
	for commit := range a.is {
		a.known[commit] = true
	}
	maps.DeleteFunc(a.before, func(commit, _ config.Commit) bool { return commit != newest && !a.known[commit] })
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Run tells what is new until ctx ends.
func (a *Announcer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if a.failed == 0 {
			select {
			case <-ctx.Done():
			case <-a.wake:
			}
		} else {
			timer := time.NewTimer(max(a.next.Sub(a.Now()), 0))
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			timer.Stop()
		}
		a.tell(ctx)
	}
}

// tell tells what is new of all commits, the newest one first.
func (a *Announcer) tell(ctx context.Context) {
	a.mu.Lock()
	is, name, newest := a.is, a.name, a.newest
	before := maps.Clone(a.before)
	a.mu.Unlock()
	commits := slices.Sorted(maps.Keys(is))
	slices.SortStableFunc(commits, func(x, y config.Commit) int {
		switch newest {
		case x:
			return -1
		case y:
			return 1
		}
		return 0
	})
	for _, commit := range commits {
		if err := a.tellOf(ctx, is[commit], name, newest, before[commit]); err != nil {
			a.refused(ctx, commit, err)
			return
		}
	}
	a.failed = 0
	a.setTrouble("")
}

// Trouble says why not all that happened is told on the forge; empty: it is.
func (a *Announcer) Trouble() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trouble
}

func (a *Announcer) setTrouble(text string) {
	a.mu.Lock()
	changed := a.trouble != text
	a.trouble = text
	a.mu.Unlock()
	if changed && a.Wake != nil {
		a.Wake()
	}
}

// refused waits before the next try.
func (a *Announcer) refused(ctx context.Context, commit config.Commit, err error) {
	if ctx.Err() != nil {
		return
	}
	a.failed++
	a.next = a.Now().Add(forge.Pause(a.failed))
	var limit *forge.LimitError
	if errors.As(err, &limit) {
		a.next = limit.Until
		if limit.Own {
			return
		}
	}
	a.setTrouble(fmt.Sprintf("tell of commit %s: %s", commit.Short(), err))
	a.Log.Warn("announce", "commit", commit, "err", err)
}

func (a *Announcer) tellOf(ctx context.Context, is *Progress, name string, newest, before config.Commit) error {
	t := a.told[is.Commit]
	if t == nil {
		t = &told{Name: name, Since: before}
		a.told[is.Commit] = t
	}
	if t.Statuses == nil { // of a file that has none, too
		t.Statuses = map[string]toldStatus{}
	}
	if t.Comments == nil {
		t.Comments = map[int]toldComment{}
	}
	for _, w := range append(is.Waves, t.superseded(is, newest)...) {
		if err := a.status(ctx, is.Commit, t, w); err != nil {
			return err
		}
	}
	if err := a.comment(ctx, is, t); err != nil {
		return err
	}
	if is.Over && is.Commit != newest && !t.Over {
		t.Over = true
		a.mu.Lock()
		a.known[is.Commit] = false
		a.mu.Unlock()
		return a.keep(is.Commit, t)
	}
	return nil
}

// superseded ends the statuses of waves that the commit releases nothing through any more.
func (t *told) superseded(is *Progress, newest config.Commit) (ends []Wave) {
	for name, was := range t.Statuses {
		if was.State == forge.Pending && !slices.ContainsFunc(is.Waves, func(w Wave) bool { return w.Name == name }) {
			ends = append(ends, Wave{Name: name, State: forge.Success, Text: "superseded by " + newest.Short()})
		}
	}
	slices.SortFunc(ends, func(x, y Wave) int { return strings.Compare(x.Name, y.Name) })
	return ends
}

// status sets a status that says something new.
func (a *Announcer) status(ctx context.Context, commit config.Commit, t *told, w Wave) error {
	next, was := toldStatus{w.State, w.Text}, t.Statuses[w.Name]
	if was == next || was.State == forge.Success && w.State == forge.Success { // units went on with a newer commit
		return nil
	}
	if err := a.Forge.SetStatus(ctx, forge.Status{Commit: commit, Name: "swell/" + t.Name + ": " + w.Name, State: w.State, Text: w.Text}); err != nil {
		if !forge.IsNotFound(err) {
			return err
		}
		a.Log.Warn("announce", "commit", commit, "err", err) // the forge has no such commit any more
	}
	t.Statuses[w.Name] = next
	return a.keep(commit, t)
}

// comment writes on the pull requests that the commit merges, once a release failed; and once
// more when that changes.
func (a *Announcer) comment(ctx context.Context, is *Progress, t *told) error {
	if len(is.Failed) == 0 && len(t.Comments) == 0 {
		return nil
	}
	if !t.Asked {
		pulls, err := a.merged(ctx, is.Commit, t.Since)
		if err != nil {
			return err
		}
		t.Pulls, t.Asked = pulls, true
		if err := a.keep(is.Commit, t); err != nil {
			return err
		}
	}
	text := is.text()
	digest := forge.DigestOf(text)
	for _, number := range t.Pulls {
		was := t.Comments[number]
		if was.Digest == digest {
			continue
		}
		id, err := a.Forge.Comment(ctx, number, forge.Comment{Subject: "release of " + t.Name, ID: was.ID, Text: text, Digest: digest})
		if err != nil && !forge.IsNotFound(err) {
			return err
		}
		t.Comments[number] = toldComment{id, digest}
		if err := a.keep(is.Commit, t); err != nil {
			return err
		}
	}
	return nil
}

// merged are the pull requests that were merged since a commit.
func (a *Announcer) merged(ctx context.Context, commit, since config.Commit) (numbers []int, err error) {
	commits := []config.Commit{commit}
	if since != "" {
		if commits, err = a.Between(since, commit); err != nil { // the branch was rewound
			commits = []config.Commit{commit}
		}
	}
	for _, c := range commits[:min(len(commits), maxPulls)] {
		pull, err := a.Forge.Merged(ctx, c)
		if err != nil {
			return nil, err
		}
		if pull.Number != 0 && !slices.Contains(numbers, pull.Number) {
			numbers = append(numbers, pull.Number)
		}
	}
	return numbers, nil
}

// text is the comment on what failed.
func (p *Progress) text() string {
	var b strings.Builder
	if len(p.Failed) == 0 {
		end := "goes on after all"
		switch {
		case p.Over && len(p.Waves) == 0:
			end = "failed, and newer commits took its place"
		case p.Over:
			end = "is through after all"
		}
		fmt.Fprintf(&b, "### swell: the release of %s %s\n", p.Commit.Short(), end)
		return b.String()
	}
	fmt.Fprintf(&b, "### swell: :x: the release of %s failed for %s\n", p.Commit.Short(), diff.Count(len(p.Failed), "unit"))
	var lines []string
	for i, f := range p.Failed {
		if i == maxFailures {
			lines = append(lines, fmt.Sprintf("and %d more", len(p.Failed)-i))
			break
		}
		lines = append(lines, document.Cut(document.Printable(fmt.Sprintf("%s: %s in wave %s: %s", f.Unit, f.Status, f.Wave, f.Reason)), maxReason))
	}
	b.WriteString("\n" + report.Fenced("text", lines))
	b.WriteString("\nWhat to do: merge a change that mends it, which is released by itself; or, when the cause is gone, try the same again:\n\n")
	unit := document.Printable(string(p.Failed[0].Unit))
	b.WriteString(report.Fenced("text", []string{"swell describe " + unit, "swell retry " + unit}))
	return b.String()
}

const (
	maxFailures = 20  // that a comment names
	maxReason   = 600 // bytes of one
)

// keep stores what was told of a commit.
func (a *Announcer) keep(commit config.Commit, t *told) error {
	content, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(a.Dir, string(commit)+".json"), content, 0o600, renameio.WithTempDir(a.Dir))
}
