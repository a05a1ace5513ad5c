// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
)

// stats count what was reached in all histories of a run.
type stats struct {
	now        tally
	faults     map[string]int
	situations map[string]int
}

type tally struct{ histories, steps, processes, writes int }

func newStats() *stats { return &stats{faults: map[string]int{}, situations: map[string]int{}} }

func (s *stats) fault(name string)     { s.faults[name]++ }
func (s *stats) situation(name string) { s.situations[name]++ }

func (s *stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d histories, %d steps, %d processes, %d writes\n", s.now.histories, s.now.steps, s.now.processes, s.now.writes)
	for _, table := range []struct {
		name string
		of   map[string]int
	}{{"faults", s.faults}, {"situations", s.situations}} {
		fmt.Fprintf(&b, "%s:\n", table.name)
		for _, name := range sorted(table.of) {
			fmt.Fprintf(&b, "  %7d  %s\n", table.of[name], name)
		}
	}
	return b.String()
}
