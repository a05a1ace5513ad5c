// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ClockTick is what /proc counts CPU time in, on every platform of Linux that
// Go knows.
const ClockTick = time.Second / 100

// ServerCPU is the time that the components of that name of running clusters have
// used since they started, in all clusters. dir is theirs. ok is false where
// there is no /proc.
func ServerCPU(t testing.TB, dir, component string) (used time.Duration, ok bool) {
	t.Helper()
	pids, err := os.Open(filepath.Join(dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	defer pids.Close()
	found := false
	for lines := bufio.NewScanner(pids); lines.Scan(); {
		pid, name, _ := strings.Cut(lines.Text(), " ")
		if !strings.Contains(name, component) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if errors.Is(err, os.ErrNotExist) {
			return 0, false
		}
		if err != nil {
			t.Fatal(err)
		}
		found = true
		// The name in brackets may hold anything; the fields after it are numbered from 3.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		for _, field := range fields[14-3 : 16-3] { // utime and stime
			n, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			used += time.Duration(n) * ClockTick
		}
	}
	if !found {
		t.Fatalf("no %s among the pids", component)
	}
	return used, true
}
