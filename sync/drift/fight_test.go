// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fought plays losses of one field at some times, in seconds after noon, and
// returns what was corrected and the fight at the end.
func fought(f store.Fight, seconds ...int) (corrected []bool, end store.Fight) {
	for _, s := range seconds {
		now := noon.Add(time.Duration(s) * time.Second)
		var correct bool
		f, correct = countLosses(f, []store.Loss{{Field: ".spec.replicas", Manager: "hpa", At: now}}, 0, now)
		corrected = append(corrected, correct)
	}
	return corrected, f
}

// TestAFightIsMoreThanFiveLossesInAMinute, and not one less.
func TestAFightIsMoreThanFiveLossesInAMinute(t *testing.T) {
	for name, c := range map[string]struct {
		seconds []int
		want    []bool
	}{
		"six in a minute":          {[]int{0, 10, 20, 30, 40, 59}, []bool{true, true, true, true, true, false}},
		"six in more":              {[]int{0, 12, 24, 36, 48, 60}, []bool{true, true, true, true, true, true}},
		"at once":                  {[]int{5, 5, 5, 5, 5, 5, 5}, []bool{true, true, true, true, true, false, false}},
		"every ten minutes":        {[]int{0, 600, 1200, 1800, 2400, 3000, 3600}, []bool{true, true, true, true, true, true, true}},
		"taken up after a minute":  {[]int{0, 0, 0, 0, 0, 0, 59, 60}, []bool{true, true, true, true, true, false, false, true}},
		"lost again at once":       {[]int{0, 0, 0, 0, 0, 0, 60, 61, 180, 181}, []bool{true, true, true, true, true, false, true, false, false, true}},
		"lost again after a while": {[]int{0, 0, 0, 0, 0, 0, 60, 121, 122}, []bool{true, true, true, true, true, false, true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			corrected, _ := fought(store.Fight{}, c.seconds...)
			if diff := cmp.Diff(c.want, corrected); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTrucesGrow from a minute to an hour.
func TestTrucesGrow(t *testing.T) {
	_, f := fought(store.Fight{}, 0, 0, 0, 0, 0, 0)
	now := noon
	var minutes []int
	for range 9 {
		minutes = append(minutes, int(f.Until.Sub(now)/time.Minute))
		now = f.Until
		lost := []store.Loss{{Field: ".a", Manager: "m", At: now}}
		var correct bool
		if f, correct = countLosses(f, lost, 0, now); !correct {
			t.Fatal("not taken up again after the pause")
		}
		if f, correct = countLosses(f, lost, 0, now); correct {
			t.Fatal("corrected twice")
		}
	}
	if diff := cmp.Diff([]int{1, 2, 4, 8, 16, 32, 60, 60, 60}, minutes); diff != "" {
		t.Error(diff)
	}
	if f.Field != ".a" || f.Manager != "m" {
		t.Errorf("over %s with %s", f.Field, f.Manager)
	}
}

// TestOtherFieldsAreOtherLosses: six edits of six fields are no fight.
func TestOtherFieldsAreOtherLosses(t *testing.T) {
	var f store.Fight
	for _, field := range []string{".a", ".b", ".c", ".d", ".e", ".f", ".g"} {
		var correct bool
		if f, correct = countLosses(f, []store.Loss{{Field: field, At: noon}}, 0, noon); !correct {
			t.Errorf("%s was not corrected", field)
		}
	}
	if over(f, noon.Add(59*time.Second)) || !over(f, noon.Add(time.Minute)) {
		t.Error("want it forgotten after a minute")
	}
}

// nothing is a store with no drift.
type nothing struct{}

func (nothing) Drifts() ([]store.Drift, error) { return nil, nil }
func (nothing) Fights() ([]store.Fight, error) { return nil, nil }

// TestAFighterThatTakesOthersEachTime: neither other fields nor other objects of a target keep
// a fight from being one.
func TestAFighterThatTakesOthersEachTime(t *testing.T) {
	for name, c := range map[string]struct {
		objects int
		pause   time.Duration // between two losses
		most    int           // corrections in an hour
		least   int
	}{
		"a field of one object":        {1, 250 * time.Millisecond, 12 + 6, 12},
		"fifty objects, one by one":    {50, 250 * time.Millisecond, 50 + 30 + 50*6, 80},
		"an object a minute and a bit": {1, 61 * time.Second, 60, 59},
		"a hundred objects once":       {100, 36 * time.Second, 100, 100},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Open(nothing{})
			if err != nil {
				t.Fatal(err)
			}
			corrected, n := 0, 0
			for now := noon; now.Before(noon.Add(time.Hour)); now = now.Add(c.pause) {
				id := object.ID{Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprint(n % c.objects)}
				entry := store.Entry{Unit: "shop/cart", Target: "sas-1/a", ID: id, Digest: "1"}
				change := store.Change{Field: fmt.Sprintf(".data.k%d", n), Manager: "x"}
				if l.AllowCorrection(Finding{Entry: entry, Changes: []store.Change{change}}, now) {
					corrected++
				}
				n++
			}
			if corrected < c.least || corrected > c.most {
				t.Errorf("%d corrections of %d losses, want %d to %d", corrected, n, c.least, c.most)
			}
		})
	}
}
