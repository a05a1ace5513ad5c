// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/store"
)

// swept sweeps and returns the drifts as lines without times.
func swept(t *testing.T, c *Cluster, entries []store.Entry) []string {
	t.Helper()
	return sweptBut(t, c, entries, nil)
}

// sweptBut is swept with something ignored.
func sweptBut(t *testing.T, c *Cluster, entries []store.Entry, ignore Ignored) []string {
	t.Helper()
	found, err := c.Sweep(t.Context(), entries, ignore)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, d := range found.Drifts {
		line := d.Entry.ID.Kind + "/" + d.Entry.ID.Name
		if d.Missing {
			line += " missing"
		}
		lines = append(lines, line)
		for _, change := range d.Changes {
			if change.Operation != "" && change.Subresource != "scale" && change.Time.IsZero() {
				t.Errorf("no time: %s", change)
			}
			who := change.Manager
			if change.Operation != "" {
				who += " " + change.Operation
			}
			if change.Subresource != "" {
				who += " of " + change.Subresource
			}
			lines = append(lines, "  "+strings.TrimSpace(change.Field+" "+change.Note)+": "+who)
		}
	}
	return lines
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      containers:
      - {name: main, image: "registry.example.com/%[2]s:%[3]s"}
`

func TestSweepFindsNothingAfterAnApply(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	objects := []*object.Object{configMap(t, ns, "a", "1"), configMap(t, ns, "b", "1"), newObject(t, deployment, ns, "web", "1")}
	entries := applied(t, c, objects...)
	w.take()
	for range 2 {
		if got := swept(t, c, entries); got != nil {
			t.Error(got)
		}
	}
	for _, s := range w.take() {
		if s.method != "GET" || s.accept != acceptMetaList {
			t.Errorf("sent %v", s)
		}
	}
	// An apply that changes nothing is none.
	entries[0].Digest = ""
	known := map[object.ID]store.Entry{entries[0].ID: entries[0]}
	entries[0] = inventory(t, c.bring(t.Context(), objects[:1], known))[entries[0].ID]
	if got := swept(t, c, entries); got != nil {
		t.Error(got)
	}
}

// The one that was scaled is not among them: what is held through the scale
// subresource is left to whoever holds it.
func TestSweepNamesFieldAndManager(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	entries := applied(t, c,
		configMap(t, ns, "edited", "1"), configMap(t, ns, "removed-value", "1"), configMap(t, ns, "untouched", "1"),
		configMap(t, ns, "added-to", "1"), newObject(t, deployment, ns, "scaled", "1"), newObject(t, deployment, ns, "patched", "1"))
	edit(t, entries[0].ID, types.MergePatchType, `{"data":{"value":"2"}}`, "kubectl-edit")
	edit(t, entries[1].ID, types.JSONPatchType, `[{"op":"remove","path":"/data/value"},{"op":"add","path":"/data","value":{"app.toml":"x"}}]`, "vim")
	edit(t, entries[3].ID, types.MergePatchType, `{"data":{"other":"2"}}`, "controller") // a field that is not ours
	apps := somebody(t).Resource(deployments).Namespace(ns)
	for _, p := range []struct{ name, subresource, patch string }{
		{"scaled", "scale", `[{"op":"replace","path":"/spec/replicas","value":3}]`},
		{"patched", "", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"evil"}]`},
	} {
		var sub []string
		if p.subresource != "" {
			sub = append(sub, p.subresource)
		}
		if _, err := apps.Patch(t.Context(), p.name, types.JSONPatchType, []byte(p.patch), metav1.PatchOptions{FieldManager: "intruder"}, sub...); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"ConfigMap/edited",
		"  .data.value: kubectl-edit Update",
		"ConfigMap/removed-value",
		"  .data.value: vim Update",
		"Deployment/patched",
		`  .spec.template.spec.containers[name="main"].image: intruder Update`,
	}
	if diff := cmp.Diff(want, swept(t, c, entries)); diff != "" {
		t.Error(diff)
	}
}

func TestSweepNamesAnApplyUnderOurName(t *testing.T) {
	c, _ := connect(t, Options{})
	entry := applied(t, c, configMap(t, space(t), "a", "1"))[0]
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"app.kubernetes.io/managed-by":"swell","swell.sh/repository":"shop"},` +
		`"annotations":{"swell.sh/unit":"services/shop/cart"}},"data":{"value":"1","more":"2"}}`
	edit(t, entry.ID, types.ApplyPatchType, body, FieldManager)
	want := []string{"ConfigMap/a", "  applied by somebody else under our name: swell Apply"}
	if diff := cmp.Diff(want, swept(t, c, []store.Entry{entry})); diff != "" {
		t.Error(diff)
	}
}

func TestSweepTellsMissingFromRecreatedAndUnlabelled(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	entries := applied(t, c, configMap(t, ns, "gone", "1"), configMap(t, ns, "again", "1"), configMap(t, ns, "unlabelled", "1"), configMap(t, ns, "bare", "1"))
	remove(t, entries[0].ID)
	remove(t, entries[1].ID)
	create(t, configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: again, namespace: "+ns+"}, data: {a: b}}")
	edit(t, entries[2].ID, types.MergePatchType, `{"metadata":{"labels":null}}`, "cleaner")
	edit(t, entries[3].ID, types.MergePatchType, `{"metadata":{"managedFields":[{}]}}`, "cleaner")
	want := []string{
		"ConfigMap/gone missing",
		"ConfigMap/again missing",
		"  deleted and recreated by somebody: apply.test Update",
		"ConfigMap/unlabelled",
		`  .metadata.labels["app.kubernetes.io/managed-by"]: unknown`,
		`  .metadata.labels["swell.sh/repository"]: unknown`,
		"ConfigMap/bare",
		`  .data.value: unknown`,
		`  .metadata.annotations["swell.sh/unit"]: unknown`,
		`  .metadata.labels["app.kubernetes.io/managed-by"]: unknown`,
		`  .metadata.labels["swell.sh/repository"]: unknown`,
	}
	if diff := cmp.Diff(want, swept(t, c, entries)); diff != "" {
		t.Error(diff)
	}
}

func TestSweepDoesNotJudgeWhatIsNotKnown(t *testing.T) {
	c, w := connect(t, Options{})
	entry := applied(t, c, configMap(t, space(t), "a", "1"))[0]
	edit(t, entry.ID, types.MergePatchType, `{"data":{"value":"2"}}`, "kubectl-edit")
	w.take()
	doubtful, intended := entry, entry
	doubtful.Digest = ""
	intended.UID = ""
	if got := swept(t, c, []store.Entry{doubtful, intended}); got != nil {
		t.Error(got)
	}
	if n := len(w.take()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestSweepReadsAllPages(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	var objects []*object.Object
	for i := range pageSize + 10 {
		objects = append(objects, configMap(t, ns, fmt.Sprintf("c%04d", i), "1"))
	}
	entries := applied(t, c, objects...)
	edit(t, entries[3].ID, types.MergePatchType, `{"data":{"value":"2"}}`, "kubectl-edit")
	edit(t, entries[pageSize+5].ID, types.MergePatchType, `{"data":{"value":"2"}}`, "kubectl-edit")
	// What other tests leave goes when their namespaces do.
	all, err := somebody(t).Resource(configMaps).List(t.Context(), metav1.ListOptions{LabelSelector: c.ours()})
	if err != nil {
		t.Fatal(err)
	}
	w.take()
	want := []string{
		"ConfigMap/c0003", "  .data.value: kubectl-edit Update",
		"ConfigMap/c0505", "  .data.value: kubectl-edit Update",
	}
	if diff := cmp.Diff(want, swept(t, c, entries)); diff != "" {
		t.Error(diff)
	}
	if n, pages := len(w.take()), (len(all.Items)+pageSize-1)/pageSize; n < 2 || n > pages {
		t.Errorf("%d requests for %d ConfigMaps, want one for each page of %d", n, len(all.Items), pageSize)
	}
}

// The server forgets the beginning of a list after some minutes.
func TestSweepStartsAgainWhenAListExpires(t *testing.T) {
	item := `{"metadata":{"name":%q,"namespace":"shop","uid":"1"}}`
	var asked []string
	expired := false
	c := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		token := r.URL.Query().Get("continue")
		asked = append(asked, token)
		list := `{"kind":"PartialObjectMetadataList","metadata":{"continue":%q},"items":[` + item + `]}`
		switch {
		case token == "":
			answer(w, 200, jsonType, fmt.Sprintf(list, "two", "a"))
		case !expired:
			expired = true
			answerStatus(w, 410, "Expired", "too old")
		default:
			answer(w, 200, jsonType, fmt.Sprintf(list, "", "b"))
		}
	})
	var entries []store.Entry
	for _, name := range []string{"a", "b"} {
		id := object.ID{Kind: "ConfigMap", Namespace: "shop", Name: name}
		entries = append(entries, store.Entry{ID: id, Version: "v1", UID: "1", Digest: "x", Fingerprint: fingerprint("", time.Time{})})
	}
	if got := swept(t, c, entries); got != nil {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"", "two", "", "two"}, asked); diff != "" {
		t.Error(diff)
	}
}

// A custom resource's managed fields are stored in another way than those of a
// built-in kind; the fingerprint must not notice.
func TestSweepOfACustomResource(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	discard(t, crds, "", "widgets."+ns+".example.com")
	entries := applied(t, c, newObject(t, widgets, ns, "Widget", "size: {type: string}, color: {type: string}"),
		newObject(t, widget, ns, "size: big, color: red"))
	if got := swept(t, c, entries); got != nil {
		t.Error(got)
	}
	entries[1].Version = "v0" // applied in a version that is not served any more
	widgets := crds
	widgets.Group, widgets.Resource = ns+".example.com", "widgets"
	patch := []byte(`{"spec":{"size":"small"}}`)
	if _, err := somebody(t).Resource(widgets).Namespace(ns).Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "x"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Widget/a", "  .spec.size: x Update"}, swept(t, c, entries)); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsAreNeverRead(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	secret := newObject(t, "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: %s}, stringData: {password: hunter2}}", ns)
	entries := applied(t, c, secret)
	swept(t, c, entries)
	remove := entries[0]
	remove.ID.Name = "b" // not in the list, so that it is looked for
	swept(t, c, []store.Entry{remove})
	if h, _, err := c.Health(t.Context(), Work{Objects: []*object.Object{secret}}); err != nil || h.State != health.Healthy {
		t.Errorf("health %v, %v", h, err)
	}
	c.Prune(t.Context(), entries)
	sent := w.take()
	if len(sent) < 5 {
		t.Errorf("only %d requests", len(sent))
	}
	for _, s := range sent {
		if s.accept != acceptMeta && s.accept != acceptMetaList {
			t.Errorf("asked for more than metadata: %v", s)
		}
	}
}

// The server's refusal quotes what it refuses.
func TestSecretValuesAreNotInErrors(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	for _, value := range []string{"stringData: {a: 48151623}", "data: {a: [4815, {b: hunter2}]}"} {
		got := c.bring(t.Context(), []*object.Object{
			newObject(t, "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: %s}, %s}", ns, value),
		}, nil)[0]
		want := "apply Secret/" + ns + "/a: 500 Internal Server Error (the text is withheld: it quotes a value of the secret)"
		if got.Err == nil || got.Err.Error() != want {
			t.Errorf("got %v, want %s", got.Err, want)
		}
	}
}

// TestSweepSeesEditsOfSecretsWrittenAsText: the server turns stringData into
// data but notes that we own stringData, which nobody can edit: changes of data
// by others went unseen.
func TestSweepSeesEditsOfSecretsWrittenAsText(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	entries := applied(t, c, newObject(t, "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: %s}, stringData: {password: hunter2}, data: {other: eQ==}}", ns))
	if got := swept(t, c, entries); got != nil {
		t.Error(got)
	}
	secrets := configMaps
	secrets.Resource = "secrets"
	client := somebody(t).Resource(secrets).Namespace(ns)
	live, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"password": "aHVudGVyMg==", "other": "eQ=="}, live.Object["data"]); diff != "" {
		t.Error(diff)
	}
	if _, err := client.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{"password":"eA=="}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Secret/a", "  .data.password: kubectl-edit Update"}, swept(t, c, entries)); diff != "" {
		t.Error(diff)
	}
}
