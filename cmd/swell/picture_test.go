// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/status"
	"github.com/swell-sh/swell/sync/store"
)

// under is a rollout with waves of so many targets in these states: "canary 2+;main 3+ 1x".
func under(unit config.UnitPath, is status.Standing, wave int, cells string) status.UnderWay {
	u := status.UnderWay{Unit: unit, Status: is, Wave: wave, Since: describedAt.Add(-6 * time.Minute)}
	letters := map[byte]status.Standing{}
	for is, m := range marks {
		letters[m.letter] = is
	}
	for _, text := range strings.Split(cells, ";") {
		words := strings.Fields(text)
		c := status.Cells{Wave: words[0]}
		for _, word := range words[1:] {
			var n int
			var letter byte
			if _, err := fmt.Sscanf(word, "%d%c", &n, &letter); err != nil {
				panic(err)
			}
			for range n {
				c.States = append(c.States, letters[letter])
			}
		}
		u.Cells = append(u.Cells, c)
		u.Targets += len(c.States)
	}
	for _, c := range u.Cells {
		for _, is := range c.States {
			if is == status.Healthy {
				u.Done++
			}
		}
	}
	u.Waves, u.WaveName = len(u.Cells), u.Cells[wave-1].Wave
	return u
}

func pictureEvents() (events []store.Recorded) {
	for i := range 10 {
		e := store.Recorded{Seq: int64(i)}
		e.Time, e.Unit, e.Target, e.Wave, e.Kind = describedAt.Add(time.Duration(i)*time.Second), "shop/cart", "sas-1/rz00a", "main", "applied"
		e.Text = fmt.Sprint("bundle ", i)
		events = append(events, e)
	}
	events[9].Text = "a long text of a cluster \x1b[31m that \r goes on and on and on until nobody reads it any more"
	return events
}

func pictures() map[string]*picture {
	large := under("shop/cart", status.Failed, 2, "canary 2+;main 250+ 3x 2m 1?;rest 42.")
	large.Waits = "waiting for 4 of 256 targets: target sas-007/rz00a: Deployment/cart: container main: ImagePullBackOff"
	few := []status.UnderWay{large, under("shop/web", status.Progressing, 1, "canary 2~;main 20.;rest 3."), under("search", status.Masked, 3, "canary 1+;main 8+ 1m;rest 3+")}
	odd := []status.UnderWay{under("a/very/long/path/of/a/unit/that/nobody/would/type", status.RollingBack, 1, "eine-welle-mit-einem-langen-namen 5x 5+;z 3."), under("日本語/サービス", status.Progressing, 1, "一番 3~;二番 9."), under("a\x1b[2J\u202eb", status.Held, 1, "x 1x")}
	var many []status.UnderWay
	for i := range 2000 {
		is := status.Progressing
		if i%10 == 0 {
			is = status.Held
		}
		many = append(many, under(config.UnitPath(fmt.Sprintf("services/unit%04d", i)), is, 1+i%2, "canary 1+;rest 2+ 3~"))
	}
	status.Worst(many)
	frozen := describedAt
	return map[string]*picture{
		"few-80x24":    {rollouts: few, events: pictureEvents(), now: frozen, width: 80, height: 24},
		"few-80x12":    {rollouts: few, events: pictureEvents(), now: frozen, width: 80, height: 12},
		"few-120x40":   {rollouts: few, events: pictureEvents(), now: frozen, width: 120, height: 40},
		"colors":       {rollouts: few, now: frozen, width: 80, height: 16, color: true},
		"odd-60x20":    {rollouts: odd, now: frozen, width: 60, height: 20},
		"narrow-20x24": {rollouts: append(few, odd...), events: pictureEvents(), now: frozen, width: 20, height: 24},
		"many-80x24":   {rollouts: many, events: pictureEvents(), now: frozen, width: 80, height: 24},
		"none":         {events: pictureEvents()[:1], now: frozen, width: 80, height: 24, note: "the daemon does not answer since 12:05:00: waiting for it"},
		"pipe-80":      {rollouts: few, events: pictureEvents(), now: frozen, width: 80},
		"tiny-5x3":     {rollouts: few, events: pictureEvents(), now: frozen, width: 5, height: 3},
	}
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// fits says what is wrong with the size of a picture, or in its lines.
func fits(p *picture) error {
	lines := p.lines()
	if p.height > 0 && len(lines) > p.height {
		return fmt.Errorf("%d lines, want at most %d", len(lines), p.height)
	}
	for _, line := range lines {
		plain := line
		if p.color {
			plain = sgr.ReplaceAllString(line, "")
		}
		if plain != visible(plain) {
			return fmt.Errorf("%q moves the cursor", plain)
		}
		if n := cellWidth(plain); n > p.width {
			return fmt.Errorf("%q: %d columns, want at most %d", plain, n, p.width)
		}
	}
	return nil
}

// TestPictures: pictures of given sizes are as they were; -update writes them.
func TestPictures(t *testing.T) {
	for name, p := range pictures() {
		if err := fits(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := strings.ReplaceAll(strings.Join(p.lines(), "\n")+"\n", "\x1b", "^")
		file := filepath.Join("testdata", "picture", name+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestPicturesFit: whatever the size, and whatever units are called, a picture fits.
func TestPicturesFit(t *testing.T) {
	all := pictures()
	rapid.Check(t, func(t *rapid.T) {
		p := *all[rapid.SampledFrom([]string{"few-80x24", "odd-60x20", "narrow-20x24", "many-80x24", "none"}).Draw(t, "picture")]
		p.width, p.height, p.color = rapid.IntRange(1, 200).Draw(t, "width"), rapid.IntRange(1, 60).Draw(t, "height"), rapid.Bool().Draw(t, "color")
		if err := fits(&p); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStatesHaveLetters: every state of a target has a letter of its own.
func TestStatesHaveLetters(t *testing.T) {
	seen := map[byte]status.Standing{}
	for _, is := range drawn {
		m := markOf(is)
		if other, known := seen[m.letter]; known {
			t.Errorf("%s and %s are both %c", is, other, m.letter)
		}
		seen[m.letter] = is
	}
	if len(drawn) != len(marks) {
		t.Errorf("%s in the legend, %d have letters", document.Count(len(drawn), "state"), len(marks))
	}
}

// TestAllTargetsCount: no state that a target can be in is left out where targets are counted.
func TestAllTargetsCount(t *testing.T) {
	unit := &rollout.Unit{Rollout: &rollout.Rollout{Status: rollout.Done, Spec: config.Rollout{Waves: []config.Wave{{Name: "all"}}}},
		Targets: map[config.TargetName]*rollout.Target{
			"ill":  {Wanted: "d", Applied: "d", Good: "d", Trouble: rollout.TroubleFailed},
			"left": {Wanted: "d", Applied: "d", Good: "d", Health: rollout.HealthGood, Left: "no right"},
		}}
	var states []status.Standing
	for _, target := range status.Of(unit, status.Known{}).Targets {
		states = append(states, target.Status)
	}
	if text, _ := (&picture{}).counts(states); text != "1g 1l" {
		t.Errorf("%v: %q", states, text)
	}
}

// TestNoTime: a rollout of which nobody knows the beginning has none in texts.
func TestNoTime(t *testing.T) {
	u := under("shop/cart", status.Progressing, 1, "canary 1~")
	u.Since = time.Time{}
	lines := (&picture{rollouts: []status.UnderWay{u}, now: describedAt, width: 80}).lines()
	w := &describer{d: &status.Description{UnderWay: u, Now: describedAt}, width: 80}
	w.head()
	if text := strings.Join(lines, "\n") + w.text.String(); strings.Contains(text, "since") {
		t.Error(text)
	}
}
