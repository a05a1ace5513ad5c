// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commit := func() config.Commit {
		t.Helper()
		hash, err := gittest.Commit(dir, "change")
		if err != nil {
			t.Fatal(err)
		}
		return config.Commit(hash)
	}
	if err := os.CopyFS(dir, os.DirFS("testdata/small/monorepo")); err != nil {
		t.Fatal(err)
	}
	if err := gittest.Init(dir); err != nil {
		t.Fatal(err)
	}
	good := commit()
	write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: small}\nspec: {checks: {plainSecrets: pass}}\n")
	write("services/token/token.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: cart}\n"+
		"stringData: {token: abcdefgh}\n")
	loose := commit() // and is held by the rules of good
	write("services/more/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: cart}\n")
	commit()

	repository := config.GitRepository{URL: dir, Branch: "main"}
	settings := &config.Daemon{State: t.TempDir(), Guard: config.DefaultGuard, Repository: repository}
	src, err := source.Open(source.Config{URL: dir, Branch: "main"})
	if err != nil {
		t.Fatal(err)
	}
	p := &previewer{settings: settings, src: src, runner: &checker.Runner{}, compiler: &render.Compiler{}}
	defer src.Close()
	ask := func(base preview.Base, now rollout.Now) preview.Answer {
		t.Helper()
		answer, err := p.answer(t.Context(), preview.Ask{Base: base, Branch: "main", Ref: "refs/heads/main", Now: now})
		if err != nil || answer.Failed != "" {
			t.Fatal(answer.Failed, err)
		}
		return answer
	}
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
