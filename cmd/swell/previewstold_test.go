// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/announce"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/preview"
	"github.com/swell-sh/swell/sync/rollout"
)

// oneOpen is a forge with an open pull request, that takes all.
type oneOpen struct{ forge.Forge }

func (oneOpen) Open(context.Context, string) ([]forge.Pull, error) {
	return []forge.Pull{{Number: 1, Head: "a1", Ref: "refs/pull/1/head", Base: "main", Open: true}}, nil
}
func (oneOpen) SetStatus(context.Context, forge.Status) error              { return nil }
func (oneOpen) Comment(context.Context, int, forge.Comment) (int64, error) { return 1, nil }
func (oneOpen) Report(context.Context, forge.Report) error                 { return forge.ErrNoReports }
func (oneOpen) Get(context.Context, int) (forge.Pull, error) {
	return forge.Pull{Number: 1, Open: true, Base: "main"}, nil
}

// TestPreviewsAreTold: a preview is asked for with the commit that the newest one goes to, also after
// passes without a new one, and with how the fleet is.
func TestPreviewsAreTold(t *testing.T) { synctest.Test(t, testPreviewsAreTold) }

func testPreviewsAreTold(t *testing.T) {
	asked, log := make(chan preview.Ask, 10), slog.New(slog.DiscardHandler)
	render := func(_ context.Context, ask preview.Ask) (preview.Answer, error) {
		if ask.Ref != "" {
			asked <- ask
		}
		return preview.Answer{Head: "a1", Digest: "1", Units: []config.UnitPath{"app"}}, nil
	}
	previewer, err := preview.New(preview.Options{Forge: oneOpen{}, Branch: "main", Dir: t.TempDir(), Log: log, Render: render})
	if err != nil {
		t.Fatal(err)
	}
	announcer, err := announce.Open(announce.Options{Forge: oneOpen{}, Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	o := &outside{previews: previewer, announcer: announcer}
	now := rollout.Now{Clusters: []string{"one"}}
	observe := func(isNew bool) {
		r := sync.Record{Commit: "b2", Monorepo: "shop", NewCommit: isNew, Since: "b1", Transitions: []rollout.Transition{{}}}
		if !isNew {
			r.Since = ""
		}
		o.observe(r, &rollout.State{}, func() (rollout.Now, error) { return now, nil })
	}
	observe(true)
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		previewer.Run(ctx)
	}()
	if ask := <-asked; ask.Base.Since != "b1" || len(ask.Now.Clusters) != 1 {
		t.Errorf("asked for a preview of %+v with %+v", ask.Base, ask.Now)
	}
	now.Units = map[config.UnitPath]rollout.UnitNow{"app": {Key: "held"}}
	var ask preview.Ask
	for ask.Ref == "" { // not every pass looks at the fleet
		observe(false)
		select {
		case ask = <-asked:
		case <-time.After(50 * time.Millisecond):
		}
	}
	if ask.Base.Since != "b1" || len(ask.Now.Units) != 1 {
		t.Errorf("asked for another one of %+v with %+v", ask.Base, ask.Now)
	}
	cancel()
	<-finished
}
