// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/render/object"
)

const fluxMarks = "labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux-system}"

// TestTakeOver: a dry run tells to whom objects belong, and what a take-over would change
// besides that. It writes nothing and asks for no content of a Secret; what it says is what
// happens.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	ns := space(t)
	const secret = "{apiVersion: v1, kind: Secret, metadata: {name: NAME, namespace: NS, MARKS}, data: DATA}"
	theirSecret := func(name, data string) string {
		return strings.NewReplacer("NAME", name, "NS", ns, "MARKS", fluxMarks, "DATA", data).Replace(secret)
	}
	ourSecret := func(name, data string) *object.Object {
		return newObject(t, "%s", strings.ReplaceAll(theirSecret(name, data), ", "+fluxMarks, ""))
	}
	theirs := func(name, data string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: " + ns + ", " + fluxMarks + "}, data: " + data + "}"
	}
	objects := []*object.Object{
		configMap(t, ns, "same", "1"), configMap(t, ns, "other", "1"), configMap(t, ns, "more", "1"), configMap(t, ns, "new", "1"), configMap(t, ns, "ours", "1"),
		ourSecret("same", "{password: aHVudGVyMg==}"), ourSecret("other", "{password: aHVudGVyMg==}"), ourSecret("less", "{password: aHVudGVyMg==, user: bWU=}"),
		ourSecret("text", "{password: aHVudGVyMg==}"),
	}
	applied(t, c, objects[4])
	for i, text := range []string{theirs("same", "{value: '1'}"), theirs("other", "{value: '2'}"), theirs("more", "{value: '1', rest: '3'}"), "", "",
		theirSecret("same", "{password: aHVudGVyMg==}"), theirSecret("other", "{password: aHVudGVyMw==}"), theirSecret("less", "{password: aHVudGVyMg==}"),
		strings.ReplaceAll(theirSecret("text", "{password: hunter2}"), ", data:", ", stringData:")} {
		if text != "" {
			applyAs(t, "kustomize-controller", objects[i], text)
		}
	}
	applyAs(t, "kustomize-controller", configMap(t, ns, "left", "1"), theirs("left", "{value: '1'}"))
	w.take()
	type row struct {
		Action Action
		Owner  string
		Stays  []string
	}
	const flux = "Flux Kustomization flux-system/apps"
	want := []row{
		{Unchanged, flux, nil}, {Configured, flux, nil}, {Unchanged, flux, []string{".data.rest"}}, {Created, "", nil}, {Unchanged, "", nil},
		{Unchanged, flux, nil}, {Configured, flux, nil}, {Configured, flux, nil}, {Configured, flux, nil},
	}
	previews := c.TakeOver(t.Context(), Work{Objects: objects})
	for i, p := range previews {
		if diff := cmp.Diff(want[i], row{p.Action, p.Owner, p.Stays}); diff != "" || p.Err != nil {
			t.Errorf("%s: %v\n%s", p.ID, p.Err, diff)
		}
	}
	if previews[7].Unproved != "" || !strings.Contains(previews[8].Unproved, "stringData") {
		t.Errorf("%q, %q", previews[7].Unproved, previews[8].Unproved)
	}
	if text := string(previews[1].Live.JSON) + string(previews[1].Applied.JSON); strings.Contains(text, "swell") || strings.Contains(text, "fluxcd") {
		t.Errorf("marks of ownership are compared: %s", text)
	}
	for _, s := range w.all {
		if strings.Contains(s.path, "/secrets/") && !strings.Contains(s.accept, "PartialObjectMetadata") {
			t.Errorf("%s %s asks for more than metadata", s.method, s.path)
		}
		if s.method != "GET" && !strings.Contains(s.query, "dryRun=All") {
			t.Errorf("%s %s?%s writes", s.method, s.path, s.query)
		}
	}
	claims, _, err := c.Claims(t.Context(), map[string]bool{flux: true})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, claim := range claims {
		if claim.ID.Namespace == ns {
			names = append(names, claim.ID.String()+" "+claim.Release)
		}
	}
	wantNames := []string{}
	for _, name := range []string{"ConfigMap/NS/left", "ConfigMap/NS/more", "ConfigMap/NS/other", "ConfigMap/NS/same", "Secret/NS/less", "Secret/NS/other", "Secret/NS/same", "Secret/NS/text"} {
		wantNames = append(wantNames, strings.ReplaceAll(name, "NS", ns)+" "+flux)
	}
	if diff := cmp.Diff(wantNames, names); diff != "" {
		t.Error(diff)
	}

	for _, r := range c.Apply(t.Context(), Work{Objects: objects, Adopt: "take"}) {
		if r.Err != nil {
			t.Error(r.Err)
		}
	}
	for i, p := range c.TakeOver(t.Context(), Work{Objects: objects}) {
		if p.Action != Unchanged || p.Owner != "" || p.Err != nil {
			t.Errorf("%s after that: %s, %q, %v", objects[i].ID, p.Action, p.Owner, p.Err)
		}
	}
}
