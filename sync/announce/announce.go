// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package announce

import (
	"cmp"
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
	"github.com/swell-sh/swell/render/report"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/preview"
	"github.com/swell-sh/swell/sync/rollout"
)

// Options of an [Announcer]. All but Wake and Now are required.
type Options struct {
	Forge forge.Forge
	// Project names the repository and the forge that it is on: what was told elsewhere is told
	// once more.
	Project string
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
	// keptFor is how long it is known what was told of a commit, and sweepEvery how often
	// what is older goes.
	keptFor    = 30 * 24 * time.Hour
	sweepEvery = 24 * time.Hour
	// countEvery is how often a status is set anew where nothing but a count is new, and a
	// comment that was written before is.
	countEvery = time.Minute
	// maxTries is how often the forge may say that it does not have a commit, or refuse a
	// comment, before that is believed: most of a day. The credential may not be let in for a
	// while.
	maxTries = 100
)

// told is what was told of a commit.
type told struct {
	Name     string                `json:"name"`            // of the monorepo
	Since    config.Commit         `json:"since,omitempty"` // the commit that was taken before it; empty: not known
	Statuses map[string]toldStatus `json:"statuses,omitempty"`
	Pulls    []int                 `json:"pulls,omitempty"`    // that it merges
	Asked    bool                  `json:"asked,omitempty"`    // these are known
	Comments map[int]toldComment   `json:"comments,omitempty"` // by pull request
	Courses  map[int]toldComment   `json:"courses,omitempty"`  // under the previews, by pull request
	Over     bool                  `json:"over,omitempty"`
	Lost     bool                  `json:"lost,omitempty"` // the forge does not have the commit
	On       string                `json:"on,omitempty"`   // the project, see [Options]
}

type toldStatus struct {
	State forge.State `json:"state"`
	Text  string      `json:"text"`
	Count string      `json:"count,omitempty"`
	At    time.Time   `json:"at"`
	// Order is that of the wave among those that the commit goes through.
	Order int `json:"order,omitempty"`
}

type toldComment struct {
	ID     int64     `json:"id"`
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
	// Refused is how often the forge refused one; from maxTries, none is tried.
	Refused int `json:"refused,omitempty"`
	// Edits is how often it was written.
	Edits int `json:"edits,omitempty"`
}

// Announcer is at work between Run and the end of its context. Observe is called by passes.
type Announcer struct {
	Options

	// Of Observe alone.
	looked time.Time
	took   time.Duration // the last look
	due    bool          // something happened since, and Wake was or will be called

	mu     sync.Mutex             // guards what follows
	known  map[config.Commit]bool // that are not over
	is     map[config.Commit]*Progress
	name   string
	newest config.Commit // empty: none yet
	// verdict says what becomes of the newest one.
	verdict Wave                            // of the zero value: it was told by an earlier process
	before  map[config.Commit]config.Commit // the one that was taken before a new one
	wake    chan struct{}
	// trouble is why not all was told; empty: it was.
	trouble string

	// Of Run alone.
	told   map[config.Commit]*told // of commits that are not over
	pauses map[config.Commit]forge.Tries
	failed int       // how often in a row the forge did nothing that was asked
	closed time.Time // nothing is asked of it before
	next   time.Time // when there is something to do at the latest; zero: never
	swept  time.Time
}

// Open reads what was told.
func Open(o Options) (*Announcer, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Announcer{Options: o, known: map[config.Commit]bool{}, before: map[config.Commit]config.Commit{}, wake: make(chan struct{}, 1), told: map[config.Commit]*told{}, pauses: map[config.Commit]forge.Tries{}}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	commits, err := a.tidy()
	for _, commit := range commits {
		if is := a.read(commit); is != nil && !is.Over {
			a.told[commit], a.known[commit] = is, true
		}
	}
	return a, err
}

// tidy deletes what is old, and returns the commits of which something is known.
func (a *Announcer) tidy() (commits []config.Commit, err error) {
	entries, err := os.ReadDir(a.Dir)
	if err != nil {
		return nil, err
	}
	a.swept = a.Now()
	for _, entry := range entries {
		info, gone := entry.Info()
		if gone == nil && a.swept.Sub(info.ModTime()) > keptFor {
			err = errors.Join(err, os.Remove(filepath.Join(a.Dir, entry.Name())))
			continue
		}
		if commit := strings.TrimSuffix(entry.Name(), ".json"); len(commit) == 40 {
			commits = append(commits, config.Commit(commit))
		}
	}
	return commits, err
}

func (a *Announcer) fileOf(commit config.Commit) string {
	return filepath.Join(a.Dir, string(commit)+".json")
}

// read is what was told of a commit; nil: nothing is known of it, and it is told once more.
func (a *Announcer) read(commit config.Commit) *told {
	content, err := os.ReadFile(a.fileOf(commit))
	is := &told{}
	if err != nil || json.Unmarshal(content, is) != nil || is.On != a.Project {
		return nil
	}
	return is
}

// Pass is what a pass was about.
type Pass struct {
	Monorepo string        // its name
	Commit   config.Commit // the newest one
	// New says that the pass was the first one with it. Then Since is the commit that was taken
	// before it, also by an earlier process, empty: none was; Refused says why nothing is taken from
	// it, empty: it is; and Broken is how many units have problems since it.
	New     bool
	Since   config.Commit
	Refused string
	Broken  int
	// Problems says that a unit of it has any, new or not.
	Problems bool
	// Happened says that anything changed.
	Happened bool
}

// Observe looks at the state after a pass. It keeps nothing of it. Where looks take long, not
// every pass has one: then a later one is asked for. It says whether it looked.
func (a *Announcer) Observe(state *rollout.State, pass Pass) bool {
	now := a.Now()
	a.mu.Lock()
	if pass.New {
		a.judge(pass)
	}
	a.mu.Unlock()
	since := now.Sub(a.looked)
	if !pass.Happened && !a.due && since < lookEvery {
		return false
	}
	if wait := (lookShare-1)*a.took - since; wait > 0 {
		if !a.due && a.Wake != nil {
			time.AfterFunc(wait, a.Wake)
		}
		a.due = true
		return false
	}
	a.look(state, pass.Commit, now)
	a.looked, a.due = a.Now(), false
	a.took = a.looked.Sub(now)
	return true
}

// judge takes note of a new commit.
func (a *Announcer) judge(pass Pass) {
	if pass.Commit != a.newest && pass.Since != "" {
		a.before[pass.Commit] = pass.Since
	}
	// By an earlier process, which knew what was new.
	judged := pass.Commit == a.newest && a.verdict == (Wave{}) && pass.Problems
	if a.newest == "" {
		if is := a.read(pass.Commit); is != nil {
			_, judged = is.Statuses[verdictName]
		}
	}
	a.name, a.newest = pass.Monorepo, pass.Commit
	switch {
	case pass.Refused != "":
		a.verdict = Wave{Name: verdictName, State: forge.Failure, Text: "nothing is taken from it: " + strings.TrimPrefix(pass.Refused, "commit "+pass.Commit.Short()+": ")}
	case judged:
		a.verdict = Wave{}
	case pass.Broken > 0:
		a.verdict = Wave{Name: verdictName, State: forge.Failure, Text: "taken, but for " + document.Count(pass.Broken, "unit") + " with new problems"}
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
	known := maps.Clone(a.known)
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
		a.sleep(ctx)
		a.tell(ctx)
	}
}

// sleep waits for something to happen, or for what is to be tried again.
func (a *Announcer) sleep(ctx context.Context) {
	var late <-chan time.Time
	if !a.next.IsZero() {
		timer := time.NewTimer(max(a.next.Sub(a.Now()), 0))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-ctx.Done():
	case <-a.wake:
	case <-late:
	}
}

// later has something done at a time.
func (a *Announcer) later(at time.Time) {
	if a.next.IsZero() || at.Before(a.next) {
		a.next = at
	}
}

// tell tells what is new of all commits, the newest one first.
func (a *Announcer) tell(ctx context.Context) {
	now := a.Now()
	if now.Before(a.closed) {
		a.next = a.closed
		return
	}
	a.next = time.Time{}
	a.sweep(now)
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
	trouble := ""
	for _, commit := range commits {
		pause := a.pauses[commit]
		if now.Before(pause.Next) {
			a.later(pause.Next)
			trouble = cmp.Or(trouble, a.trouble)
			continue
		}
		err := a.tellOf(ctx, is[commit], name, newest, before[commit])
		if err == nil {
			delete(a.pauses, commit)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		own := a.refused(commit, err)
		if !own {
			trouble = fmt.Sprintf("tell of commit %s: %s", commit.Short(), err)
			a.Log.Warn("announce", "commit", commit, "err", err)
		}
		if now.Before(a.closed) {
			a.setTrouble(trouble)
			return
		}
	}
	a.failed = 0
	a.setTrouble(trouble)
}

// refused finds out when a commit, or anything, is tried again. own says that nobody refused
// anything: we are keeping clear of a limit.
func (a *Announcer) refused(commit config.Commit, err error) (own bool) {
	now := a.Now()
	var limit *forge.LimitError
	switch {
	case errors.As(err, &limit):
		a.closed, own = limit.Until, limit.Own
	case forge.IsRefusal(err):
		pause := a.pauses[commit]
		pause.Fail(now, 0)
		a.pauses[commit] = pause
		a.later(pause.Next)
		return false
	default:
		a.failed++
		a.closed = now.Add(forge.Pause(a.failed))
	}
	a.later(a.closed)
	return own
}

// sweep deletes what is old, now and then.
func (a *Announcer) sweep(now time.Time) {
	if now.Sub(a.swept) < sweepEvery {
		return
	}
	if _, err := a.tidy(); err != nil {
		a.Log.Error("announce: tidy up", "err", err)
	}
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

func (a *Announcer) tellOf(ctx context.Context, is *Progress, name string, newest, before config.Commit) error {
	t := a.told[is.Commit]
	if t == nil {
		if t = a.read(is.Commit); t == nil {
			t = &told{Name: name, Since: before, On: a.Project}
		}
		if t.Over && is.Over {
			a.forget(is.Commit)
			return nil
		}
		a.told[is.Commit], t.Over = t, false
	}
	if t.Statuses == nil { // of a file that has none, too
		t.Statuses = map[string]toldStatus{}
	}
	if t.Comments == nil {
		t.Comments = map[int]toldComment{}
	}
	if t.Courses == nil {
		t.Courses = map[int]toldComment{}
	}
	for i, w := range append(is.Waves, t.ended(is, newest)...) {
		if err := a.status(ctx, is.Commit, t, i, w); err != nil {
			return err
		}
	}
	if err := a.findPulls(ctx, is, t); err != nil {
		return err
	}
	if err := errors.Join(a.comment(ctx, is, t), a.course(ctx, is, t)); err != nil {
		return err
	}
	if !is.Over || is.Commit == newest || len(is.Failed) > 0 { // that a newer commit mends it is to be told
		return nil
	}
	t.Over = true
	if err := a.keep(is.Commit, t); err != nil {
		return err
	}
	a.forget(is.Commit)
	return nil
}

// forget is about a commit that is over. Where it goes on after all, its file has what was
// told.
func (a *Announcer) forget(commit config.Commit) {
	delete(a.told, commit)
	delete(a.pauses, commit)
	a.mu.Lock()
	delete(a.known, commit)
	a.mu.Unlock()
}

// ended ends the statuses of waves that the commit releases nothing through any more.
func (t *told) ended(p *Progress, newest config.Commit) (ends []Wave) {
	for name, status := range t.Statuses {
		if status.State != forge.Pending || slices.ContainsFunc(p.Waves, func(w Wave) bool { return w.Name == name }) {
			continue
		}
		end := Wave{Name: name, State: forge.Success, Text: "superseded by " + newest.Short()}
		switch {
		case status.Text == removesText:
			end.Text = "removed"
		case newest == p.Commit:
			end.Text = "nothing is left of it to release"
		}
		ends = append(ends, end)
	}
	slices.SortFunc(ends, func(x, y Wave) int { return t.byOrder(x.Name, y.Name) })
	return ends
}

// status sets a status that says something new.
func (a *Announcer) status(ctx context.Context, commit config.Commit, t *told, order int, w Wave) error {
	was, known := t.Statuses[w.Name]
	now := a.Now()
	if known { // those before it may be over
		order = was.Order
	}
	switch same := was.State == w.State && was.Text == w.Text; {
	case same && was.Count == w.Count,
		was.State == forge.Success && w.State == forge.Success: // units went on with a newer commit
		return nil
	case same && now.Sub(was.At) < countEvery:
		a.later(was.At.Add(countEvery))
		return nil
	}
	text := w.Text
	if w.Count != "" {
		text = w.Count + ": " + text
	}
	if err := a.Forge.SetStatus(ctx, forge.Status{Commit: commit, Name: "swell/" + t.Name + ": " + w.Name, State: w.State, Text: text}); err != nil {
		if !a.isFinal(commit, t, err) {
			return err
		}
		t.Lost = t.Lost || forge.IsNotFound(err)
		a.Log.Warn("announce", "commit", commit, "err", err)
	}
	t.Statuses[w.Name] = toldStatus{w.State, w.Text, w.Count, now, order}
	return a.keep(commit, t)
}

// isFinal says that the forge does not have a commit, and will not.
func (a *Announcer) isFinal(commit config.Commit, t *told, err error) bool {
	return forge.IsFinal(err) && (!forge.IsNotFound(err) || t.Lost || a.pauses[commit].Failed >= maxTries)
}

// findPulls finds the pull requests that the commit merges, once there is anything to tell on them.
func (a *Announcer) findPulls(ctx context.Context, p *Progress, t *told) error {
	if t.Asked || len(t.Statuses) == 0 {
		return nil
	}
	pulls, err := a.merged(ctx, p.Commit, t.Since)
	if err != nil && !a.isFinal(p.Commit, t, err) {
		return err
	}
	t.Pulls, t.Asked = pulls, true
	return a.keep(p.Commit, t)
}

// comment writes on the pull requests that the commit merges, once a release failed; and once
// more when that changes.
func (a *Announcer) comment(ctx context.Context, is *Progress, t *told) error {
	if len(is.Failed) == 0 && len(t.Comments) == 0 {
		return nil
	}
	text, now := is.text(), a.Now()
	digest := forge.DigestOf(text)
	var refused []error // of one pull request, which is no reason not to tell on others
	for _, number := range t.Pulls {
		was := t.Comments[number]
		if was.Digest == digest || was.Refused >= maxTries {
			continue
		}
		if next := was.At.Add(countEvery); now.Before(next) && len(is.Failed) > 0 { // units fail one after the other
			a.later(next)
			continue
		}
		id, err := a.Forge.Comment(ctx, number, forge.Comment{Subject: "release of " + t.Name, ID: was.ID, Text: text, Digest: digest})
		switch {
		case err == nil:
			t.Comments[number] = toldComment{ID: id, Digest: digest, At: now}
		case forge.IsRefusal(err):
			was.Refused++
			t.Comments[number] = was
			if was.Refused < maxTries {
				refused = append(refused, err)
				continue
			}
		default:
			return err
		}
		if err := a.keep(is.Commit, t); err != nil {
			return err
		}
	}
	return errors.Join(refused...)
}

// course writes under the previews of the pull requests that the commit merges how its release gets
// on, wave by wave. The preview stays what was reviewed. It is edited maxEdits times at most, and
// then once more at the end.
func (a *Announcer) course(ctx context.Context, p *Progress, t *told) error {
	text, now, finished := t.courseText(p.Commit), a.Now(), p.Over
	digest := forge.DigestOf(text)
	var refused []error // of one pull request
	for _, number := range t.Pulls {
		before := t.Courses[number]
		if before.Digest == digest || before.Refused >= maxTries || before.Edits > maxEdits || before.Edits == maxEdits && !finished {
			continue
		}
		if next := before.At.Add(countEvery); now.Before(next) && !finished {
			a.later(next)
			continue
		}
		id, err := a.Forge.Comment(ctx, number, forge.Comment{
			Subject: "release of " + t.Name, Below: preview.Subject(t.Name), ID: before.ID, Text: text, Digest: digest,
		})
		switch {
		case err == nil && id == 0: // nothing before reviewed
			before.Refused = maxTries
		case err == nil:
			before = toldComment{ID: id, Digest: digest, At: now, Edits: before.Edits + 1}
		case forge.IsRefusal(err):
			if before.Refused++; before.Refused < maxTries {
				refused = append(refused, err)
			}
		default:
			return err
		}
		t.Courses[number] = before
		if err := a.keep(p.Commit, t); err != nil {
			return err
		}
	}
	return errors.Join(refused...)
}

// byOrder compares two waves by the way of the commit through them.
func (t *told) byOrder(x, y string) int {
	return cmp.Or(cmp.Compare(t.Statuses[x].Order, t.Statuses[y].Order), strings.Compare(x, y))
}

// maxEdits is how often the course of a release is written under a preview while it is under way.
const maxEdits = 20

// courseText says how far the waves are, a line each: when it stays the same is up to waves, not to
// units and soaks.
func (t *told) courseText(commit config.Commit) string {
	var lines []string
	for _, name := range slices.SortedFunc(maps.Keys(t.Statuses), t.byOrder) {
		status := t.Statuses[name]
		text := status.Text
		if status.State == forge.Pending && text != turnText && text != approvalText && text != removesText {
			text = "under way"
		}
		lines = append(lines, document.Cut(document.Printable(name+": "+text), maxCourse))
	}
	return fmt.Sprintf("---\n\n**After the merge**, with commit %s\n\n%s", commit.Short(), report.Fenced("text", lines))
}

const maxCourse = 300 // bytes of a line

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
	fmt.Fprintf(&b, "### swell: :x: the release of %s failed for %s\n", p.Commit.Short(), document.Count(len(p.Failed), "unit"))
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
	if err == nil {
		err = os.MkdirAll(a.Dir, 0o700) // somebody may have deleted it
	}
	if err != nil {
		return err
	}
	return renameio.WriteFile(a.fileOf(commit), content, 0o600, renameio.WithTempDir(a.Dir))
}
