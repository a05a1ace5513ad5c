// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// manyKinds are objects with values that the server writes in its own way, or
// adds to. %[1]s is the namespace.
var manyKinds = strings.Split(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: 1
  revisionHistoryLimit: 0
  strategy: {rollingUpdate: {maxSurge: 25%%, maxUnavailable: 0}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {number: "1"}}
    spec:
      hostNetwork: false
      initContainers:
      - {name: second, image: registry.example.com/i:1}
      - {name: first, image: registry.example.com/i:1}
      containers:
      - name: main
        image: registry.example.com/web:1
        args: [--a, --b]
        env: [{name: B, value: "1"}, {name: A, value: $(B)}, {name: E, value: ""}]
        ports: [{containerPort: 8080, name: http}, {containerPort: 8081}, {containerPort: 8081, protocol: UDP}]
        readinessProbe: {httpGet: {port: http, path: /}, periodSeconds: 5}
        resources: {requests: {cpu: 0.5, memory: 1024Mi}, limits: {cpu: 1, memory: "1.5Gi"}}
        volumeMounts: [{name: tmp, mountPath: /tmp}]
      tolerations: [{operator: Exists}]
      volumes: [{name: tmp, emptyDir: {sizeLimit: 1000Mi}}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: %[1]s}
spec: {selector: {app: web}, ports: [{port: 80, name: http, targetPort: http}, {port: 443, name: tls, targetPort: 8443}, {port: 53, name: dns, protocol: UDP}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: %[1]s}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 3
  metrics:
  - {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 0.5Gi}}}
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: %[1]s}
spec: {maxUnavailable: 50%%, selector: {matchLabels: {app: web}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: %[1]s}
spec: {rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: %[1]s}
spec: {podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: http}, {port: 80}], from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: %[1]s}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: "registry.example.com/db:1"}], terminationGracePeriodSeconds: 0}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: job, namespace: %[1]s}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example.com/job:1"}]}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web, namespace: %[1]s}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web, namespace: %[1]s}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: %[1]s}
automountServiceAccountToken: false
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota, namespace: %[1]s}
spec: {hard: {requests.cpu: 10000m, pods: "100", requests.memory: 100e9}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: %[1]s}
spec: {limits: [{type: Container, default: {cpu: 2, memory: 2048Mi}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: %[1]s}
data: {empty: "", number: "0.50"}
binaryData: {blob: AAECAw==}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string, default: small}, parts: {type: array, items: {type: string}}}}}}}
---
apiVersion: %[1]s.example.com/v1
kind: Widget
metadata: {name: a, namespace: %[1]s}
spec: {parts: [b, a]}`, "\n---\n")

// TestDeepFindsNothingAfterAnApply: what the server writes in its own way, adds
// and fills in is no drift; nor is what controllers report in the status.
func TestDeepFindsNothingAfterAnApply(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	ns := space(t)
	discard(t, crds, "", "widgets."+ns+".example.com")
	var items []DeepItem
	var objects []*object.Object
	for _, text := range manyKinds {
		objects = append(objects, newObject(t, text, ns))
	}
	entries := applied(t, c, objects...)
	for i, o := range objects {
		items = append(items, DeepItem{entries[i], o})
	}
	w.take()
	// Controllers write to some of them in the first moments.
	eventually(t, func() (bool, string) {
		found, err := c.Deep(t.Context(), items, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found.Drifts {
			t.Errorf("%s: %v", d.Entry.ID, d.Changes)
		}
		for i, looked := range found.Looked {
			if !looked && !t.Failed() {
				return false, items[i].Entry.ID.String() + " is not looked at"
			}
		}
		return true, ""
	})
	for _, s := range w.take() {
		if s.method == "PATCH" && !strings.Contains(s.query, "dryRun=All") {
			t.Errorf("wrote: %v", s)
		}
	}
}

// TestDeepSeesOrder: of keyed lists, which is no field to anybody; and leaves
// out Secrets.
func TestDeepSeesOrder(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	ns := space(t)
	objects := []*object.Object{newObject(t, manyKinds[0], ns), newObject(t, "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: %s}, stringData: {a: hunter2}}", ns)}
	entries := applied(t, c, objects...)
	items := []DeepItem{{entries[0], objects[0]}, {entries[1], objects[1]}}
	apps := somebody(t).Resource(deployments).Namespace(ns)
	swap := `[{"op":"move","from":"/spec/template/spec/initContainers/0","path":"/spec/template/spec/initContainers/1"}]`
	if _, err := apps.Patch(t.Context(), "web", types.JSONPatchType, []byte(swap), metav1.PatchOptions{FieldManager: "shuffler"}); err != nil {
		t.Fatal(err)
	}
	if got := swept(t, c, entries); got != nil {
		t.Errorf("a sweep sees it too: %v", got)
	}
	w.take()
	var found Swept
	eventually(t, func() (bool, string) {
		var err error
		if found, err = c.Deep(t.Context(), items, nil); err != nil {
			t.Fatal(err)
		}
		return found.Looked[0], "not looked at"
	})
	if found.Looked[1] || len(found.Drifts) != 1 {
		t.Fatalf("found %+v", found)
	}
	d := found.Drifts[0]
	if diff := cmp.Diff([]store.Change{{Field: ".spec.template.spec.initContainers", Manager: store.UnknownManager, Note: "another apply would change it"}}, d.Changes); diff != "" || !d.Deep || d.Kept {
		t.Errorf("%s %+v", diff, d)
	}
	for _, s := range w.take() {
		if strings.Contains(s.path, "/secrets") {
			t.Errorf("asked for a Secret: %v", s)
		}
	}
}

func TestRewritten(t *testing.T) {
	object := func(text string) any { return jsonValue(t, text) }
	for name, c := range map[string]struct {
		sent, got string
		want      []string
	}{
		"same":             {`{"a":{"b":[1,"x"]}}`, `{"a":{"b":[1,"x"]},"c":1}`, nil},
		"quantities":       {`{"cpu":0.5,"memory":"1024Mi","n":1}`, `{"cpu":"500m","memory":"1Gi","n":"1"}`, nil},
		"another value":    {`{"data":{"a":"1"}}`, `{"data":{"a":"x"}}`, []string{".data.a"}},
		"removed":          {`{"data":{"a.b":"1","c":""}}`, `{}`, []string{`.data["a.b"]`}},
		"by name":          {`{"l":[{"name":"a","v":"1"},{"name":"b","v":"1"}]}`, `{"l":[{"name":"c"},{"name":"b","v":"x"},{"name":"a","v":"1"}]}`, []string{`.l[name="b"].v`}},
		"name is missing":  {`{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"a"}]}`, []string{`.l[name="b"]`}},
		"shorter":          {`{"l":["a","b"]}`, `{"l":["a"]}`, []string{".l"}},
		"longer":           {`{"l":["a"]}`, `{"l":["b","a"]}`, nil},
		"status, null":     {`{"status":{"a":1},"metadata":{"x":null}}`, `{"metadata":{}}`, nil},
		"item of a list":   {`{"l":[{"a":"1"}]}`, `{"l":[{"a":"x"}]}`, []string{".l[0].a"}},
		"of another shape": {`{"a":{"b":"1"}}`, `{"a":"1"}`, []string{".a.b"}},
	} {
		var found fields
		found.rewritten("", object(c.sent), object(c.got))
		if diff := cmp.Diff(fields(c.want), found); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestBetween(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want []string
	}{
		"same":           {`{"a":[{"name":"x","v":1}]}`, `{"a":[{"name":"x","v":1}]}`, nil},
		"in a list":      {`{"a":[{"name":"x","v":1},{"name":"y"}]}`, `{"a":[{"name":"x","v":2},{"name":"y"}]}`, []string{`.a[name="x"].v`}},
		"order":          {`{"a":[{"name":"x"},{"name":"y"}]}`, `{"a":[{"name":"y"},{"name":"x"}]}`, []string{".a"}},
		"on either side": {`{"a":1,"c":1}`, `{"b":1,"c":2}`, []string{".a", ".b", ".c"}},
		"plain list":     {`{"a":["x","y"]}`, `{"a":["y","x"]}`, []string{".a"}},
	} {
		var found fields
		found.between("", jsonValue(t, c.a), jsonValue(t, c.b))
		if diff := cmp.Diff(fields(c.want), found); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func jsonValue(t *testing.T, text string) any {
	t.Helper()
	var u unstructured.Unstructured
	if err := json.Unmarshal([]byte(`{"kind":"X","apiVersion":"v1","value":`+text+`}`), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u.Object["value"]
}
