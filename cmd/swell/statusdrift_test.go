// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// TestStatusShowsDrift of units whose rollouts are done: what runs is not what
// Git says, whoever is to put it right.
func TestStatusShowsDrift(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	unit := &rollout.Unit{Path: "services/cart", Rollout: &rollout.Rollout{ID: 1, Status: rollout.Done},
		Targets: map[config.TargetName]*rollout.Target{"sas-1/a": {}, "sas-1/b": {}}}
	row, err := json.Marshal(unit)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	obj := func(target config.TargetName, name string) store.Object {
		return store.Object{Unit: unit.Path, Target: target, ID: object.ID{Kind: "ConfigMap", Namespace: "shop", Name: name}}
	}
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.PutUnit(unit.Path, row), tx.PutDrifts([]store.Drift{
			{Object: obj("sas-1/a", "one"), Mode: "report", Found: at, Changes: []store.Change{{Field: ".data.a", Manager: "vim", Operation: "Update", Time: at}}},
			{Object: obj("sas-1/a", "two"), Mode: "report", Found: at, Missing: true},
			{Object: obj("sas-1/b", "one"), Mode: "fight", Found: at, Changes: []store.Change{{Field: ".data.a", Manager: "rogue"}}},
		}))
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "daemon.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: x}\nspec: {repository: {url: x}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		output string
		want   []string
	}{
		{"table", []string{"fight", "0/2", "target sas-1/a: ConfigMap/shop/one: .data.a: vim (Update, 2026-03-01T12:00:00Z) (and 2 more)"}},
		{"wide", []string{"drifted", "  ConfigMap/shop/one: .data.a: vim (Update, 2026-03-01T12:00:00Z) (and 1 more)\n", "  ConfigMap/shop/one: fight with rogue over .data.a\n"}},
		{"json", []string{`"mode": "report"`, `"missing": true`, `"object": "ConfigMap/shop/two"`, `"field": ".data.a"`, `"path": "services/cart"`, `"status": "fight"`, `"ready": 0`}},
	} {
		var out bytes.Buffer
		cmd := statusCommand(ofProcess())
		cmd.SetArgs([]string{"-c", file, "-o", c.output})
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		var code exit
		if err := cmd.Execute(); !errors.As(err, &code) || code != exitProblems {
			t.Errorf("%s: %v, want exit code %d", c.output, err, exitProblems)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: got %s, want %s in it", c.output, out.String(), want)
			}
		}
	}
}

// TestStatusOfAnIllUnit: a unit whose release is done and that got ill afterwards is degraded, in
// the word and in the exit code; one that is less available for a moment is done.
func TestStatusOfAnIllUnit(t *testing.T) {
	const target = config.TargetName("sas-1/a")
	for trouble, want := range map[rollout.Trouble]struct {
		text string
		code exit
	}{
		rollout.TroubleFailed: {"services/cart degraded - 11111111 0/1 target sas-1/a: 0 of 1 replicas available", exitProblems},
		rollout.NoTrouble:     {"services/cart done - 11111111 1/1 target sas-1/a: 0 of 1 replicas available", 0},
	} {
		dir := t.TempDir()
		s, err := store.Open(filepath.Join(dir, "state"))
		if err != nil {
			t.Fatal(err)
		}
		onTarget := &rollout.Target{Wanted: "d1", Applied: "d1", Good: "d1", Trouble: trouble, Health: rollout.HealthProgressing,
			CheckedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Reason: "0 of 1 replicas available"}
		unit := &rollout.Unit{Path: "services/cart", Rollout: &rollout.Rollout{ID: 1, Status: rollout.Done},
			Commits: map[object.Digest]config.Commit{"d1": "1111111111"}, Targets: map[config.TargetName]*rollout.Target{target: onTarget}}
		row, err := json.Marshal(unit)
		err = errors.Join(err, s.Update(t.Context(), func(tx *store.Tx) error { return tx.PutUnit(unit.Path, row) }), s.Close())
		file := filepath.Join(dir, "daemon.yaml")
		text := "apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: x}\nspec: {repository: {url: x}}\n"
		if err := errors.Join(err, os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		cmd := statusCommand(ofProcess())
		cmd.SetArgs([]string{"-c", file})
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		cmd.SilenceUsage = true
		var code exit
		if err := cmd.Execute(); err != nil && !errors.As(err, &code) {
			t.Fatal(err)
		}
		_, row, _ = bytes.Cut(out.Bytes(), []byte("\n"))
		if got := strings.Join(strings.Fields(string(row)), " "); code != want.code || got != want.text {
			t.Errorf("exit code %d, want %d; got %q, want %q", code, want.code, got, want.text)
		}
	}
}
