// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/checker"
	"github.com/swell-sh/swell/sync/preview"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/sync/source/gittest"
)

// TestPreviewerKnowsTheFleet: the process that renders previews judges the base as the daemon did, and
// takes into account how the fleet is.
func TestPreviewerKnowsTheFleet(t *testing.T) {
	r := newPreviewed(t)
	good := r.commit()
	r.write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: small}\nspec: {checks: {plainSecrets: pass}}\n")
	r.write("services/token/token.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: cart}\n"+
		"stringData: {token: abcdefgh}\n")
	loose := r.commit() // and is held by the rules of good
	r.write("services/more/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: cart}\n")
	r.commit()

	ask := r.previewer()
	const mended = "services/token\n  mended: "
	a := ask(preview.Base{Commit: loose, Monorepo: "small"}, rollout.Now{})
	if a.Bad || strings.Contains(a.Comment, mended) || len(a.Units) != 1 {
		t.Errorf("alone: bad %t, about %s:\n%s", a.Bad, a.Units, a.Comment)
	}
	a = ask(preview.Base{Commit: loose, Monorepo: "small", Since: good}, rollout.Now{Clusters: []string{"dev-1"}})
	const unreached = "cluster dev-2: the daemon's configuration does not say how to reach it, and the change places 1 unit there"
	if !a.Bad || !strings.Contains(a.Comment, mended) || !strings.Contains(a.Comment, unreached) || len(a.Units) != 2 {
		t.Errorf("with how the fleet is: bad %t, about %s:\n%s", a.Bad, a.Units, a.Comment)
	}
	a = ask(preview.Base{Commit: good, Monorepo: "small"}, rollout.Now{})
	if !a.Bad || !strings.Contains(a.Comment, "**Held by the rules of the base alone") ||
		!strings.Contains(a.Comment, "created Secret/cart/token") {
		t.Errorf("what the base holds: bad %t:\n%s", a.Bad, a.Comment)
	}
}

// TestPreviewerKnowsWhoHadIt: where two tenants' units want one object in the base, a preview knows which of
// them was released with it, as the daemon does.
func TestPreviewerKnowsWhoHadIt(t *testing.T) {
	r := newPreviewed(t)
	first := r.commit()
	r.write("services/rival/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: rival}\nspec: {tenant: rival}\n")
	r.write("services/rival/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: cart}\n")
	both := r.commit()
	r.write("services/cart/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: cart}\n")
	r.commit()

	ask := r.previewer()
	base, rival := preview.Base{Commit: both, Monorepo: "small", Since: first}, config.UnitPath("services/rival")
	for text, c := range map[string]struct {
		now    rollout.Now
		stands bool // what the change brings to the one that had it
	}{
		"as if both were released": {rollout.Now{}, false},
		"the rival was not":        {rollout.Now{Unreleased: []config.UnitPath{rival}}, true},
		"without the object":       {rollout.Now{Units: map[config.UnitPath]rollout.UnitNow{rival: blockedUnit(rival, first)}}, true},
	} {
		if a := ask(base, c.now); strings.Contains(a.Comment, "ConfigMap/cart/more") != c.stands {
			t.Errorf("%s:\n%s", text, a.Comment)
		}
	}
}

// blockedUnit is a unit that a commit does not release any more.
func blockedUnit(path config.UnitPath, released config.Commit) rollout.UnitNow {
	row := fmt.Sprintf(`{"path": %q, "rollout": {"id": 1, "commit": %q, "status": "done"}, "blocked": "a problem"}`, path, released)
	return rollout.UnitNow{State: []byte(row)}
}

// previewed is a monorepo of which previews are made.
type previewed struct {
	*testing.T
	dir string
}

func newPreviewed(t *testing.T) previewed {
	t.Helper()
	r := previewed{t, t.TempDir()}
	r.must(os.CopyFS(r.dir, os.DirFS("testdata/small/monorepo")))
	r.must(gittest.Init(r.dir))
	return r
}

func (r previewed) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r previewed) write(name, text string) {
	r.Helper()
	file := filepath.Join(r.dir, name)
	r.must(errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)))
}

func (r previewed) commit() config.Commit {
	r.Helper()
	hash, err := gittest.Commit(r.dir, "change")
	r.must(err)
	return config.Commit(hash)
}

// previewer asks for previews of the newest commit.
func (r previewed) previewer() func(preview.Base, rollout.Now) preview.Answer {
	settings := &config.Daemon{State: r.TempDir(), Guard: config.DefaultGuard, Repository: config.GitRepository{URL: r.dir, Branch: "main"}}
	src, err := source.Open(source.Config{URL: r.dir, Branch: "main"})
	r.must(err)
	r.Cleanup(func() { _ = src.Close() })
	p := &previewer{settings: settings, src: src, runner: &checker.Runner{}, compiler: &render.Compiler{}}
	return func(base preview.Base, now rollout.Now) preview.Answer {
		r.Helper()
		answer, err := p.answer(r.Context(), preview.Ask{Base: base, Branch: "main", Ref: "refs/heads/main", Now: now})
		if r.must(err); answer.Failed != "" {
			r.Fatal(answer.Failed)
		}
		return answer
	}
}
