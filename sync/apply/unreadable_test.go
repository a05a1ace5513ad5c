// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/render/object"
)

// TestAKindThatCannotBeRead: the storage version of a definition moves, and its conversion
// webhook is away. No object of the kind can be read or listed. All others are, and are
// written, at their usual speed.
func TestAKindThatCannotBeRead(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	discard(t, crds, "", "widgets."+ns+".example.com")
	definition := newObject(t, widgets, ns, "Widget", "size: {type: string}")
	entries := applied(t, c, definition, newObject(t, widget, ns, "size: big"), configMap(t, ns, "a", "1"))
	change := func(patch string) {
		t.Helper()
		definitions := somebody(t).Resource(crds)
		_, err := definitions.Patch(t.Context(), definition.ID.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	version := func(name, storage string) string {
		return `{"name":"` + name + `","served":true,"storage":` + storage +
			`,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`
	}
	const nobodyConverts = `{"strategy":"Webhook","webhook":` +
		`{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/convert"}}}`
	change(`{"spec":{"conversion":` + nobodyConverts + `,"versions":[` +
		version("v1", "false") + `,` + version("v2", "true") + `]}}`)
	defer change(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`) // else the definition cannot be deleted

	eventually(t, func() (bool, string) { // until the server has taken the change in
		_, unknown, err := c.Survey(t.Context())
		return err == nil && strings.Contains(strings.Join(unknown, " "), "Widget."+ns), "it can be read still"
	})
	began := time.Now()
	found, unknown, err := c.Survey(t.Context())
	if len(in(found, ns)) != 2 || err != nil {
		t.Errorf("surveyed %v, %v, %v", in(found, ns), unknown, err)
	}
	entries[1].Version = "v2" // the object is stored as v1, and can be read as that
	swept, err := c.Sweep(t.Context(), entries, nil)
	if diff := cmp.Diff([]bool{true, false, true}, swept.Looked); diff != "" || err == nil || swept.Lost {
		t.Errorf("swept: %v, lost %t\n%s", err, swept.Lost, diff)
	}
	results := c.bring(t.Context(), []*object.Object{configMap(t, ns, "a", "2"), newObject(t, widget, ns, "size: bigger")}, nil)
	if results[0].Err != nil || !errors.Is(results[1].Err, ErrWebhook) {
		t.Errorf("applied: %v, %v", results[0].Err, results[1].Err)
	}
	if took := time.Since(began); took > time.Minute { // a server that is told to be busy is asked ten times, 30 s apart
		t.Errorf("took %s", took)
	}
}
