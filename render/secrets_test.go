// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/cache"
)

// TestPlainSecretsTreatment: the policy holds from the commit that changes it on, with
// results in the cache from before; and no text has the value.
func TestPlainSecretsTreatment(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
	files["services/a/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec: {tenant: a, placement: {topology: cluster, match: {labels: {region: sas}}}}\n")}
	files["services/a/db/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: a}\nstringData: {password: hunter2-is-it}\n")}
	kept := cache.Memory()
	incremental := &Compiler{Cache: kept}
	for _, policy := range []string{"", "refuse", "pass", "warn", "refuse", "warn", "pass", ""} {
		if files["swell.yaml"] = (&fstest.MapFile{Data: []byte(strings.Replace(plainSecretsPass, "pass", policy, 1))}); policy == "" {
			files["swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\n")}
		}
		for _, c := range []*Compiler{incremental, {Cache: kept}, {}} {
			s := c.Snapshot("", config.Files(files))
			unit := s.Units.Get("services/a/db")
			problems, notes := unit.Problems.String(), unit.Notes.String()
			if got, want := strings.Contains(problems, "password: a value that everybody"), policy == "" || policy == "refuse"; got != want {
				t.Errorf("policy %q: refused %t, want %t: %s", policy, got, want, problems)
			}
			if got, want := strings.Contains(notes, "password: a value that everybody"), policy == "warn"; got != want {
				t.Errorf("policy %q: warned %t, want %t: %s", policy, got, want, notes)
			}
			if got, want := len(unit.Placements) > 0 && unit.Placements[0].Digest != "", policy == "warn" || policy == "pass"; got != want {
				t.Errorf("policy %q: rendered %t, want %t", policy, got, want)
			}
			if strings.Contains(problems+notes, "hunter2") {
				t.Errorf("policy %q: the value is told", policy)
			}
		}
	}
}

// TestPlainSecretsReleased: what was released before plain Secrets were refused comes back
// as it was, also when the refusal is in the cache.
func TestPlainSecretsReleased(t *testing.T) {
	files := exampleFiles(t, "fleet", "kinds/runtime", "kinds/space")
	files["services/a/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec: {tenant: a, placement: {topology: cluster, match: {labels: {region: sas}}}}\n")}
	files["services/a/db/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: a}\nstringData: {password: hunter2-is-it}\n")}
	render := func(policy string, kept *cache.Cache) *Unit {
		files["swell.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(plainSecretsPass, "pass", policy, 1))}
		c := Compiler{Cache: kept}
		return c.Snapshot("", config.Files(files)).Units.Get("services/a/db")
	}
	on := render("pass", cache.Memory()).Placements[0]
	kept := cache.Memory()
	if unit := render("refuse", kept); len(unit.Problems) == 0 {
		t.Fatal("it is not refused")
	}
	commit, err := NewCommit(config.Files(files), kept, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := commit.Bundle("services/a/db", on.Target.Name, on.Digest); err != nil || b.Digest != on.Digest {
		t.Errorf("it does not come back: %v", err)
	}
}
