// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
)

// TestRepeatedDocument: an easy document that stood twice in a unit was
// collected twice, so that the collector's configuration had a key twice.
func TestRepeatedDocument(t *testing.T) {
	again := easySpec("Pipe", "cart", "{source: again}")
	var c Compiler
	s := snapshot(&c, with(richFiles(), map[string]string{"services/shop/cart/zz.yaml": again}))
	const want = "services/shop/cart/zz.yaml:1:1: Pipe cart: stands twice in this unit, first at services/shop/cart/pipe.yaml:1:1: give one of them another name"
	if cart := s.Units.Get("services/shop/cart"); cart.Problems.String() != want {
		t.Errorf("got %v, want %s", cart.Problems, want)
	}
	vector := s.Units.Get("services/platform/vector")
	if data := dataOf(t, s, vector.Path, "vector"); strings.Count(data, "services/shop/cart:cart=") != 1 || !strings.Contains(data, "cart:cart=cart") {
		t.Errorf("collected: %s, want the first one alone", data)
	}
	if len(vector.Notes) != 1 || !strings.Contains(vector.Notes[0].Message, "stands twice") {
		t.Errorf("notes: %v", vector.Notes)
	}
	if gather := s.Units.Get("services/shop/gather"); len(gather.Problems) != 1 {
		t.Errorf("what holds for an invalid document: %v, want one problem", gather.Problems)
	}
	moved := with(richFiles(), map[string]string{"services/pay/cart/zz.yaml": again})
	if s := snapshot(&c, moved); len(s.Problems) > 0 {
		t.Errorf("in another unit: %v", s.Problems)
	}
}

// TestRepeatedKey: documents of two units to which a collector gives the same name
// were both in its configuration, which then had a key twice.
func TestRepeatedKey(t *testing.T) {
	keyed := func(key string) map[string]string {
		change := map[string]string{"services/shop/other/x.yaml": easySpec("Pipe", "cart", "{source: again}")}
		for _, kind := range []string{"vector", "gather"} {
			file := "kinds/" + kind + "/kind.yaml"
			change[file] = strings.Replace(string(richFiles()[file].Data), "{kind: Pipe, ", "{kind: Pipe, key: "+key+", ", 1)
		}
		return change
	}
	var c Compiler
	s := snapshot(&c, with(richFiles(), keyed("item.metadata.name")))
	vector := s.Units.Get("services/platform/vector")
	if data := dataOf(t, s, vector.Path, "vector"); strings.Contains(data, "again") || !strings.Contains(data, "cart:cart=cart") {
		t.Errorf("collected: %s, want the first one alone", data)
	}
	const note = `services/shop/other/x.yaml:1:1: left out of pipes by services/platform/vector: Pipe cart at services/shop/other/x.yaml:1:1 has the key "cart" of Pipe cart at services/shop/cart/pipe.yaml:1:1: give one of them another name`
	if got := vector.Notes.String(); got != note {
		t.Errorf("notes: %s, want %s", got, note)
	}
	gather := s.Units.Get("services/shop/gather")
	if len(gather.Problems) != 1 || !strings.Contains(gather.Problems[0].Message, `collect pipes: Pipe cart at services/shop/other/x.yaml:1:1 has the key "cart" of Pipe cart at services/shop/cart/pipe.yaml:1:1`) {
		t.Errorf("what holds: %v, want one problem that names both", gather.Problems)
	}
	if s := snapshot(&c, with(richFiles(), keyed("item.unit.path + item.metadata.name"))); len(s.Problems) > 0 || len(s.Units.Get(vector.Path).Notes) > 0 {
		t.Errorf("with a key of its own: %v", s.Problems)
	}
	for key, want := range map[string]string{"item.spec": "want a string, got", "item.nme": "undefined field 'nme'", "self.metadata.nme": "undefined field"} {
		if got := snapshot(new(Compiler), with(richFiles(), keyed(key))).Problems.String(); !strings.Contains(got, "spec.collect.pipes.key: ") || !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
}

// TestKeyOfOneDocument: one document whose key could not be evaluated held the unit
// that collects it, and nothing said which document it was.
func TestKeyOfOneDocument(t *testing.T) {
	change := map[string]string{"services/shop/gather/own.yaml": easySpec("Pipe", "fine", "{source: fine}") + "---\n" + easySpec("Pipe", "other", "{source: other}")}
	for _, kind := range []string{"vector", "gather"} {
		file := "kinds/" + kind + "/kind.yaml"
		change[file] = strings.Replace(string(richFiles()[file].Data), "{kind: Pipe, ", "{kind: Pipe, key: item.unit.path + item.metadata.name + string(1 / (size(item.metadata.name) - 5)), ", 1)
	}
	s := snapshot(new(Compiler), with(richFiles(), change))
	vector := s.Units.Get("services/platform/vector")
	if len(vector.Problems) > 0 {
		t.Fatal(vector.Problems)
	}
	if data := dataOf(t, s, vector.Path, "vector"); strings.Contains(data, "other") || !strings.Contains(data, "cart:cart=cart") {
		t.Errorf("collected: %s, want all but one", data)
	}
	const why = "Pipe other at services/shop/gather/own.yaml:6:1: its key cannot be evaluated: \"item.unit.path + item.metadata.name + string(1 / (size(item.metadata.name) - 5))\": division by zero"
	if got := vector.Notes.String(); got != "services/shop/gather/own.yaml:6:1: left out of pipes by services/platform/vector: "+why {
		t.Errorf("notes: %s", got)
	}
	if got := s.Units.Get("services/shop/gather").Problems.String(); !strings.Contains(got, "collect pipes: "+why) {
		t.Errorf("what holds: %s, want the document named", got)
	}
}
