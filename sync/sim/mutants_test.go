// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mutant is a patch that breaks one rule of the product. The first line says which.
type mutant struct {
	name, text string
	patched    map[string]string // by path in the module: the file's source with the rule broken
	sum        string            // of all that it depends on whether it is found, see [mutant.hash]
}

// foundFile has a line for each mutant: its name, the seed of a history that finds it, and
// the [mutant.hash] of what that depended on. Only make mutants writes it.
const foundFile = "testdata/mutants/found.txt"

// found is what is known of a mutant.
type found struct {
	seed uint64
	sum  string
}

const (
	// mutantSeeds is within how many histories a mutant has to be found.
	mutantSeeds = 200
	// mutantTime is for a mutant that hangs. On a machine under load, all histories of
	// one that is found late take minutes.
	mutantTime = 15 * time.Minute
)

// TestMutants: the judge finds each broken rule. That was shown when foundFile was written;
// what has changed since, of the rule or of those who judge it, is shown again, with the
// seed that is kept first. SWELL_MUTANTS=changed (make mutants) does the same and writes
// foundFile; SWELL_MUTANTS=all does it with every one, and with names with commas between
// them, with these.
func TestMutants(t *testing.T) {
	if os.Getenv("SWELL_SIM_MUTANT") != "" {
		t.Log("this is a mutant itself")
		return
	}
	files, err := filepath.Glob("testdata/mutants/*.patch")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d mutants, %v", len(files), err)
	}
	chosen, kept := os.Getenv("SWELL_MUTANTS"), readFound(t)
	var mutants []*mutant
	for _, file := range files {
		m, err := readMutant(file)
		if err != nil {
			t.Fatal(err)
		}
		if kept[m.name].sum != m.sum || chosen == "all" || slices.Contains(strings.Split(chosen, ","), m.name) {
			mutants = append(mutants, m)
		}
	}
	if len(mutants) == 0 {
		return
	}
	binary := build(t, mutants)
	for _, m := range mutants {
		seed, text, err := hunt(t.Context(), binary, m.name, kept[m.name].seed)
		if err != nil {
			t.Errorf("%s: %s: no history finds it: %v\nmend the judge or the mutant, then make mutants", m.name, m.text, err)
			continue
		}
		t.Logf("%s: %s: %s", m.name, m.text, text)
		if kept[m.name] = (found{seed, m.sum}); chosen != "" {
			writeFound(t, kept)
		}
	}
	if chosen == "" {
		t.Logf("%d mutants are found as before: make mutants notes it in %s", len(mutants), foundFile)
	}
}

// root is the module's folder.
const root = "../.."

func readMutant(file string) (*mutant, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m := &mutant{name: strings.TrimSuffix(filepath.Base(file), ".patch"), patched: map[string]string{}}
	text, patch, _ := strings.Cut(string(content), "\n")
	m.text = text
	for _, part := range strings.Split(patch, "--- a/")[1:] {
		name, hunks, _ := strings.Cut(part, "\n")
		original, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		if m.patched[name], err = applyHunks(string(original), hunks); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", m.name, name, err)
		}
	}
	m.sum, err = m.hash()
	return m, err
}

func readFound(t *testing.T) map[string]found {
	t.Helper()
	content, err := os.ReadFile(foundFile)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]found{}
	for line := range strings.Lines(string(content)) {
		var name string
		var f found
		if strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := fmt.Sscan(line, &name, &f.seed, &f.sum); err != nil {
			t.Fatalf("%s: %q: %v", foundFile, line, err)
		}
		all[name] = f
	}
	return all
}

func writeFound(t *testing.T, all map[string]found) {
	t.Helper()
	text := "# Made by make mutants: each mutant, a seed that finds it, and the sum of what that depended on.\n"
	for _, name := range sorted(all) {
		text += fmt.Sprintf("%s %d %s\n", name, all[name].seed, all[name].sum)
	}
	if err := os.WriteFile(foundFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// judging are the files that decide what a seed plays and what the judge sees of it: the
// world and the judge, the clusters, and the form of the state that the judge reads.
var judging = []string{"*.go", "../simulator/*.go", "../rollout/state.go", "../store/store.go"}

// hash is the sum of what it depends on that the mutant is found: the files that it
// breaks, as they are and broken, and those of [judging].
func (m *mutant) hash() (string, error) {
	hash := sha256.New()
	patterns := slices.Clone(judging)
	for _, name := range sorted(m.patched) {
		fmt.Fprintf(hash, "%s %d\n%s", name, len(m.patched[name]), m.patched[name])
		patterns = append(patterns, filepath.Join(root, name))
	}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			return "", fmt.Errorf("%s: %d files, %w", pattern, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(file), len(content), content)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// build builds the simulator once with all mutants, each asleep until SWELL_SIM_MUTANT
// names it.
func build(t *testing.T, mutants []*mutant) (binary string) {
	t.Helper()
	dir := t.TempDir()
	overlay, err := overlayOf(dir, mutants)
	if err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "mutants.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("the mutants do not build: %s", out)
	}
	return binary
}

// hunt plays with a mutant, the given seed first, until the judge objects. It returns the
// seed that the judge objected at.
func hunt(ctx context.Context, binary, name string, first uint64) (seed uint64, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, mutantTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run", "TestHunt$", "-test.v")
	cmd.Env = append(os.Environ(), "SWELL_SIM_MUTANT="+name, fmt.Sprintf("SWELL_SIM_SEED=%d", first))
	out, _ := cmd.CombinedOutput() // it fails when it finds something, or panics
	for line := range strings.Lines(string(out)) {
		if _, after, ok := strings.Cut(line, "FOUND "); ok {
			at, text, _ := strings.Cut(strings.TrimSpace(after), " ")
			seed, err := strconv.ParseUint(at, 10, 64)
			return seed, "seed " + at + " " + text, err
		}
	}
	return 0, "", fmt.Errorf("%d histories:\n%.2000s", mutantSeeds, out)
}

// TestHunt plays histories until the judge objects, that of the kept seed first and then those
// after it. It is for mutants.
func TestHunt(t *testing.T) {
	if os.Getenv("SWELL_SIM_MUTANT") == "" {
		return
	}
	first := uint64(number(t, "SWELL_SIM_SEED", 0))
	for n := range uint64(mutantSeeds) {
		seed := first + n
		if w := run(t, seed, choices(seed, usualSteps), newStats()); w.judge.objection != nil {
			fmt.Printf("FOUND %d by %q\n", seed, w.judge.objection.rule)
			return
		}
	}
}
