// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
)

// keeper is a unit on dev-2/c with an object that Git keeps, "precious", one that
// only somebody's annotation keeps, "marked", one that lost such an annotation
// again, "unmarked", and "plain".
func (w *world) keeper() {
	w.Helper()
	ns := w.tenant + "-c"
	objects := ""
	for _, name := range []string{"precious", "marked", "unmarked", "plain"} {
		objects += fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {image: \"1\"}\n---\n", name, ns)
	}
	w.onTwo("kept", strings.Replace(objects, "metadata: {name: precious,", "metadata: {name: precious, annotations: {swell.sh/prune: disabled},", 1))
	w.until("kept", w.is("kept", 1, rollout.Done))
	w.patch(configMaps, ns, "marked", `{"metadata":{"annotations":{"swell.sh/prune":"disabled"}}}`)
	w.patch(configMaps, ns, "unmarked", `{"metadata":{"annotations":{"swell.sh/prune":"disabled"}}}`)
	w.patch(configMaps, ns, "unmarked", `{"metadata":{"annotations":{"swell.sh/prune":null}}}`)
}

// TestKeptObjectsAreLetGoOf: a unit that is gone from Git ends although objects of
// it are to stay; nobody asks about them any more; the history knows them; another
// unit takes them up again, whatever it may adopt, and deletes them when nothing
// keeps them then.
func TestKeptObjectsAreLetGoOf(t *testing.T) { simulated(t, testKeptObjectsAreLetGoOf) }

func testKeptObjectsAreLetGoOf(t *testing.T, w *world) {
	w.keeper()
	uid := w.get("dev-2/c", configMaps, "marked").GetUID()
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/kept")))
	w.commit()
	w.until("the end", w.soon(func() bool { return w.unit("kept") == nil }))
	w.want("what is there", fmt.Sprint(w.there("precious"), w.there("marked"), w.there("unmarked"), w.there("plain")), "1 1 0 0")
	inventory, err := w.store.Inventories("services/kept")
	w.must(err)
	if len(inventory) > 0 || len(w.plans()) > 0 {
		t.Errorf("still in the inventory: %v; plans %v", inventory, w.plans())
	}
	w.want("what the history says", strings.Join(w.events("kept", "orphaned"), "\n"), strings.ReplaceAll(
		"dev-2/c ConfigMap/NS/marked: kept by the annotation swell.sh/prune: disabled\ndev-2/c ConfigMap/NS/precious: kept by the annotation swell.sh/prune: disabled", "NS", w.tenant+"-c"))
	w.requests()
	w.idle(time.Hour)
	if n := w.requests(); len(n) > 0 {
		t.Errorf("still asked about: %v", n)
	}

	for i, policy := range []string{"", ", adopt: ifSame", ", adopt: never"} {
		name := fmt.Sprintf("owner%d", i)
		w.write("services/"+name+"/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: owner}\nspec: {placement: {match: {labels: {site: two}}}"+policy+"}\n")
		w.write("services/"+name+"/objects.yaml", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: marked, namespace: %s-c}\ndata: {image: %q}\n", w.tenant, name))
		w.commit()
		w.until("the new owner", w.is(name, 1, rollout.Done))
		live := w.get("dev-2/c", configMaps, "marked")
		value, _, _ := unstructured.NestedString(live.Object, "data", "image")
		w.want("the adopted object", fmt.Sprint(value, live.GetUID(), live.GetAnnotations()["swell.sh/unit"]), fmt.Sprint(name, uid, "services/"+name))
		if i == 2 {
			w.patch(configMaps, w.tenant+"-c", "marked", `{"metadata":{"annotations":{"swell.sh/prune":null}}}`)
		}
		w.must(os.RemoveAll(filepath.Join(w.repo(), "services/"+name)))
		w.commit()
		w.until("the end of the new owner", w.soon(func() bool { return w.unit(name) == nil }))
	}
	w.want("the object that nothing keeps any more", fmt.Sprint(w.there("marked")), "0")
}

// What was orphaned is not taken for ours when the state is lost, also where the
// live object had lost the annotation before.
func lostWithKeptObjects(w *world) {
	w.keeper()
	w.patch(configMaps, w.tenant+"-c", "precious", `{"metadata":{"annotations":{"swell.sh/prune":null}}}`)
	w.patch(configMaps, w.tenant+"-c", "plain", `{"metadata":{"annotations":{"client.lifecycle.config.k8s.io/deletion":"detach"}}}`)
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/kept")))
	w.commit()
	w.until("the end", w.soon(func() bool { return w.unit("kept") == nil }))
	before := w.uids()
	w.lose()
	w.release()
	w.until("the end of the rebuilding", w.rebuilt)
	w.idle(time.Hour)
	w.sameUIDs("after", before)
	w.want("kept", fmt.Sprint(w.there("precious", "marked", "plain")), "3")
	entries, err := w.store.Inventories(config.UnitPath("services/kept"))
	w.must(err)
	if events := w.events("kept", "orphaned"); w.unit("kept") != nil || len(w.plans()) > 0 || len(entries) > 0 || len(events) > 0 {
		w.Errorf("taken for ours: %v, plans %v, history %q", entries, w.plans(), events)
	}
}
