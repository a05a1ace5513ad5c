// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/store"
)

// TestStatusShowsTroubles, also where no unit was ever released because of them.
func TestStatusShowsTroubles(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		return tx.SetConditions([]store.Condition{
			{About: store.AboutConfiguration, Since: at, Text: `cluster "vla1": the fleet has no cluster of this name`},
			{About: "commit 1234567", Since: at, Text: "not taken: fleet/a.yaml:1:1: spec: missing"},
			{About: "git", Since: at, Text: "git: no route to host"},
			{About: "unit services/late", Since: at, Text: "not released yet: services/late/a.yaml:1:1: spec: missing"},
		})
	})
	file := filepath.Join(dir, "daemon.yaml")
	if err := errors.Join(err, s.Close(), os.WriteFile(file, []byte("apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: x}\nspec: {repository: {url: x}}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string]string{
		"table services/late": "unit services/late: not released yet: services/late/a.yaml:1:1: spec: missing (since 2026-03-01T12:00:00Z)\n",
		"table":               "commit 1234567: not taken: fleet/a.yaml:1:1: spec: missing (since 2026-03-01T12:00:00Z)\nconfiguration: cluster \"vla1\": the fleet has no cluster of this name (since 2026-03-01T12:00:00Z)\ngit: no route to host (since 2026-03-01T12:00:00Z)\n",
		"json":                `"text": "git: no route to host"`,
	} {
		var out bytes.Buffer
		cmd := statusCommand(ofProcess())
		cmd.SetArgs(append([]string{"-c", file, "-o"}, strings.Fields(output)...))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		var code exit
		if err := cmd.Execute(); !errors.As(err, &code) || code != exitProblems {
			t.Errorf("%s: %v", output, err)
		}
		if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "the daemon is not running") {
			t.Errorf("%s: got %s, want %s in it", output, out.String(), want)
		}
	}
	if s, err = store.Open(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out bytes.Buffer
	cmd := statusCommand(ofProcess())
	cmd.SetArgs([]string{"-c", file, "-o", "json"})
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	if err := cmd.Execute(); err == nil || strings.Contains(out.String(), "not running") || !strings.Contains(out.String(), `"running": true`) {
		t.Errorf("while a daemon runs: %v, %s", err, out.String())
	}
}

// TestConfigurationAilsNobody: what the daemon's configuration has too much is told
// of, and is no reason to call the fleet unwell.
func TestConfigurationAilsNobody(t *testing.T) {
	f := serve.Fleet{Conditions: []store.Condition{{About: store.AboutConfiguration, Text: "x"}}}
	var out bytes.Buffer
	if err := writeFleet(&out, &f); err != nil || ails(&f) || !strings.HasPrefix(out.String(), "configuration: x (since ") {
		t.Errorf("ails: %t, %v, %s", ails(&f), err, &out)
	}
	if f.Conditions = append(f.Conditions, store.Condition{About: "git"}); !ails(&f) {
		t.Error("trouble with Git ails nobody")
	}
}
