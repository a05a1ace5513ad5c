// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Go keeps compiled packages, but no test binaries: it would link all of them again in each run,
// which takes some seconds of CPU each. The runner keeps the last one of each package and variant
// in the cache of tools, and takes it where none of the packages in it has changed. Whoever runs
// a kept binary runs all of its tests: results are not kept.

// keptDir is the folder of kept binaries, in the cache of tools; runPrefix begins the names of folders
// that belong to one run, with links to binaries or with temporary files.
const (
	keptDir   = "tests"
	runPrefix = "swell-run-"
)

// keyOf changes with the linker's flags and with each package that is linked into a test binary.
func keyOf(buildIDs map[string]string, main string, deps []string) string {
	sum := sha256.New()
	fmt.Fprintln(sum, linkerFlags)
	for _, pkg := range append([]string{main}, deps...) {
		fmt.Fprintln(sum, pkg, buildIDs[pkg])
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// listing has go list print each package with its build ID, which is of its sources, of the
// files that it embeds and of the compiler; and the folder and all packages of a test binary.
const listing = "{{.ImportPath}}\t{{.BuildID}}{{if eq .Name \"main\"}}\t{{.Dir}}\t{{join .Deps \"\\t\"}}{{end}}"

// parseKeys reads what go list prints by listing. The keys are by the folders of the packages tested.
func parseKeys(listed string) map[string]string {
	buildIDs := map[string]string{}
	var mains [][]string
	for line := range strings.Lines(listed) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) < 2 {
			continue
		}
		buildIDs[fields[0]] = fields[1]
		if len(fields) > 3 && strings.HasSuffix(fields[0], ".test") {
			mains = append(mains, fields)
		}
	}
	keys := map[string]string{}
	for _, fields := range mains {
		keys[fields[2]] = keyOf(buildIDs, fields[0], fields[3:])
	}
	return keys
}

// keptFile is where the binary of an entry is kept with a key. Of each entry there is one.
func keptFile(cache string, e *entry, key string) string {
	return filepath.Join(cache, strings.TrimSuffix(filepath.Base(logFile(e)), ".log")+"-"+key)
}

// takeKept links the kept binaries of the batch's entries into a folder. It returns the entries
// that have none, the keys, and the CPU time of finding them. Without a key, a binary is built: what
// is wrong with its package is said then.
func (b *batch) takeKept(ctx context.Context, cache, dir string) (rest []*entry, keys map[*entry]string, cost time.Duration) {
	// Without a stamp of the commit, as test binaries have none.
	args := []string{"-buildvcs=false", "-export", "-deps", "-test", "-f", listing}
	for _, e := range b.entries {
		args = append(args, b.argument(e))
	}
	cmd := b.command(ctx, "list", args...)
	listed, err := cmd.Output()
	if err != nil {
		listed = nil // with a part of the build IDs, keys would tell too little
	}
	byFolder := parseKeys(string(listed))
	keys = map[*entry]string{}
	for _, e := range b.entries {
		folder, _ := filepath.Abs(e.pkg)
		keys[e] = byFolder[folder]
		if keys[e] == "" || os.Link(keptFile(cache, e, keys[e]), binary(dir, e)) != nil {
			rest = append(rest, e)
		}
	}
	return rest, keys, spent(cmd)
}

// keep keeps binaries that were just built in place of the older ones of their entries.
func keep(cache, dir string, entries []*entry, keys map[*entry]string) error {
	for _, e := range entries {
		if keys[e] == "" {
			continue // go list failed where go test did not
		}
		older, err := filepath.Glob(keptFile(cache, e, "????????????????"))
		if err != nil {
			return err
		}
		for _, file := range older {
			if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) { // another run may do so too
				return err
			}
		}
		if err := os.Link(binary(dir, e), keptFile(cache, e, keys[e])); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// cacheOfTests is the folder of kept binaries.
func cacheOfTests() (string, error) {
	tools, err := toolCache()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(tools, keptDir)
	return dir, errors.Join(forgetRuns(dir), os.MkdirAll(dir, 0o755))
}

// forgetRuns removes from a folder the folders of runs that were killed a day ago or earlier.
func forgetRuns(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, runPrefix+"*"))
	for _, run := range left {
		if info, err := os.Stat(run); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(run) // another run may do so too
		}
	}
	return err
}
