// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// generator makes requests.
type generator struct {
	*rand.Rand
	spoilt bool // the object at hand has a mistake that the schema tells
}

func (g *generator) one(from ...string) string { return from[g.IntN(len(from))] }

// in says yes once in n times.
func (g *generator) in(n int) bool { return g.IntN(n) == 0 }

// mistake says once in n times to make a mistake that the schema tells. Of two such, a
// server names either.
func (g *generator) mistake(n int) bool {
	if g.spoilt || !g.in(n) {
		return false
	}
	g.spoilt = true
	return true
}

// target is a kind that requests are made for.
type target struct {
	apiVersion, kind, plural string
	cluster                  bool // without a namespace
	content                  func(g *generator) map[string]any
}

var targets = []target{
	{apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", content: (*generator).configMap},
	{apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", content: (*generator).configMap},
	{apiVersion: "v1", kind: "Secret", plural: "secrets", content: (*generator).secret},
	{apiVersion: "v1", kind: "Service", plural: "services", content: (*generator).service},
	{apiVersion: "apps/v1", kind: "Deployment", plural: "deployments", content: (*generator).deployment},
	{apiVersion: "apps/v1", kind: "StatefulSet", plural: "statefulsets", content: (*generator).statefulSet},
	{apiVersion: "apps/v1", kind: "DaemonSet", plural: "daemonsets", content: (*generator).daemonSet},
	{apiVersion: "batch/v1", kind: "Job", plural: "jobs", content: (*generator).job},
	{apiVersion: "batch/v1", kind: "CronJob", plural: "cronjobs", content: (*generator).cronJob},
	{apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding", plural: "rolebindings", content: (*generator).binding},
	{apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", plural: "clusterroles", cluster: true, content: (*generator).role},
	{apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", plural: "networkpolicies", content: (*generator).networkPolicy},
	{apiVersion: "networking.k8s.io/v1", kind: "Ingress", plural: "ingresses", content: (*generator).ingress},
	{apiVersion: "policy/v1", kind: "PodDisruptionBudget", plural: "poddisruptionbudgets", content: (*generator).budget},
	{apiVersion: "coordination.k8s.io/v1", kind: "Lease", plural: "leases", content: (*generator).lease},
	{apiVersion: "example.com/v1", kind: "Widget", plural: "widgets", content: (*generator).widget},
	{apiVersion: "example.com/v1", kind: "Widget", plural: "widgets", content: (*generator).widget},
	{apiVersion: "v1", kind: "Namespace", plural: "namespaces", cluster: true, content: func(*generator) map[string]any { return map[string]any{} }},
	{apiVersion: "v1", kind: "ServiceAccount", plural: "serviceaccounts", content: func(*generator) map[string]any { return map[string]any{} }},
	{apiVersion: "v1", kind: "PersistentVolumeClaim", plural: "persistentvolumeclaims", content: (*generator).claim},
	{apiVersion: "v1", kind: "ResourceQuota", plural: "resourcequotas", content: (*generator).quota},
	{apiVersion: "v1", kind: "LimitRange", plural: "limitranges", content: (*generator).limits},
	{apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", plural: "horizontalpodautoscalers", content: (*generator).autoscaler},
	{apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", plural: "priorityclasses", cluster: true, content: func(g *generator) map[string]any { return map[string]any{"value": 10} }},
}

func (t target) path(ns string) string {
	base := "/apis/" + t.apiVersion
	if t.apiVersion == "v1" {
		base = "/api/v1"
	}
	if t.cluster {
		return base + "/" + t.plural
	}
	return base + "/namespaces/" + ns + "/" + t.plural
}

func (g *generator) operation() operation {
	t := targets[g.IntN(len(targets))]
	ns := g.one(spaces...)
	if g.in(60) {
		ns = g.one("missing", "three")
	}
	name := g.one("a", "b")
	if g.in(100) {
		name = g.one("Bad_Name", "a.b", strings.Repeat("x", 260))
	}
	o := operation{path: t.path(ns) + "/" + name, contentType: jsonType}
	body := g.object(t, ns, name)
	switch g.IntN(14) {
	case 0, 1, 2, 3, 4:
		g.apply(t, &o, body)
	case 5, 6:
		o.method, o.path = http.MethodPost, t.path(ns)
		o.query = g.options("fieldManager=creator&")
		o.body = g.text(body)
	case 7:
		o.method, o.query, o.body = http.MethodPut, g.options("fieldManager=updater&"), g.put(body)
	case 8, 9:
		g.patch(t, &o)
	case 10, 11:
		g.delete(&o)
	case 12:
		o.method = http.MethodGet
		o.accept = g.one("", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	case 13:
		o.method, o.path = http.MethodGet, t.path(ns)
		o.accept = g.one(jsonType, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
		o.query = g.one("", "labelSelector=app%3Da", "limit=1", "labelSelector=app+in+(a,b),x", "fieldSelector=metadata.name%3Da", "labelSelector=!!")
		if t.cluster {
			o.query = "labelSelector=made" // the others come with a server
		}
	}
	return o
}

func (g *generator) options(query string) string {
	switch g.IntN(8) {
	case 0:
		query += "dryRun=All"
	case 1:
		query += "fieldValidation=Strict"
	case 2:
		query += "fieldValidation=Ignore"
	}
	return strings.TrimSuffix(query, "&")
}

func (g *generator) text(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// object is an object with content and, at times, labels, annotations, finalizers.
func (g *generator) object(t target, ns, name string) map[string]any {
	g.spoilt = false
	o := t.content(g)
	metadata := map[string]any{"name": name, "labels": map[string]any{"made": "true"}}
	if !t.cluster {
		metadata["namespace"] = ns
	}
	labels := metadata["labels"].(map[string]any)
	if g.in(2) {
		labels["app"] = g.one("a", "b")
	}
	if g.in(4) {
		labels["x"] = g.one("1", "2")
	}
	if g.in(3) {
		metadata["annotations"] = map[string]any{g.one("note", "remark"): g.one("1", "2")}
	}
	if g.in(12) {
		metadata["finalizers"] = []any{"example.com/" + g.one("a", "b")}
	}
	if g.in(40) {
		metadata["namespace"] = "elsewhere"
	}
	o["apiVersion"], o["kind"], o["metadata"] = t.apiVersion, t.kind, metadata
	if g.mistake(40) {
		o["unknown"] = g.one("field", "value")
	}
	return o
}

func (g *generator) apply(t target, o *operation, body map[string]any) {
	o.method, o.contentType = http.MethodPatch, string(types.ApplyPatchType)
	o.query = g.options("fieldManager=" + g.one("swell", "swell", "other", "third") + "&")
	if g.in(3) {
		o.query += "&force=true"
	}
	metadata := body["metadata"].(map[string]any)
	switch g.IntN(10) {
	case 0:
		metadata["uid"] = "{UID}"
	case 1:
		metadata["resourceVersion"] = g.one("1", "{VERSION}", "{STALE}")
	}
	if g.in(60) && !strings.Contains(o.path, "/services/") { // a server makes a Service of it, the simulator refuses
		o.path += "/status"
	}
	o.body = g.text(body)
}

func (g *generator) put(body map[string]any) string {
	metadata := body["metadata"].(map[string]any)
	switch g.IntN(5) {
	case 0, 1:
		metadata["resourceVersion"] = "{VERSION}"
	case 2:
		metadata["resourceVersion"] = "{STALE}"
	case 3:
		return "{LIVE}"
	}
	return g.text(body)
}

func (g *generator) patch(t target, o *operation) {
	o.method, o.query = http.MethodPatch, g.options("fieldManager=patcher&")
	switch g.IntN(6) {
	case 0, 1:
		o.contentType = string(types.MergePatchType)
		o.body = g.one(`{"metadata":{"labels":{"x":"3"}}}`, `{"metadata":{"annotations":{"note":null}}}`, `{"metadata":{"finalizers":null}}`, `{"metadata":{"finalizers":["example.com/b"]}}`,
			`{"metadata":{"uid":"{UID}","labels":{"x":"4"}}}`, `{"metadata":{"resourceVersion":"{STALE}","labels":{"x":"5"}}}`, `{"metadata":{"managedFields":[{}]}}`, `{}`, `{"metadata":{"name":"c"}}`, `[`,
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"00000000-0000-0000-0000-000000000001"}]}}`)
	case 2:
		o.contentType = string(types.JSONPatchType)
		o.body = g.one(`[{"op":"add","path":"/metadata/labels/y","value":"1"}]`, `[{"op":"remove","path":"/metadata/labels/x"}]`, `[{"op":"test","path":"/metadata/labels/x","value":"1"},{"op":"replace","path":"/metadata/labels/x","value":"2"}]`,
			`[{"op":"replace","path":"/metadata/finalizers","value":[]}]`)
	case 3:
		o.contentType = string(types.StrategicMergePatchType)
		o.body = g.one(`{"metadata":{"labels":{"z":"1"}}}`, `{"metadata":{"finalizers":["example.com/a"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`)
	case 4:
		o.contentType = string(types.MergePatchType)
		o.body = `{"metadata":{"finalizers":null}}`
	case 5:
		o.contentType = string(types.MergePatchType)
		o.body = map[string]string{
			"ConfigMap": `{"data":{"k":"9","j":null}}`, "Secret": `{"stringData":{"k":"9"}}`, "Service": `{"spec":{"selector":{"app":"c"}}}`, "Deployment": `{"spec":{"replicas":4,"paused":true}}`,
			"Widget": `{"spec":{"size":9,"parts":[{"name":"p","count":7}],"odd":1}}`, "Lease": `{"spec":{"holderIdentity":"y"}}`, "Job": `{"spec":{"suspend":false,"ttlSecondsAfterFinished":5}}`,
		}[t.kind]
		if o.body == "" {
			o.body = `{"metadata":{"labels":{"w":"1"}}}`
		}
		if t.kind == "Widget" && g.in(2) {
			o.path += "/status"
			o.body = `{"spec":{"size":77},"status":{"phase":"` + g.one("Up", "Down") + `"},"metadata":{"labels":{"st":"1"}}}`
		}
	}
}

func (g *generator) delete(o *operation) {
	o.method = http.MethodDelete
	switch g.IntN(8) {
	case 0:
		o.body = `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"{UID}"},"propagationPolicy":"Background"}`
	case 1:
		o.body = `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"11111111-0000-0000-0000-000000000000"},"propagationPolicy":"Background"}`
	case 2:
		o.body = `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"{VERSION}"},"propagationPolicy":"Background"}`
	case 3:
		o.body = `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"{STALE}"},"propagationPolicy":"Background"}`
	case 4:
		o.query = "dryRun=All"
	case 5:
		o.query = "propagationPolicy=" + g.one("Foreground", "Orphan", "Background")
	}
}

func (g *generator) configMap() map[string]any {
	data := map[string]any{}
	for range g.IntN(3) {
		data[g.one("k", "j", "i")] = g.one("1", "2", "3")
	}
	o := map[string]any{"data": data}
	if g.mistake(30) {
		o["data"] = map[string]any{"k": 5}
	}
	if g.in(25) {
		o["immutable"] = g.in(2)
	}
	return o
}

func (g *generator) secret() map[string]any {
	o := map[string]any{"data": map[string]any{"k": g.one("MQ==", "Mg==")}}
	if g.in(4) {
		o["stringData"] = map[string]any{g.one("k", "s"): "text"}
	}
	if g.in(6) {
		o["type"] = g.one("Opaque", "example.com/other")
	}
	return o
}

func (g *generator) service() map[string]any {
	ports := []any{map[string]any{"port": 80 + g.IntN(3), "name": "http"}}
	if g.in(3) {
		ports = append(ports, map[string]any{"port": 443, "name": "https", "targetPort": "tls", "protocol": g.one("TCP", "UDP")})
	}
	spec := map[string]any{"ports": ports, "selector": map[string]any{"app": g.one("a", "b")}}
	if g.in(6) {
		spec["sessionAffinity"] = g.one("None", "ClientIP")
	}
	if g.in(10) {
		spec["clusterIP"] = "None"
	}
	if g.in(10) {
		spec["type"] = "ClusterIP"
	}
	return map[string]any{"spec": spec}
}

func (g *generator) podSpec() map[string]any {
	main := map[string]any{"name": "main", "image": g.one("registry.example.com/app", "registry.example.com/app:1", "registry.example.com/app:latest", "app@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")}
	if g.in(3) {
		main["env"] = []any{map[string]any{"name": "A", "value": g.one("1", "2")}, map[string]any{"name": "POD", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}}}
	}
	if g.in(3) {
		main["resources"] = map[string]any{"requests": map[string]any{"cpu": g.one("100m", "0.1", "1"), "memory": g.one("128Mi", "1Gi", "1024Mi")}}
	}
	if g.in(3) {
		main["ports"] = []any{map[string]any{"containerPort": 8080, "name": g.one("http", "web")}}
	}
	if g.in(4) {
		main["readinessProbe"] = map[string]any{"httpGet": map[string]any{"port": g.one("http", "web")}, "periodSeconds": 5}
	}
	containers := []any{main}
	if g.in(4) {
		containers = append(containers, map[string]any{"name": "side", "image": "side:1", "command": []any{"run", g.one("x", "y")}})
	}
	spec := map[string]any{"containers": containers}
	if g.in(4) {
		spec["volumes"] = []any{map[string]any{"name": "v", "configMap": map[string]any{"name": "a"}}, map[string]any{"name": "e"}, map[string]any{"name": "s", "secret": map[string]any{"secretName": "a"}}}
	}
	if g.in(5) {
		spec["serviceAccountName"] = "runner"
	}
	if g.in(5) {
		spec["securityContext"] = map[string]any{"runAsNonRoot": true}
	}
	if g.in(6) {
		spec["tolerations"] = []any{map[string]any{"key": "a", "operator": "Exists"}}
	}
	return spec
}

func (g *generator) workload() map[string]any {
	app := "a"
	if g.in(15) {
		app = "b"
	}
	labels := map[string]any{"app": app}
	if g.in(4) {
		labels["more"] = "1"
	}
	if g.in(40) {
		labels["app"] = "c" // is not selected
	}
	spec := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": app}}, "template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": g.podSpec()}}
	if g.in(2) {
		spec["replicas"] = g.IntN(4)
	}
	return spec
}

func (g *generator) deployment() map[string]any {
	spec := g.workload()
	if g.in(5) {
		spec["strategy"] = map[string]any{"type": "Recreate"}
	}
	if g.in(5) {
		spec["minReadySeconds"] = 3
	}
	return map[string]any{"spec": spec}
}

func (g *generator) statefulSet() map[string]any {
	spec := g.workload()
	if g.in(2) {
		spec["serviceName"] = g.one("a", "b")
	}
	return map[string]any{"spec": spec}
}

func (g *generator) daemonSet() map[string]any {
	spec := g.workload()
	delete(spec, "replicas")
	return map[string]any{"spec": spec}
}

func (g *generator) job() map[string]any {
	pod := g.podSpec()
	pod["restartPolicy"] = "Never"
	spec := map[string]any{"template": map[string]any{"spec": pod}}
	if g.in(3) {
		spec["backoffLimit"] = g.IntN(4)
	}
	if g.in(3) {
		spec["ttlSecondsAfterFinished"] = 100
	}
	return map[string]any{"spec": spec}
}

func (g *generator) cronJob() map[string]any {
	spec := map[string]any{"schedule": g.one("* * * * *", "5 * * * *"), "jobTemplate": g.job()}
	if g.in(3) {
		spec["suspend"] = true
	}
	return map[string]any{"spec": spec}
}

func (g *generator) binding() map[string]any {
	return map[string]any{"roleRef": map[string]any{"kind": "ClusterRole", "name": g.one("view", "view", "edit"), "apiGroup": "rbac.authorization.k8s.io"},
		"subjects": []any{map[string]any{"kind": "User", "name": g.one("ada", "bob")}, map[string]any{"kind": "ServiceAccount", "name": "default", "namespace": "one"}}}
}

func (g *generator) role() map[string]any {
	return map[string]any{"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{g.one("pods", "secrets")}, "verbs": []any{"get"}}}}
}

func (g *generator) networkPolicy() map[string]any {
	return map[string]any{"spec": map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": g.one("a", "b")}}, "policyTypes": []any{"Ingress"}}}
}

func (g *generator) ingress() map[string]any {
	return map[string]any{"spec": map[string]any{"rules": []any{map[string]any{"host": g.one("a", "b") + ".example.com", "http": map[string]any{"paths": []any{
		map[string]any{"path": "/" + g.one("x", "y"), "pathType": "Prefix", "backend": map[string]any{"service": map[string]any{"name": "a", "port": map[string]any{"number": 80}}}}}}}}}}
}

func (g *generator) budget() map[string]any {
	return map[string]any{"spec": map[string]any{"minAvailable": g.IntN(3), "selector": map[string]any{"matchLabels": map[string]any{"app": "a"}}}}
}

func (g *generator) lease() map[string]any {
	return map[string]any{"spec": map[string]any{"holderIdentity": g.one("x", "y"), "leaseDurationSeconds": 5 + g.IntN(3), "renewTime": "2026-01-02T03:04:05.000000Z"}}
}

func (g *generator) claim() map[string]any {
	spec := map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": g.one("1Gi", "1Gi", "1Gi", "2Gi")}}}
	if g.in(3) {
		spec["storageClassName"] = "standard"
	}
	return map[string]any{"spec": spec}
}

func (g *generator) widget() map[string]any {
	spec := map[string]any{"size": 1 + g.IntN(4)}
	if g.in(3) {
		spec["color"] = g.one("red", "green")
	}
	if g.in(25) {
		spec["color"] = "blue"
	}
	if g.mistake(25) {
		spec["size"] = g.one("big", "small")
	}
	switch {
	case g.spoilt:
	case g.in(30):
		spec["size"] = 0
	case g.in(30):
		delete(spec, "size")
	}
	var list []any
	for _, name := range []string{"p", "q", "r"} {
		if g.in(2) {
			part := map[string]any{"name": name}
			if g.in(2) {
				part["count"] = g.IntN(4)
			}
			list = append(list, part)
		}
	}
	if list != nil {
		spec["parts"] = list
	}
	if g.in(3) {
		spec["tags"] = [][]any{{"t"}, {"t", "u"}, {"u"}}[g.IntN(3)]
	}
	if g.in(4) {
		spec["labels"] = map[string]any{g.one("l", "m"): "1"}
	}
	if g.in(4) {
		spec["port"] = []any{80, "http"}[g.IntN(2)]
	}
	if g.in(4) {
		spec["free"] = map[string]any{"any": map[string]any{g.one("x", "y"): g.IntN(3)}}
	}
	if g.mistake(30) {
		spec["odd"] = fmt.Sprint(g.IntN(3))
	}
	o := map[string]any{"spec": spec}
	if g.in(20) {
		o["status"] = map[string]any{"phase": "Up"}
	}
	return o
}

// quota limits nothing that these tests make: pods.
func (g *generator) quota() map[string]any {
	hard := map[string]any{"pods": fmt.Sprint(1 + g.IntN(3)), "requests.cpu": g.one("1", "1000m", "1.5", "2")}
	if g.in(3) {
		hard["requests.memory"] = g.one("1Gi", "1024Mi", "0.5Gi")
	}
	return map[string]any{"spec": map[string]any{"hard": hard}}
}

func (g *generator) limits() map[string]any {
	limit := map[string]any{"type": g.one("Container", "Container", "Pod")}
	if g.in(2) {
		limit["max"] = map[string]any{"cpu": g.one("1", "1000m", "2"), "memory": "1Gi"}
	}
	if g.in(2) {
		limit["min"] = map[string]any{"cpu": "10m"}
	}
	if limit["type"] == "Container" && g.in(2) {
		limit["defaultRequest"] = map[string]any{"memory": g.one("64Mi", "128Mi")}
	}
	return map[string]any{"spec": map[string]any{"limits": []any{limit}}}
}

func (g *generator) autoscaler() map[string]any {
	spec := map[string]any{"maxReplicas": 3 + g.IntN(2), "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": g.one("a", "b")}}
	if g.in(2) {
		spec["minReplicas"] = 1 + g.IntN(3)
	}
	if g.in(2) {
		target := map[string]any{"type": "Utilization", "averageUtilization": 50 + g.IntN(2)}
		spec["metrics"] = []any{map[string]any{"type": "Resource", "resource": map[string]any{"name": g.one("cpu", "memory"), "target": target}}}
	}
	if g.mistake(25) {
		spec["maxReplicas"] = "many"
	}
	return map[string]any{"spec": spec}
}
