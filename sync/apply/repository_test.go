// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// ofPay is the object as another monorepo would have it.
func ofPay(o *object.Object) *object.Object {
	other := *o
	other.JSON = bytes.Replace(o.JSON, []byte(`"swell.sh/repository":"shop"`), []byte(`"swell.sh/repository":"pay"`), 1)
	sum := sha256.Sum256(other.JSON)
	other.Digest = object.Digest(hex.EncodeToString(sum[:]))
	return &other
}

// TestTwoMonoreposShareACluster: neither finds, takes up, corrects or deletes
// what is the other's; only adopt: take moves an object over, and then the one
// that had it lets it be.
func TestTwoMonoreposShareACluster(t *testing.T) {
	shop, _ := connect(t, Options{})
	pay, err := Connect(apiServer(t), "pay", Options{})
	if err != nil {
		t.Fatal(err)
	}
	ns := space(t)
	o := configMap(t, ns, "a", "1")
	entry := applied(t, shop, o)[0]

	const owner = "swell, from the monorepo "
	for adopt, want := range map[config.Adoption]string{
		config.AdoptNever:  "it is there already, made by " + owner + "shop, and nothing may be adopted: " + howToTake,
		config.AdoptIfSame: "it is there already and belongs to " + owner + "shop: " + howToTake,
	} {
		untouched(t, o, func() {
			r := one(t, pay, ofPay(o), adopt)
			if diff := cmp.Diff("apply "+o.ID.String()+": "+want, errText(r.Err)); diff != "" || r.Entry.UID != "" {
				t.Error(diff)
			}
			preview := pay.Preview(t.Context(), Work{Objects: []*object.Object{ofPay(o)}, Adopt: adopt})[0]
			if diff := cmp.Diff(errText(r.Err), errText(preview.Err)); diff != "" {
				t.Errorf("a preview: %s", diff)
			}
		})
	}
	surveyed := func(c *Cluster) []store.Entry {
		t.Helper()
		entries, _, err := c.Survey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return in(entries, ns)
	}
	if here, there := surveyed(shop), surveyed(pay); len(here) != 1 || len(there) != 0 {
		t.Errorf("a survey for shop finds %v, for pay %v", here, there)
	}

	taken := one(t, pay, ofPay(configMap(t, ns, "a", "2")), config.AdoptTake)
	if taken.Err != nil || taken.Adopted != owner+"shop" || taken.Entry.UID != entry.UID {
		t.Fatalf("%+v", taken)
	}
	found, err := shop.Sweep(t.Context(), []store.Entry{entry}, nil)
	if err != nil || len(found.Drifts) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	if d := found.Drifts[0]; !d.Kept || d.Missing || len(d.Changes) != 1 || d.Changes[0].String() != "taken over: "+owner+"pay" {
		t.Errorf("%+v", d)
	}
	pruned(t, shop, entry, Skipped, "not ours: it belongs to "+owner+"pay", true, true)
	if here, there := surveyed(shop), surveyed(pay); len(here) != 0 || len(there) != 1 {
		t.Errorf("a survey for shop finds %v, for pay %v", here, there)
	}
	mine := inventory(t, []Result{taken})[o.ID]
	if lines := swept(t, pay, []store.Entry{mine}); lines != nil {
		t.Errorf("for pay it has drifted: %q", lines)
	}
	pruned(t, pay, mine, Deleted, "", true, false)
}
