// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// TestPreview: what an apply would do is said, nothing is done, and the content
// of a Secret is not asked for.
func TestPreview(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\nstringData: {password: %s}\n"
	was := []*render.Object{
		configMap(t, ns, "same", "1"), configMap(t, ns, "other", "1"), object(t, deployment, ns, "web", "1"),
		object(t, secret, "kept", ns, "hunter2"), object(t, secret, "moved", ns, "hunter2"), configMap(t, ns, "left", "1"),
	}
	applied(t, c, was...)
	eventually(t, func() (bool, string) { // the times of managed fields have whole seconds
		meta, err := c.begin().getMeta(t.Context(), "Secret/moved", "/api/v1/namespaces/"+ns+"/secrets/moved")
		if err != nil {
			return false, err.Error()
		}
		return time.Since(entryTime(ownEntry(meta))) > 2*time.Second, "the second is not over"
	})
	w.take()
	is := []*render.Object{
		was[0], configMap(t, ns, "other", "2"), object(t, deployment, ns, "web", "2"),
		was[3], object(t, secret, "moved", ns, "hunter3"),
		configMap(t, ns, "new", "1"),
		object(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s-later}\n", ns), configMap(t, ns+"-later", "in-it", "1"),
		configMap(t, ns+"-never", "lost", "1"),
		object(t, "apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: x, namespace: %s}\n", ns),
		configMap(t, ns, "left", "2"),
		object(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bad, namespace: %s}\nspec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {}}\n", ns),
	}
	got := c.Preview(t.Context(), is, []config.IgnoreRule{{Kind: "ConfigMap", Object: "left", Fields: []string{"/data/value"}}})
	for i, want := range []Action{Unchanged, Configured, Configured, Unchanged, Configured, Created, Created, Created, "", "", Unchanged, ""} {
		if got[i].Action != want || (want == "") != (got[i].Err != nil) || got[i].ID != is[i].ID {
			t.Errorf("%s: %q, %v, want %q", is[i].ID, got[i].Action, got[i].Err, want)
		}
	}
	for _, s := range w.all {
		if strings.Contains(s.path, "/secrets/") && !strings.Contains(s.accept, "PartialObjectMetadata") {
			t.Errorf("%s %s asks for more than metadata", s.method, s.path)
		}
		if s.method != "GET" && !strings.Contains(s.query, "dryRun=All") {
			t.Errorf("%s %s?%s writes", s.method, s.path, s.query)
		}
	}
	web := got[2]
	if !strings.Contains(string(web.Live.JSON), "web:1") || !strings.Contains(string(web.Applied.JSON), "web:2") || strings.Contains(string(web.Applied.JSON), "managedFields") {
		t.Errorf("live %s\napplied %s", web.Live.JSON, web.Applied.JSON)
	}
	if got[7].Unproved == "" || got[4].Live != nil || got[4].Applied != nil {
		t.Errorf("%+v\n%+v", got[7], got[4])
	}
	if !errors.Is(got[9].Err, ErrNoKind) || !strings.Contains(got[8].Err.Error(), "not found") || !errors.Is(got[11].Err, ErrRefused) {
		t.Errorf("%v\n%v\n%v", got[8].Err, got[9].Err, got[11].Err)
	}
}

// TestPreviewWhileSomebodyWrites: what an autoscaler does between the look at an
// object and its dry run is not taken for what an apply would do.
func TestPreviewWhileSomebodyWrites(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	web := object(t, strings.Replace(deployment, "  replicas: 1\n", "", 1), ns, "web", "1")
	applied(t, c, web)
	cfg := apiServer(t)
	writes := 1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && writes > 0 {
				writes--
				mergeAs(t, "hpa", web, fmt.Sprintf(`{"spec":{"replicas":%d}}`, 3+writes), "scale")
			}
			return next.RoundTrip(r)
		})
	})
	busy, err := Connect(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := busy.Preview(t.Context(), []*render.Object{web}, nil)[0]; got.Action != Unchanged || got.Err != nil {
		t.Errorf("%q, %v; live %+v, applied %+v", got.Action, got.Err, got.Live, got.Applied)
	}
	writes = maxReads
	if got := busy.Preview(t.Context(), []*render.Object{web}, nil)[0]; got.Err == nil || !strings.Contains(got.Err.Error(), "somebody writes it all the time") {
		t.Errorf("%q, %v", got.Action, got.Err)
	}
}
