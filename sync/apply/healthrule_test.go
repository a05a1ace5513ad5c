// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/apply/line"
)

// ruled are rules with one, named "x", for a kind.
func ruled(t testing.TB, group, name, healthy, failed, reason string) render.HealthRules {
	t.Helper()
	rule, problems := kind.CompileHealthRule(&config.HealthRule{Name: "x",
		Healthy: config.Expression{Text: healthy}, Failed: config.Expression{Text: failed}, Reason: config.Expression{Text: reason}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return render.HealthRules{{Group: group, Kind: name}: rule}
}

func TestJudgeByRule(t *testing.T) {
	const (
		ready = "object.status.ready"
		bad   = "object.status.bad"
	)
	for _, test := range []struct {
		name, reason, live string
		want               health.Health
	}{
		{"healthy", "", "{status: {ready: true}}", health.Health{State: health.Healthy}},
		{"kstatus would call it healthy", "", "{}", health.Health{State: health.Progressing, Reason: `HealthRule "x": healthy: no such key: status`}},
		{"kstatus would call it failed", "", "{status: {ready: true, conditions: [{type: Stalled, status: 'True'}]}}", health.Health{State: health.Healthy}},
		{"its conditions say why", "", "{status: {conditions: [{type: Ready, status: 'False', message: No such zone.}]}}", health.Health{State: health.Progressing, Reason: "no such zone"}},
		{"the rule says why", "object.status.why", "{status: {why: because, conditions: [{type: Ready, status: 'False', message: No such zone.}]}}", health.Health{State: health.Progressing, Reason: "because"}},
		{"failed", "", "{status: {bad: true, ready: true}}", health.Health{State: health.Failed, Reason: `failed by HealthRule "x"`}},
		{"lines", "object.status.why", `{status: {ready: false, why: "a\r\n\tb \u2028 c\n"}}`, health.Health{State: health.Progressing, Reason: "a b c"}},
		{"long", "object.status.why", "{status: {ready: false, why: " + strings.Repeat("x", 5000) + "}}", health.Health{State: health.Progressing, Reason: strings.Repeat("x", line.Most) + " ..."}},
		{"an odd value", "object.status.why", "{status: {ready: 7, why: because}}", health.Health{State: health.Progressing, Reason: `HealthRule "x": healthy: want a bool, got int`}},
		{"leaving", "", "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {ready: true}}", health.Health{State: health.Progressing, Reason: "resource scheduled for deletion"}},
		{"not seen yet", "", "{metadata: {generation: 3}, status: {ready: true, observedGeneration: 2}}",
			health.Health{State: health.Progressing, Reason: "generation is 3, but latest observed generation is 2"}},
		{"not seen yet, as a string", "", "{metadata: {generation: 3}, status: {bad: true, observedGeneration: '2'}}",
			health.Health{State: health.Progressing, Reason: "generation is 3, but latest observed generation is 2"}},
		{"seen", "", "{metadata: {generation: 3}, status: {ready: true, observedGeneration: '3'}}", health.Health{State: health.Healthy}},
	} {
		t.Run(test.name, func(t *testing.T) {
			body, err := yaml.YAMLToJSON([]byte(test.live))
			if err != nil {
				t.Fatal(err)
			}
			var live unstructured.Unstructured
			if err := live.UnmarshalJSON([]byte(strings.Replace(string(body), "{", `{"apiVersion":"x/v1","kind":"Thing",`, 1))); err != nil && string(body) != "{}" {
				t.Fatal(err)
			}
			if string(body) == "{}" {
				live.Object = map[string]any{"apiVersion": "x/v1", "kind": "Thing"}
			}
			rules := ruled(t, "x", "Thing", ready, bad, test.reason)
			got := (*call)(nil).judgeByRule(t.Context(), &live, rules[render.GroupKind{Group: "x", Kind: "Thing"}])
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestHealthRuleOfACustomResource: its status comes, says that it failed, and
// then that it is well. A phase behind it waits as long.
func TestHealthRuleOfACustomResource(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	group := strings.ToLower(ns) + ".example.com"
	certificates := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "certificates"}
	rules := ruled(t, group, "Certificate", "object.status.conditions.exists(c, c.type == 'Issued' && c.status == 'True')",
		"object.status.attempts >= 3", "'certificate: ' + object.status.message")
	definition := newObject(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Certificate, plural: certificates, singular: certificate}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group)
	discard(t, crds, "", "certificates."+group)
	certificate := newObject(t, "{apiVersion: %s/v1, kind: Certificate, metadata: {name: web, namespace: %s}, spec: {host: web}}", group, ns)
	after := configMap(t, ns, "after", "1")
	after.Phase = 1
	work := Work{Objects: []*object.Object{definition, certificate, after}, Rules: rules}
	steps := func() string {
		results := c.Apply(t.Context(), work)
		for i, r := range results {
			if r.Err == nil && r.Entry.UID != "" {
				if work.Known == nil {
					work.Known = inventory(t, nil)
				}
				work.Known[work.Objects[i].ID] = r.Entry
			}
		}
		if err := results[1].Err; err != nil {
			return err.Error()
		}
		return results[2].Reason
	}
	set := func(status string) {
		_, err := somebody(t).Resource(certificates).Namespace(ns).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
	name := certificate.ID.String()
	for _, step := range []struct {
		status  string
		without health.State // what kstatus says
		want    health.Health
		waits   string
	}{
		{"", health.Healthy, health.Health{State: health.Progressing, Reason: name + `: HealthRule "x": healthy: no such key: status`}, `waits for phase 0: ` + name + `: HealthRule "x": healthy: no such key: status`},
		{`{"message":"asking\nfor it","conditions":[]}`, health.Healthy, health.Health{State: health.Progressing, Reason: name + ": certificate: asking for it"}, "waits for phase 0: " + name + ": certificate: asking for it"},
		{`{"message":"no such zone","attempts":3}`, health.Healthy, health.Health{State: health.Failed, Reason: name + ": certificate: no such zone"}, "apply " + name + ": certificate: no such zone"},
		{`{"attempts":4,"conditions":[{"type":"Issued","status":"True"}]}`, health.Healthy, health.Health{State: health.Failed, Reason: name + ": certificate: no such zone"}, "apply " + name + ": certificate: no such zone"},
		{`{"attempts":0,"message":null}`, health.Healthy, health.Health{State: health.Healthy}, ""},
	} {
		if step.status != "" {
			set(step.status)
		}
		if got := steps(); got != step.waits {
			t.Errorf("%s: steps: %q, want %q", step.status, got, step.waits)
		}
		got, _, err := c.Health(t.Context(), Work{Objects: work.Objects[:2], Known: work.Known, Rules: rules})
		if err != nil || got != step.want {
			t.Errorf("%s: %v %v, want %v", step.status, got, err, step.want)
		}
		if got := healthOf(t, c, work.Objects[:2]...); got.State != step.without {
			t.Errorf("%s: without the rule: %v", step.status, got)
		}
	}
}

// TestHealthRuleOfAKindThatIsNotReadOtherwise: the object is read then, but no
// Secret ever is. The rule is the README's.
func TestHealthRuleOfAKindThatIsNotReadOtherwise(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	service := newObject(t, "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: %s}, spec: {type: LoadBalancer, ports: [{port: 80}]}}", ns)
	inside := newObject(t, "{apiVersion: v1, kind: Service, metadata: {name: inside, namespace: %s}, spec: {ports: [{port: 80}]}}", ns)
	secret := newObject(t, "{apiVersion: v1, kind: Secret, metadata: {name: web, namespace: %s}, data: {a: eA==}}", ns)
	applied(t, c, service, inside, secret)
	w.take()

	rules := ruled(t, "", "Service", "object.spec.type != 'LoadBalancer' || size(object.status.loadBalancer.?ingress.orValue([])) > 0", "", "'no address yet'")
	rules[render.GroupKind{Kind: "Secret"}] = ruled(t, "", "Secret", "false", "", "")[render.GroupKind{Kind: "Secret"}]
	work := Work{Objects: []*object.Object{inside, service, secret}, Rules: rules}
	want := health.Health{State: health.Progressing, Reason: fmt.Sprintf(`Service/%s/web: no address yet`, ns)}
	if got, _, err := c.Health(t.Context(), work); err != nil || got != want {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	after := configMap(t, ns, "after", "1")
	after.Phase = 1
	phases := c.Apply(t.Context(), Work{Objects: []*object.Object{service, after}, Rules: rules})
	if got := phases[1].Reason; got != "waits for phase 0: "+want.Reason {
		t.Errorf("the next phase: %q", got)
	}
	_, err := somebody(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace(ns).
		Patch(t.Context(), "web", types.MergePatchType, []byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := c.Health(t.Context(), work); err != nil || got.State != health.Healthy {
		t.Error(got, err)
	}
	for _, request := range w.take() {
		if strings.Contains(request.path, "secrets") {
			t.Errorf("%s %s", request.method, request.path)
		}
	}
}

// TestHealthRuleIsNotAskedAboutHooks: whether a hook has run is not for a rule
// to say.
func TestHealthRuleIsNotAskedAboutHooks(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	hook := newObject(t, `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: %s, annotations: {swell.sh/hook: before}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example.com/migrate:1"}]}}}
`, ns)
	work := Work{Objects: []*object.Object{hook, configMap(t, ns, "after", "1")}, Bundle: "1", Rules: ruled(t, "batch", "Job", "false", "true", "")}
	eventually(t, func() (bool, string) {
		results := c.Apply(t.Context(), work)
		work.Known = inventory(t, results)
		return results[1].Action == Created, results[1].Reason
	})
	work.Objects, work.Known = work.Objects[:1], nil // as after the inventory was lost
	if got, _, err := c.Health(t.Context(), work); err != nil || got.State != health.Healthy {
		t.Error(got, err)
	}
}
