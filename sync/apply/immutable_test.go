// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// immutables are changes that a real server refuses because of what was there
// before, and the fields that it names. X in the object is first old, then new;
// NS is the test's namespace, NAME another name in each case.
var immutables = []struct {
	name   string
	object string
	old    string
	new    string
	fields string
	text   string
}{
	{"Deployment selector", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: NS}
spec:
  selector: {matchLabels: {app: X}}
  template: {metadata: {labels: {app: X}}, spec: {containers: [{name: main, image: "registry.example.com/x:1"}]}}
`, "a", "b", "spec.selector", "spec.selector cannot be changed (field is immutable"},
	{"StatefulSet service", `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: NAME, namespace: NS}
spec:
  serviceName: X
  replicas: 0
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "registry.example.com/x:1"}]}}
`, "a", "b", "spec", "spec cannot be changed (updates to statefulset spec for fields other than"},
	{"DaemonSet selector", `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: NAME, namespace: NS}
spec:
  selector: {matchLabels: {app: X}}
  template: {metadata: {labels: {app: X}}, spec: {nodeSelector: {no: such}, containers: [{name: main, image: "registry.example.com/x:1"}]}}
`, "a", "b", "spec.selector", "spec.selector cannot be changed (field is immutable"},
	{"Job template", `
apiVersion: batch/v1
kind: Job
metadata: {name: NAME, namespace: NS}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example.com/x:X"}]}}}
`, "1", "2", "spec.template.spec", "spec.template.spec cannot be changed (field is immutable"},
	{"Job completion mode", `
apiVersion: batch/v1
kind: Job
metadata: {name: NAME, namespace: NS}
spec: {suspend: true, completions: 2, completionMode: X, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example.com/x:1"}]}}}
`, "NonIndexed", "Indexed", "spec.completionMode", "spec.completionMode cannot be changed (field is immutable"},
	{"Service address", `
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: NS}
spec: {clusterIP: X, selector: {app: a}, ports: [{port: 80}]}
`, "None", "10.96.201.7", "spec.clusterIPs[0]", "spec.clusterIPs[0] cannot be changed (may not change once set"},
	{"Pod container", `
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: NS}
spec: {nodeSelector: {no: such}, containers: [{name: main, image: "registry.example.com/x:1", command: [X]}]}
`, "a", "b", "spec", "spec cannot be changed (pod updates may not change fields other than"},
	{"PersistentVolumeClaim class", `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME, namespace: NS}
spec: {storageClassName: X, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, "a", "b", "spec", "spec cannot be changed (spec is immutable after creation except"},
	{"PersistentVolume source", `
apiVersion: v1
kind: PersistentVolume
metadata: {name: NAME-NS}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: none, nfs: {server: X, path: /}}
`, "a", "b", "spec.persistentvolumesource", "spec.persistentvolumesource cannot be changed (spec.persistentvolumesource is immutable after creation"},
	{"RoleBinding role", `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: NAME, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: X}
`, "a", "b", "roleRef", "roleRef cannot be changed (cannot change roleRef"},
	{"ClusterRoleBinding role", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAME-NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: X}
`, "a", "b", "roleRef", "roleRef cannot be changed (cannot change roleRef"},
	{"StorageClass provisioner", `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NAME-NS}
provisioner: example.com/X
`, "a", "b", "provisioner", "provisioner cannot be changed (field is immutable"},
	{"StorageClass parameters", `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NAME-NS}
provisioner: example.com/a
parameters: {a: X}
`, "a", "b", "parameters", "parameters cannot be changed (field is immutable"},
	{"StorageClass reclaim policy", `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NAME-NS}
provisioner: example.com/a
reclaimPolicy: X
`, "Delete", "Retain", "reclaimPolicy", "reclaimPolicy cannot be changed (field is immutable"},
	{"StorageClass binding mode", `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NAME-NS}
provisioner: example.com/a
volumeBindingMode: X
`, "Immediate", "WaitForFirstConsumer", "volumeBindingMode", "volumeBindingMode cannot be changed (field is immutable"},
	{"PriorityClass value", `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: NAME-NS}
value: X
`, "1", "2", "value", "value cannot be changed (may not be changed in an update"},
	{"RuntimeClass handler", `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: NAME-NS}
handler: X
`, "a", "b", "handler", "handler cannot be changed (field is immutable"},
	{"IngressClass controller", `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: NAME-NS}
spec: {controller: example.com/X}
`, "a", "b", "spec.controller", "spec.controller cannot be changed (field is immutable"},
	{"ConfigMap marked immutable", `
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: NS}
immutable: true
data: {a: X}
`, "a", "b", "data", "data cannot be changed (field is immutable when `immutable` is set"},
	{"Secret marked immutable", `
apiVersion: v1
kind: Secret
metadata: {name: NAME, namespace: NS}
immutable: true
stringData: {a: X}
`, "plain-one", "plain-two", "data", "data cannot be changed (field is immutable when `immutable` is set"},
	{"Secret type", `
apiVersion: v1
kind: Secret
metadata: {name: NAME, namespace: NS}
type: example.com/X
`, "a", "b", "type", "type cannot be changed (field is immutable"},
	{"EndpointSlice address type", `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: NAME, namespace: NS}
addressType: X
endpoints: []
`, "IPv4", "IPv6", "addressType", "addressType cannot be changed (field is immutable"},
	{"CustomResourceDefinition scope", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.NAME.NS.example.com}
spec:
  group: NAME.NS.example.com
  names: {kind: Thing, plural: things}
  scope: X
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, "Namespaced", "Cluster", "spec.scope", "spec.scope cannot be changed (field is immutable"},
}

func TestImmutableTexts(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	for i, test := range immutables {
		t.Run(test.name, func(t *testing.T) {
			got, action := change(t, c, strings.NewReplacer("NAME", fmt.Sprintf("n%d", i), "NS", ns).Replace(test.object), test.old, test.new)
			if got.Err == nil || !strings.Contains(got.Err.Error(), test.text) {
				t.Errorf("got %v, want %q in it", got.Err, test.text)
			}
			if fields := strings.Join(immutableFields(got.Err), " "); fields != test.fields {
				t.Errorf("fields %q, want %q: %v", fields, test.fields, causes(got.Err))
			}
			if action != diff.Refused {
				t.Errorf("a diff says that it is %s", action)
			}
		})
	}
}

// change applies an object with the old value for X and then with the new one, and says what a
// diff makes of that.
func change(t *testing.T, c *Cluster, text, old, value string) (Result, diff.Action) {
	t.Helper()
	before, after := newObject(t, "%s", strings.ReplaceAll(text, "X", old)), newObject(t, "%s", strings.ReplaceAll(text, "X", value))
	entry := applied(t, c, before)[0]
	t.Cleanup(func() { removeAny(t, c, entry.ID, entry.Version) })
	got := c.bring(t.Context(), []*object.Object{after}, map[object.ID]store.Entry{entry.ID: entry})[0]
	return got, foretold(before, after)
}

// foretold is what a diff makes of an object that changes.
func foretold(old, obj *object.Object) diff.Action {
	bundle := func(o *object.Object) map[config.TargetName]*object.Bundle {
		return map[config.TargetName]*object.Bundle{"a": {Objects: []*object.Object{o}, Digest: o.Digest}}
	}
	changes := diff.Unit("unit", bundle(old), bundle(obj))
	if len(changes) != 1 {
		return ""
	}
	return changes[0].Action
}

// mutables are changes beside those that are refused, which a real server takes.
var mutables = []struct{ name, object, old, new string }{
	{"Deployment", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: NS}
spec:
  replicas: 0
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a, b: "X"}}, spec: {containers: [{name: main, image: "registry.example.com/x:X"}]}}
`, "1", "2"},
	{"StatefulSet", `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: NAME, namespace: NS}
spec:
  serviceName: a
  replicas: 0
  minReadySeconds: X
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}
  updateStrategy: {rollingUpdate: {partition: X}}
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "registry.example.com/x:X"}]}}
`, "1", "2"},
	{"the defaults of a StatefulSet", `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: NAME, namespace: NS}
spec:
  serviceName: aX
  replicas: 0
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "registry.example.com/x:1"}]}}
`, "", "\n  podManagementPolicy: OrderedReady"},
	{"Job", `
apiVersion: batch/v1
kind: Job
metadata: {name: NAME, namespace: NS}
spec: {suspend: true, parallelism: X, activeDeadlineSeconds: 10X, template: {spec: {restartPolicy: Never, nodeSelector: {a: "X"}, containers: [{name: main, image: "registry.example.com/x:1", resources: {limits: {cpu: X}}}]}}}
`, "1", "2"},
	{"Service", `
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: NS}
spec: {clusterIP: None, selector: {app: "X"}, ports: [{port: 8X}]}
`, "1", "2"},
	{"the address of a Service", `
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: NS}
spec: {X selector: {app: a}, ports: [{port: 80}]}
`, "", "type: ClusterIP,"},
	{"Pod", `
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: NS, labels: {a: "X"}}
spec: {nodeSelector: {no: such}, containers: [{name: main, image: "registry.example.com/x:X"}]}
`, "1", "2"},
	{"PersistentVolume", `
apiVersion: v1
kind: PersistentVolume
metadata: {name: NAME-NS}
spec: {capacity: {storage: XGi}, accessModes: [ReadWriteOnce], storageClassName: none, nfs: {server: a, path: /}}
`, "1", "2"},
	{"ConfigMap", `
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: NS}
data: {a: X}
`, "a", "b"},
	{"ConfigMap that is marked from now on", `
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: NS}
data: {a: a}X
`, "", "\nimmutable: true"},
	{"labels of a ConfigMap marked immutable", `
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: NS, labels: {a: X}}
immutable: true
data: {a: a}
`, "a", "b"},
	{"RoleBinding subjects", `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: NAME, namespace: NS}
subjects: [{kind: ServiceAccount, name: X, namespace: NS}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}
`, "a", "b"},
	{"StorageClass expansion", `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NAME-NS}
provisioner: example.com/a
allowVolumeExpansion: X
`, "false", "true"},
	{"PriorityClass description", `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: NAME-NS}
value: 1
description: X
`, "a", "b"},
}

// A diff says of no change that it is refused that a server takes.
func TestMutable(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	for i, test := range mutables {
		t.Run(test.name, func(t *testing.T) {
			got, action := change(t, c, strings.NewReplacer("NAME", fmt.Sprintf("m%d", i), "NS", ns).Replace(test.object), test.old, test.new)
			if got.Err != nil {
				t.Error(got.Err)
			}
			if action != diff.Configured {
				t.Errorf("a diff says that it is %s", action)
			}
		})
	}
}

// A rule of a custom resource says it in the words of whoever wrote the rule.
func TestImmutableByARule(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	rule := `size: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: Value is immutable}]}`
	discard(t, crds, "", "widgets."+ns+".example.com")
	entries := applied(t, c, newObject(t, widgets, ns, "Widget", rule), newObject(t, widget, ns, "size: big"))
	got := c.bring(t.Context(), []*object.Object{newObject(t, widget, ns, "size: small")}, map[object.ID]store.Entry{entries[1].ID: entries[1]})[0]
	if got.Err == nil || !strings.Contains(got.Err.Error(), "spec.size cannot be changed (Value is immutable)") {
		t.Errorf("got %v", got.Err)
	}
}

func TestImmutableIsNotEveryRefusal(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	service := "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: %s, annotations: {swell.sh/replace: allowed}}, spec: {selector: {app: a}, ports: [{port: %s}]}}"
	known := inventory(t, c.bring(t.Context(), []*object.Object{newObject(t, service, ns, "80")}, nil))
	for _, port := range []string{"99999", `80, name: "field is immutable"`, `80, name: "is immutable when x"`, "80}, {port: 80"} {
		got := c.bring(t.Context(), []*object.Object{newObject(t, service, ns, port)}, known)[0]
		if got.Err == nil || strings.Contains(got.Err.Error(), "cannot be changed") || got.Action != "" {
			t.Errorf("port %s: %+v", port, got)
		}
	}
	for _, message := range []string{
		`Invalid value: "is immutable when x": must be lower case`,
		`Invalid value: "field is immutable": must be lower case`,
		"Required value: must be immutable for ever and a day",
		"must be greater than zero",
	} {
		if isImmutable(metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Message: message}) {
			t.Errorf("%q is taken for immutable", message)
		}
	}
}

func causes(err error) []metav1.StatusCause {
	var e *Error
	if errors.As(err, &e) && e.status != nil && e.status.Details != nil {
		return e.status.Details.Causes
	}
	return nil
}

// removeAny deletes an object of any kind as somebody else.
func removeAny(t *testing.T, c *Cluster, id object.ID, version string) {
	ctx := context.Background() // that of a test has ended when it cleans up
	found, err := c.begin().resource(ctx, kindOf(id, version))
	if err != nil {
		return
	}
	background := metav1.DeletePropagationBackground
	_ = somebody(t).Resource(found.WithResource(found.plural)).Namespace(id.Namespace).Delete(ctx, id.Name, metav1.DeleteOptions{PropagationPolicy: &background})
}
