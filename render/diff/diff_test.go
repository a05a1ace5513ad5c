// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
)

// snapshot renders plain objects placed on two clusters.
func snapshot(t *testing.T, units map[string]string) *render.Snapshot {
	t.Helper()
	files := map[string]string{}
	for name, content := range units {
		files[name+"/x.yaml"] = content
	}
	return snapshotOf(t, files)
}

// snapshotOf renders files of units.
func snapshotOf(t *testing.T, services map[string]string) *render.Snapshot {
	t.Helper()
	files := fstest.MapFS{
		"swell.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: {checks: {plainSecrets: pass, unknownKinds: pass}}\n")},
		"fleet/a.yaml": {Data: []byte(`apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: one}
---
apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: two}
---
apiVersion: swell.sh/v1
kind: Rollout
metadata: {name: default}
spec: {waves: [{name: all}]}
`)},
		"services/swell.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {placement: {topology: cell}}\n")},
	}
	for name, content := range services {
		files["services/"+name] = &fstest.MapFile{Data: []byte(content)}
	}
	var c render.Compiler
	s := c.Snapshot("", config.Files(files))
	if s.Held {
		t.Fatal(s.Problems)
	}
	return s
}

func compare(t *testing.T, base, head *render.Snapshot) *Report {
	t.Helper()
	report, err := Compare(base, head, Outlook{Kept: func(path config.UnitPath) string {
		if head.Units.Get(path) != nil {
			return ""
		}
		return head.Repository.Kept(path)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestCompare(t *testing.T) {
	base := snapshot(t, map[string]string{
		"a":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ns}\ndata: {k: v, gone: x, text: \"one\\ntwo\\n\"}\n",
		"s":      "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\nstringData: {password: hunter2}\ntype: Opaque\n",
		"p":      "apiVersion: v1\nkind: Service\nmetadata: {name: p, namespace: ns}\nspec: {ports: [{name: b, port: 1}, {name: a, port: 2}]}\n",
		"gone":   "apiVersion: v1\nkind: Namespace\nmetadata: {name: gone}\n",
		"broken": "apiVersion: v1\nkind: Namespace\nmetadata: {name: broken}\n",
		"same":   "apiVersion: v1\nkind: Namespace\nmetadata: {name: same}\n",
	})
	head := snapshot(t, map[string]string{
		"a":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ns}\ndata: {k: w, new: z, text: \"one\\n2\\n\"}\n",
		"s":      "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\nstringData: {password: correct-horse}\ntype: Opaque\n",
		"p":      "apiVersion: v1\nkind: Service\nmetadata: {name: p, namespace: ns}\nspec: {ports: [{name: a, port: 2}, {name: b, port: 3}, {name: c, port: 4}]}\n",
		"new":    "apiVersion: v1\nkind: Namespace\nmetadata: {name: new}\n",
		"broken": "apiVersion: v1\nkind: Namespce\nmetadata: {name: broken}\n",
		"same":   "apiVersion: v1\nkind: Namespace\nmetadata: {name: same}\n",
	})
	report := compare(t, base, head)
	var got strings.Builder
	if err := report.Write(&got); err != nil {
		t.Fatal(err)
	}
	want := `services/a
  configured ConfigMap/ns/a on 2 targets: one, two
    - data.gone: x
    - data.k: v
    + data.k: w
    + data.new: z
      data.text:
        @@ -1,2 +1,2 @@
         one
        -two
        +2

services/gone
  deleted Namespace/gone on 2 targets: one, two

services/new
  created Namespace/new on 2 targets: one, two

services/p
  configured Service/ns/p on 2 targets: one, two
    - spec.ports[name=b].port: 1
    + spec.ports[name=b].port: 3
    + spec.ports[name=c]: {"name":"c","port":4}

services/s
  configured Secret/ns/s on 2 targets: one, two
    - stringData.password: (old value)
    + stringData.password: (new value)

services/broken
  not compared: it has problems
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(got.String(), "hunter2") || strings.Contains(got.String(), "correct-horse") {
		t.Error("a Secret's value is in the report")
	}
	if got, want := report.Summary(), "10 objects in 5 units on 2 targets: 2 created, 6 configured, 2 deleted; 1 unit not compared"; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
	if same := compare(t, base, base); len(same.Changes) != 0 {
		t.Errorf("compared with itself: %v", same.Changes)
	}
}

// TestSecretWholeData: data that came or went as a whole was shown.
func TestSecretWholeData(t *testing.T) {
	const head = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\n"
	without := snapshot(t, map[string]string{"s": head})
	with := snapshot(t, map[string]string{"s": head + "stringData: {password: hunter2}\ndata: {token: aHVudGVyMg==}\n"})
	for _, report := range []*Report{compare(t, without, with), compare(t, with, without)} {
		var text strings.Builder
		if err := report.Write(&text); err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []string{text.String(), string(encoded)} {
			if strings.Contains(got, "hunter2") || strings.Contains(got, "aHVudGVyMg") || !strings.Contains(got, "password") {
				t.Errorf("want the names and no values, got %s", got)
			}
		}
	}
}

// Other tools keep copies of a Secret in its annotations, in forms of their own.
func TestSecretAnnotations(t *testing.T) {
	const head = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: ns\n"
	plain := snapshot(t, map[string]string{"s": head})
	of := func(password, wave string) *render.Snapshot {
		return snapshot(t, map[string]string{"s": head + "  annotations:\n    kapp.k14s.io/original: '{\"stringData\":{\"pw\":\"" + password + "\"}}'\n" +
			"    objectset.rio.cattle.io/applied: '%7B" + password + "%7D'\n    kubectl.kubernetes.io/last-applied-configuration: " + password + "\n    example.com/wave: " + wave + "\n"})
	}
	for _, report := range []*Report{compare(t, of("hunter2", "first"), of("hunter3", "second")), compare(t, plain, of("hunter2", "first")), compare(t, of("hunter2", "first"), plain)} {
		var text strings.Builder
		if err := report.Write(&text); err != nil {
			t.Fatal(err)
		}
		if got := text.String(); strings.Contains(got, "hunter") || !strings.Contains(got, "annotations") {
			t.Errorf("want the names and no values, got %s", got)
		}
	}
	var text strings.Builder
	if err := compare(t, of("hunter2", "first"), of("hunter2", "second")).Write(&text); err != nil || !strings.Contains(text.String(), "second") {
		t.Errorf("a plain word is hidden: %s, %v", text.String(), err)
	}
}

// TestCredentials: a password in a URL, a value of its query and a private key were shown where a field of any
// object had them. Where nothing else differs, the difference says so.
func TestCredentials(t *testing.T) {
	rendered := func(password, note string) *render.Snapshot {
		return snapshot(t, map[string]string{"c": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns}\ndata:\n" +
			"  note: " + note + "\n  url: https://user:" + password + "@host/x?access_token=" + password + "b\n" +
			"  key: |\n    first " + note + "\n    -----BEGIN PRIVATE KEY-----\n    " + password + "/cc\n    -----END PRIVATE KEY-----\n" +
			"  tls: |\n    -----BEGIN PRIVATE KEY-----\n    " + password + "/dd\n    -----END PRIVATE KEY-----\n"})
	}
	empty := snapshot(t, map[string]string{"c": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns}\n"})
	for want, report := range map[string]*Report{
		"what differs may be a secret": compare(t, rendered("hunter2Qx", "one"), rendered("hunter3Qx", "two")),
		`"url":"https://user:(secret)`: compare(t, empty, rendered("hunter2Qx", "one")),
		"+   note: one":                compare(t, snapshot(t, nil), rendered("hunter2Qx", "one")),
	} {
		var text strings.Builder
		if err := report.Write(&text); err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		if got := text.String() + string(encoded); strings.Contains(got, "hunter") || !strings.Contains(got, want) {
			t.Errorf("want %s and no password, got %s", want, got)
		}
	}
}

// TestNamespacesOfOneTarget: a name that is in two namespaces of one target
// gave that target twice.
func TestNamespacesOfOneTarget(t *testing.T) {
	base := snapshot(t, map[string]string{"a": "apiVersion: v1\nkind: Namespace\nmetadata: {name: base}\n"})
	head := snapshot(t, map[string]string{"a": "apiVersion: v1\nkind: Namespace\nmetadata: {name: base}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: left}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: right}\n"})
	want := []Change{
		{Unit: "services/a", Action: Created, Object: "ConfigMap/left/c", Targets: []config.TargetName{"one", "two"}},
		{Unit: "services/a", Action: Created, Object: "ConfigMap/right/c", Targets: []config.TargetName{"one", "two"}},
	}
	if diff := cmp.Diff(want, compare(t, base, head).Changes, cmpopts.IgnoreFields(Change{}, "IDs")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestKeptUnits: a unit that a neighbour's kustomization makes a base, or takes
// into a cycle, was told as deleted.
func TestKeptUnits(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: ns}\n"
	before := map[string]string{"a/kustomization.yaml": "namePrefix: a-\nresources: [x.yaml]\n", "a/x.yaml": object,
		"b/kustomization.yaml": "namePrefix: b-\nresources: [x.yaml]\n", "b/x.yaml": object}
	base := snapshotOf(t, before)
	if base.Units.Len() != 2 || len(base.Problems) > 0 {
		t.Fatalf("%d units, want 2: %v", base.Units.Len(), base.Problems)
	}
	for name, test := range map[string]struct {
		change  map[string]string
		unknown []config.UnitPath
		kept    []Kept
	}{
		"a base": {map[string]string{"a/kustomization.yaml": "namePrefix: a-\nresources: [x.yaml, ../b]\n"}, nil, []Kept{{"services/b", nil,
			"services/a/kustomization.yaml:2: names the folder, which makes it a base and no unit: nothing is deleted; rename or remove the folder to remove the unit"}}},
		"a cycle": {map[string]string{"a/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../a]\n"}, []config.UnitPath{"services/a", "services/b"}, nil},
	} {
		after := maps.Clone(before)
		maps.Copy(after, test.change)
		report := compare(t, base, snapshotOf(t, after))
		for _, c := range report.Changes {
			if c.Action == Deleted {
				t.Errorf("%s: deletes %s", name, c.Object)
			}
		}
		if diff := cmp.Diff(test.unknown, report.Unknown); diff != "" {
			t.Errorf("%s: not compared (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(test.kept, report.Kept); diff != "" {
			t.Errorf("%s: kept (-want +got):\n%s", name, diff)
		}
	}
}

// A change of a field that nobody may change is refused, or has the object made anew.
func TestImmutable(t *testing.T) {
	obj := func(annotation, selector, image string) *object.Object {
		text := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{%s},"name":"cart","namespace":"shop"},"spec":{"selector":{"matchLabels":{"app":%q}},"template":{"spec":{"containers":[{"image":%q,"name":"main"}]}}}}`, annotation, selector, image)
		return &object.Object{ID: object.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "cart"}, Version: "v1", JSON: []byte(text), Digest: object.Digest(text)}
	}
	allowed, detached := `"swell.sh/replace":"allowed"`, `"client.lifecycle.config.k8s.io/deletion":"detach"`
	const kept = "spec.selector.matchLabels.app cannot be changed: revert it, or give the object a new name; it is not replaced: "
	for _, test := range []struct {
		name    string
		was, is *object.Object
		action  Action
		reason  string
	}{
		{"an image", obj("", "a", "x:1"), obj("", "a", "x:2"), Configured, ""},
		{"a selector", obj("", "a", "x:1"), obj("", "b", "x:2"), Refused,
			"spec.selector.matchLabels.app cannot be changed: revert it, give the object a new name, or let it be deleted and made anew with the annotation swell.sh/replace: allowed"},
		{"a selector, with leave", obj("", "a", "x:1"), obj(allowed, "b", "x:1"), Replaced, "deleted and made anew: spec.selector.matchLabels.app cannot be changed"},
		{"of what is kept", obj(`"swell.sh/prune":"disabled"`, "a", "x:1"), obj(allowed, "b", "x:1"), Refused,
			kept + "it is kept by the annotation swell.sh/prune: disabled"},
		{"of what is detached", obj(detached, "a", "x:1"), obj(allowed, "b", "x:1"), Refused,
			kept + "it is kept by the annotation client.lifecycle.config.k8s.io/deletion: detach"},
	} {
		bundles := func(o *object.Object) map[config.TargetName]*object.Bundle {
			return map[config.TargetName]*object.Bundle{"a": {Objects: []*object.Object{o}, Digest: o.Digest}}
		}
		changes := Unit("shop/cart", bundles(test.was), bundles(test.is))
		if len(changes) != 1 || changes[0].Action != test.action || changes[0].Reason != test.reason || len(changes[0].Fields) == 0 {
			t.Errorf("%s: %+v", test.name, changes)
		}
	}
}

// TestReplicasOfAScaler: a number that an autoscaler sets is not in force, also where it goes as the autoscaler comes.
func TestReplicasOfAScaler(t *testing.T) {
	deployment := func(spec string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n" + spec +
			"  selector: {matchLabels: {app: web}}\n" +
			"  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: x}]}}\n"
	}
	const hpa = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: shop}\n" +
		"spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n"
	const keda = "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: scale, namespace: shop}\n" +
		"spec: {scaleTargetRef: {name: web}}\n"
	three, none := deployment("  replicas: 3\n"), deployment("")
	const note = "spec.replicas is not in force: %s sets the number, and the live one stays"
	for name, test := range map[string]struct{ base, head, reason string }{
		"nothing scales it":    {three, deployment("  replicas: 4\n"), ""},
		"another number":       {three + hpa, deployment("  replicas: 4\n") + hpa, fmt.Sprintf(note, "HorizontalPodAutoscaler web")},
		"a scaler comes":       {three, none + keda, fmt.Sprintf(note, "ScaledObject scale")},
		"another one's scaler": {three, none + strings.ReplaceAll(hpa, "name: web}}", "name: other}}"), ""},
		"a scaler goes":        {none + hpa, three, ""},
	} {
		report := compare(t, snapshot(t, map[string]string{"a": test.base}), snapshot(t, map[string]string{"a": test.head}))
		for _, c := range report.Changes {
			if c.Object == "Deployment/shop/web" && c.Reason != test.reason {
				t.Errorf("%s: %q, want %q", name, c.Reason, test.reason)
			}
		}
		var text strings.Builder
		if err := report.Write(&text); err != nil || !strings.Contains(text.String(), test.reason) {
			t.Errorf("%s: not in the text: %v\n%s", name, err, &text)
		}
	}
}

// TestReplacedFromAnotherUnit: the daemon deletes nothing to make it anew that another unit
// applied, nor a set that takes its claims along.
func TestReplacedFromAnotherUnit(t *testing.T) {
	set := func(name, whenDeleted string) *object.Object {
		text := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"annotations":{"swell.sh/replace":"allowed"},`+
			`"name":"db","namespace":"shop"},"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":%q},"serviceName":%q}}`,
			whenDeleted, name)
		id := object.ID{Group: "apps", Kind: "StatefulSet", Namespace: "shop", Name: "db"}
		return &object.Object{ID: id, Version: "v1", JSON: []byte(text), Digest: object.Digest(text)}
	}
	here := object.UnitTarget{Unit: "shop/db", Target: "a"}
	from := func(earlier *object.Object, where object.UnitTarget) Change {
		o := Outlook{Was: func(object.UnitTarget, object.ID) (*object.Object, object.UnitTarget) { return earlier, where }}
		change, _ := o.created(here, set("two", "Retain"))
		return change
	}
	const not = "spec.serviceName cannot be changed: revert it, or give the object a new name; it is not replaced: "
	for _, test := range []struct {
		name   string
		change Change
		action Action
		reason string
	}{
		{"from a target", from(set("one", "Retain"), object.UnitTarget{Unit: "shop/db", Target: "b"}), Replaced,
			"comes from target b; deleted and made anew: spec.serviceName cannot be changed"},
		{"from a unit", from(set("one", "Retain"), object.UnitTarget{Unit: "shop/cart", Target: "a"}), Refused,
			"comes from unit shop/cart; " + not + "it is not one that this unit applied"},
		{"with its claims", changed(set("one", "Delete"), set("two", "Retain"), "", ""), Refused,
			not + "its claims would be deleted with it, by spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Delete"},
	} {
		if test.change.Action != test.action || test.change.Reason != test.reason {
			t.Errorf("%s: %s: %s", test.name, test.change.Action, test.change.Reason)
		}
	}
}
