// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestOthersText(t *testing.T) {
	for want, c := range map[string]struct {
		counts  map[string]int
		unknown []string
	}{
		"nothing of others":                                       {},
		"4 objects of others: 3 Pod, 1 ConfigMap":                 {counts: map[string]int{"ConfigMap": 1, "Pod": 3}},
		"5 objects of others: 1 A, 1 B, 1 C, 1 D and 1 more kind": {counts: map[string]int{"E": 1, "D": 1, "C": 1, "B": 1, "A": 1}},
		"1 object of others: 1 Pod; it is not known what there is of metrics.k8s": {
			counts: map[string]int{"Pod": 1}, unknown: []string{"metrics.k8s"},
		},
	} {
		if got := othersText(c.counts, c.unknown); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
