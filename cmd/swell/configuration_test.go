// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

// TestReadAgain: a configuration that came through a pipe stays as it is.
func TestReadAgain(t *testing.T) {
	p := &process{file: configPath{in: ofProcess(), name: os.DevNull}, is: configuration{content: []byte("as it was")}}
	if content, err := p.readAgain(); string(content) != "as it was" || err != nil {
		t.Errorf("got %q, %v", content, err)
	}
}

// TestSettled: content counts when it is there twice, and is another one than was judged.
func TestSettled(t *testing.T) {
	w := configurationWatch{judged: []byte("a")}
	for _, step := range []struct {
		content string
		want    bool
	}{{"a", false}, {"a", false}, {"b", false}, {"bc", false}, {"bc", true}, {"bc", true}, {"a", false}, {"a", false}} {
		if got := w.settled([]byte(step.content)); got != step.want {
			t.Errorf("%q: settled %t, want %t", step.content, got, step.want)
		}
	}
}
