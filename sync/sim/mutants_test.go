// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// mutant is a patch that breaks one rule of the product. The first line says which.
type mutant struct{ name, text, patch string }

const (
	// mutantSeeds is within how many histories a mutant has to be found.
	mutantSeeds = 200
	// mutantTime is for a mutant that hangs. On a machine under load, all histories of
	// one that is found late take minutes.
	mutantTime = 15 * time.Minute
)

// TestMutants: the judge finds each broken rule. The short form tries two of them, and
// that the patches of all fit the code; SWELL_MUTANTS=all tries every one, or those whose
// names it gives.
func TestMutants(t *testing.T) {
	if os.Getenv("SWELL_SIM_MUTANT") != "" {
		t.Log("this is a mutant itself")
		return
	}
	files, err := filepath.Glob("testdata/mutants/*.patch")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d mutants, %v", len(files), err)
	}
	chosen := []string{"uid", "wave-gate"}
	if text := os.Getenv("SWELL_MUTANTS"); text != "" {
		chosen = strings.Split(text, ",")
	}
	var table strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := mutant{name: strings.TrimSuffix(filepath.Base(file), ".patch")}
		m.text, m.patch, _ = strings.Cut(string(text), "\n")
		if _, err := m.overlay(t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if !slices.Contains(chosen, m.name) && !slices.Contains(chosen, "all") {
			continue
		}
		began := time.Now()
		found, err := m.hunt(t)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			found = "NOT FOUND"
		}
		fmt.Fprintf(&table, "%-24s %-70s %s (%s)\n", m.name, m.text, found, time.Since(began).Round(time.Second))
		t.Logf("%s: %s", m.name, found)
	}
	t.Logf("\n%s", table.String())
}

// hunt builds the simulator with the mutant, and plays until the judge objects.
func (m *mutant) hunt(t *testing.T) (string, error) {
	dir := t.TempDir()
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "mutant.test")
	if out, err := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not build: %s", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), mutantTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run", "TestHunt$", "-test.v")
	cmd.Env = append(os.Environ(), "SWELL_SIM_MUTANT=1")
	out, _ := cmd.CombinedOutput() // it fails when it finds something, or panics
	for line := range strings.Lines(string(out)) {
		if _, found, ok := strings.Cut(line, "FOUND "); ok {
			return strings.TrimSpace(found), nil
		}
	}
	return "", fmt.Errorf("not found:\n%.2000s", out)
}

// TestHunt plays histories until the judge objects. It is for mutants.
func TestHunt(t *testing.T) {
	if os.Getenv("SWELL_SIM_MUTANT") == "" {
		return
	}
	for seed := range uint64(mutantSeeds) {
		if w := run(t, seed, choices(seed, usualSteps), newStats()); w.judge.objection != nil {
			fmt.Printf("FOUND by %q at seed %d\n", w.judge.objection.rule, seed)
			return
		}
	}
}

// overlay writes the patched files, and which files of the module they stand for.
func (m *mutant) overlay(dir string) (string, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for i, part := range strings.Split(m.patch, "--- a/")[1:] {
		name, hunks, _ := strings.Cut(part, "\n")
		original := filepath.Join(root, name)
		content, err := os.ReadFile(original)
		if err != nil {
			return "", err
		}
		patched, err := applyHunks(string(content), hunks)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		replace[original] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replace[original], []byte(patched), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// applyHunks applies the hunks of a patch to a file. Where they belong is found by their
// text, not by the numbers of lines.
func applyHunks(content, hunks string) (string, error) {
	for _, hunk := range strings.Split(hunks, "\n@@ ")[1:] {
		_, lines, _ := strings.Cut(hunk, "\n")
		var before, after strings.Builder
		for line := range strings.Lines(lines) {
			switch {
			case strings.HasPrefix(line, "-"):
				before.WriteString(line[1:])
			case strings.HasPrefix(line, "+"):
				after.WriteString(line[1:])
			default:
				before.WriteString(line[min(1, len(line)-1):])
				after.WriteString(line[min(1, len(line)-1):])
			}
		}
		if strings.Count(content, before.String()) != 1 {
			return "", errors.New("the patch does not apply: has the code changed? adapt the mutant")
		}
		content = strings.Replace(content, before.String(), after.String(), 1)
	}
	return content, nil
}
