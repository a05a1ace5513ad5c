// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// fill gives every field that is stored a value of its own, however deep.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 3, 1, 12, 0, *n, 0, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("v%d", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	default:
		panic("no value for a " + v.Type().String())
	}
}

// TestStoredFormat holds the names of everything in a row against
// testdata/unit.json. Rows outlive the version of swell that wrote them, so a
// name must not change nor go away: a rollout would go on without its soak. A
// line that is only new is to be added to the file.
func TestStoredFormat(t *testing.T) {
	u, n := &Unit{}, 0
	fill(reflect.ValueOf(u).Elem(), &n)
	got, err := json.MarshalIndent(u, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/unit.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(bytes.TrimSpace(want)), string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	read := &Unit{}
	decoder := json.NewDecoder(bytes.NewReader(want))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(u, read, cmpopts.IgnoreUnexported(Unit{}, Target{})); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

// TestOldPast: a row up to schema 12 has the digests alone.
func TestOldPast(t *testing.T) {
	var read Target
	if err := json.Unmarshal([]byte(`{"ran": ["2", "1"]}`), &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Past{{Digest: "2"}, {Digest: "1"}}, read.Ran); diff != "" {
		t.Error(diff)
	}
}

func TestBackoff(t *testing.T) {
	var pauses []time.Duration
	for attempt := 1; attempt <= 9; attempt++ {
		pause := backoff("shop/cart", "sas-1/rz00a", attempt)
		if pause != backoff("shop/cart", "sas-1/rz00a", attempt) {
			t.Errorf("attempt %d: not the same twice", attempt)
		}
		base := min(minBackoff<<(attempt-1), maxBackoff)
		if pause < base || pause > base*5/4 || pause > maxBackoff {
			t.Errorf("attempt %d: %s, want %s and a quarter at most", attempt, pause, base)
		}
		pauses = append(pauses, pause)
	}
	if other := backoff("shop/cart", "sas-1/rz01a", 1); other == pauses[0] {
		t.Errorf("two targets are tried again at the same time, after %s", other)
	}
}

// BenchmarkDecideSettled is a pass over 100,000 units on 4 targets each, of
// which one has a new release.
func BenchmarkDecideSettled(b *testing.B) {
	spec := &config.Rollout{Name: "default", Waves: []config.Wave{{Name: "all"}}}
	want := &Wanted{Commit: "c1", Units: map[config.UnitPath]*WantedUnit{}}
	make1 := func(path config.UnitPath, content string) *WantedUnit {
		u := &WantedUnit{Rollout: spec, Targets: map[config.TargetName]WantedTarget{}}
		for i := range 4 {
			name := config.TargetName(fmt.Sprintf("cluster-%d/a", i))
			u.Targets[name] = WantedTarget{Digest: object.Digest(fmt.Sprintf("%s %s %s", path, name, content))}
		}
		return u
	}
	for i := range 100_000 {
		path := config.UnitPath(fmt.Sprintf("services/team-%d/unit-%d", i/100, i))
		want.Units[path] = make1(path, "0")
	}
	var s State
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	settle := func() int {
		n := 0
		for plan := s.Decide(want, now); len(plan.Actions) > 0; plan = s.Decide(want, now) {
			for _, a := range plan.Actions {
				s.Record(success(a), now)
			}
			n += len(plan.Actions)
		}
		s.Stored()
		return n
	}
	settle()
	release := 0
	for b.Loop() {
		release++
		path := config.UnitPath("services/team-0/unit-0")
		want.Units[path] = make1(path, fmt.Sprint(release))
		if plan := s.Decide(want, now); len(plan.Actions) != 4 {
			b.Fatalf("%d actions", len(plan.Actions))
		}
	}
}

// TestInForce: what a unit is to have on a target, and what it has until then, but
// not what is being taken back.
func TestInForce(t *testing.T) {
	for _, c := range []struct {
		status          Status
		wanted, applied object.Digest
		want            []object.Digest
	}{
		{Done, "new", "new", []object.Digest{"new"}},
		{Progressing, "new", "", []object.Digest{"new"}},
		{Progressing, "new", "old", []object.Digest{"new", "old"}},
		{Held, "new", "old", []object.Digest{"new", "old"}},
		{RollingBack, "old", "new", []object.Digest{"old"}},
		{RolledBack, "old", "old", []object.Digest{"old"}},
		{Progressing, "", "old", nil},
	} {
		u := &Unit{Rollout: &Rollout{Status: c.status}, Targets: map[config.TargetName]*Target{"dev/a": {Wanted: c.wanted, Applied: c.applied}}}
		if got := u.InForce("dev/a"); !slices.Equal(got, c.want) {
			t.Errorf("%s, wanted %q, applied %q: got %q, want %q", c.status, c.wanted, c.applied, got, c.want)
		}
		if got := u.InForce("dev/b"); got != nil {
			t.Errorf("on no target: got %q", got)
		}
	}
}

// TestShift: every time that is stored moves when the clock is set.
func TestShift(t *testing.T) {
	u, n := &Unit{}, 0
	fill(reflect.ValueOf(u).Elem(), &n)
	s := &State{Units: map[config.UnitPath]*Unit{u.Path: u}}
	before := timesIn(reflect.ValueOf(u).Elem(), "")
	s.Shift(-time.Hour)
	for name, got := range timesIn(reflect.ValueOf(u).Elem(), "") {
		if want := before[name].Add(-time.Hour); !got.Equal(want) {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if len(before) < 15 || !s.changed[u.Path] {
		t.Errorf("%d times, and %v is to be stored", len(before), s.changed)
	}
}

// timesIn are all times in a value, by their path.
func timesIn(v reflect.Value, path string) map[string]time.Time {
	if t, ok := v.Interface().(time.Time); ok {
		return map[string]time.Time{path: t}
	}
	found := map[string]time.Time{}
	add := func(v reflect.Value, path string) { maps.Copy(found, timesIn(v, path)) }
	switch v.Kind() {
	case reflect.Pointer:
		add(v.Elem(), path)
	case reflect.Slice:
		for i := range v.Len() {
			add(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			add(v.MapIndex(key), fmt.Sprintf("%s[%v]", path, key))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				add(v.Field(i), path+"."+field.Name)
			}
		}
	}
	return found
}
