// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tests.md: admission mutates our fields each time.
func TestAWebhookThatChangesOurLabelsIsNoticed(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	admit(t, ns, "", "v1", "configmaps", func(r review) string {
		if r.Name != "a" {
			return ""
		}
		return `[{"op":"replace","path":"/metadata/labels/team","value":"hook"},{"op":"remove","path":"/metadata/annotations/example.com~1note"},{"op":"add","path":"/metadata/labels/more","value":"x"}]`
	})
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s, labels: {team: ours}, annotations: {example.com/note: ours}}, data: {value: '%s'}}"
	want := []string{`not as it was sent, the server or an admission webhook changed it: .metadata.annotations["example.com/note"], .metadata.labels.team`}
	r := one(t, c, newObject(t, text, "a", ns, "1"), "")
	if r.Err != nil || r.Action != Created {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff(want, r.Warnings); diff != "" {
		t.Error(diff)
	}
	r = again(t, c, newObject(t, text, "a", ns, "2"), r)
	if diff := cmp.Diff(want, r.Warnings); r.Err != nil || diff != "" {
		t.Error(r.Err, diff)
	}
	if r = one(t, c, newObject(t, text, "b", ns, "1"), ""); r.Err != nil || r.Warnings != nil {
		t.Errorf("%+v", r)
	}
}

func TestAFieldThatTheServerDoesNotTakeIsNoticed(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	r := one(t, c, newObject(t, scalable+"status: {replicas: 7}\n", ns, 1, "a"), "")
	want := []string{"not as it was sent, the server or an admission webhook changed it: .status"}
	if diff := cmp.Diff(want, r.Warnings); r.Err != nil || diff != "" {
		t.Error(r.Err, diff)
	}
}

// Nothing of all this is a warning: the server keeps it in other words, or
// gives it back as somebody's.
func TestWhatTheServerOnlyRewordsIsNotNoticed(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	for _, text := range []string{
		`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: %s}, stringData: {a: plain}, data: {b: aGVsbG8=}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: a, namespace: %s}, spec: {ports: [{name: w, port: 80}, {name: x, port: 443, targetPort: https}], selector: {}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, labels: {}, annotations: {}, creationTimestamp: null}, data: {}, immutable: null}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: %s, finalizers: [example.com/x]}, imagePullSecrets: [{name: b}, {name: c}]}`,
		`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a, namespace: %s}, spec: {podSelector: {}, ingress: [{}], egress: []}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: %s}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {creationTimestamp: null, labels: {a: b}},
 spec: {serviceAccountName: x, volumes: [{name: v, emptyDir: {}}], containers: [{name: m, image: i, args: [a, b], env: [{name: E, value: ''}, {name: F}],
 resources: {limits: {cpu: 1000m, memory: 1024Mi}}, ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}], volumeMounts: [{name: v, mountPath: /v}]}]}}}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: %s}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}`,
	} {
		o := newObject(t, text, ns)
		r := one(t, c, o, "")
		if r.Err != nil || r.Warnings != nil {
			t.Errorf("%s: %v, %q", o.ID, r.Err, r.Warnings)
		}
	}
}
