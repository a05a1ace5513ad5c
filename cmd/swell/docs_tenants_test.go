// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// TestDocumentedTenantsHold attacks each Tenant that the docs show, as somebody who writes the units of
// its tenant: the one of docs/tenants.md once let itself be made administrator of the cluster.
func TestDocumentedTenantsHold(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(readFile(t, "testdata/attacks.txtar")))
	tenants := 0
	for _, p := range docsPages(t) {
		if p.name != "docs/tenants.md" && p.name != "docs/reference/tenant.md" {
			continue
		}
		for _, b := range p.blocks {
			if text := strings.Join(b.lines, "\n"); b.language == "yaml" && strings.Contains(text, "\nkind: Tenant\n") {
				tenants++
				t.Run(p.name, func(t *testing.T) { attack(t, archive, text) })
			}
		}
	}
	if tenants != 2 {
		t.Errorf("%d Tenants in the docs, want 2", tenants)
	}
}

// attackWants are the first line of an attack: how it is refused.
var attackWants = regexp.MustCompile(`^# refused: (.+)\n`)

// attack renders the files of the archive with the documents of a tenant. Each unit of the tenant is
// refused as its first line says; the one without such a line is not.
func attack(t *testing.T, archive *txtar.Archive, tenant string) {
	files := fstest.MapFS{"fleet/documented.yaml": {Data: []byte(tenant + "\n")}}
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	var compiler render.Compiler
	s := compiler.Snapshot("", config.Files(files))
	if s.Held {
		t.Fatal(s.Problems)
	}
	attacks := 0
	for _, f := range archive.Files {
		folder, isUnit := strings.CutSuffix(f.Name, "/x.yaml")
		if !isUnit {
			continue
		}
		said := s.Units.Get(config.UnitPath(folder)).Problems.String()
		want := attackWants.FindSubmatch(f.Data)
		switch {
		case want == nil && said != "":
			t.Errorf("%s: not expected: %s", folder, said)
		case want == nil:
		default:
			if attacks++; !regexp.MustCompile(string(want[1])).MatchString(said) {
				t.Errorf("%s: want a problem like %s, got %q", folder, want[1], said)
			}
		}
	}
	if attacks < 10 {
		t.Errorf("%d attacks", attacks)
	}
}
