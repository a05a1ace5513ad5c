// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swell-sh/swell/config"
)

// TestNow: it has the units that are not as the commit wants them, as they are, and of very many the
// failed ones before those under way.
func TestNow(t *testing.T) {
	s, w, _ := retryWorld(config.Rollback)
	settled := Settled(w)
	if now, err := settled.Now(nil); err != nil || len(now.Units) > 0 {
		t.Errorf("of a fleet that has all: %v, %v", now.Units, err)
	}
	now, err := s.Now(nil)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := json.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	var got Now
	if err := json.Unmarshal(sent, &got); err != nil {
		t.Fatal(err)
	}
	units, err := got.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.Units, units, cmpopts.IgnoreUnexported(Unit{}, Target{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("units (-are +sent):\n%s", d)
	}

	for i := range 20 {
		path := config.UnitPath(fmt.Sprintf("a/%02d", i))
		s.Units[path] = &Unit{Path: path, Rollout: &Rollout{Status: Progressing, Reason: strings.Repeat("x", maxNow/8)}}
	}
	if now, err = s.Now(nil); err != nil || now.More == 0 || now.More+len(now.Units) != 21 || now.Units["shop/cart"].Key == "" {
		t.Errorf("of many: %d units and %d more, %v", len(now.Units), now.More, err)
	}
}
