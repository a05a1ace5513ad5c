// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config/bounds"

	"github.com/swell-sh/swell/config/document"
)

// TestHealthRule: what is read, with the place of each expression; one that is
// too long is not compiled by anybody.
func TestHealthRule(t *testing.T) {
	load := func(healthy string) *Repository {
		return Load(Files(fstest.MapFS{
			"swell.yaml":     &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: {}\n")},
			"services/.keep": &fstest.MapFile{},
			"fleet/all.yaml": &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {}\n---\n" +
				"apiVersion: swell.sh/v1\nkind: HealthRule\nmetadata: {name: thing}\nspec:\n  match: {group: example.com, kind: Thing}\n  reason: |-\n    'x'\n  healthy: " + healthy + "\n")},
		}), nil)
	}
	r := load("object.ready")
	if len(r.Problems) > 0 || len(r.HealthRules) != 1 {
		t.Fatal(r.Problems, r.HealthRules)
	}
	at := func(line, column int) document.Position {
		return document.Position{File: "fleet/all.yaml", Line: line, Column: column}
	}
	want := HealthRule{Position: at(6, 1), Name: "thing", Group: "example.com", Kind: "Thing", KindAt: at(10, 37),
		Healthy: Expression{"object.ready", at(13, 12)}, Reason: Expression{"'x'", at(11, 11)}}
	if got := *r.HealthRules[0]; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}

	r = load("'" + strings.Repeat(" ", bounds.Rule) + "x'")
	if got := r.Problems.String(); got != "fleet/all.yaml:13:12: spec.healthy: want an expression of at most 4096 bytes, got 4097" {
		t.Error(got)
	}
	if len(r.HealthRules) != 1 || r.HealthRules[0].Healthy.Text != "" {
		t.Error("it would be compiled")
	}
}
