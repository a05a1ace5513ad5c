// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/store"
)

const database = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: %s}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: side, image: "side:1"}, {name: main, image: "main:%s"}]}
`

// stuck brings a StatefulSet to a state that it does not leave by itself: its template was
// put back while a pod of the broken one waits for its image. It returns what puts it back
// as a daemon knows it, and the revision of the pod.
func stuck(t *testing.T, c *Cluster, ns string) (work Work, revision string) {
	t.Helper()
	s := newState(t, c)
	good, broken := newObject(t, database, ns, "1"), newObject(t, database, ns, "broken")
	s.toTheEnd("good", good)
	becomes(t, c, health.Health{State: health.Healthy}, good)
	s.toTheEnd("broken", broken)
	becomes(t, c, health.Health{State: health.Progressing, Reason: good.ID.String() +
		`: 1 of 2 replicas ready: pod 1: container main: ImagePullBackOff: back-off pulling image "main:broken"`}, broken)
	s.toTheEnd("good", good)
	eventually(t, func() (bool, string) {
		set := liveSet(t, ns)
		observed, _, _ := unstructured.NestedInt64(set.Object, "status", "observedGeneration")
		return observed == set.GetGeneration(), fmt.Sprint(observed)
	})
	return Work{Objects: []*object.Object{good}, Known: s.known, PutBack: true, Frees: true, Cluster: "dev-4"}, revisionOf(t, ns)
}

func liveSet(t *testing.T, ns string) *unstructured.Unstructured {
	t.Helper()
	return liveOf(t, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, ns, "db")
}

func revisionOf(t *testing.T, ns string) string {
	return livePod(t, ns, "db-1").GetLabels()["controller-revision-hash"]
}

// checked returns the reason of the health, and what was freed.
func checked(t *testing.T, c *Cluster, work Work) (reason string, freed []string) {
	t.Helper()
	found, err := c.Check(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	return found.Health.Reason, found.Freed
}

// TestAStuckStatefulSetIsFreed: a StatefulSet that was put back kept the broken image in a
// pod for ever, because its controller waits for that pod to be ready first.
func TestAStuckStatefulSetIsFreed(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	ns := space(t)
	work, revision := stuck(t, c, ns)
	command := "kubectl delete pod db-1 -n " + ns + " --context dev-4"
	pod := "pod db-1 keeps revision " + revision
	const leaves = "; swell does not delete it: "

	w.take()
	keep := func(name string, c *Cluster, change func(*Work), want string) {
		t.Helper()
		changed := work
		change(&changed)
		if reason, freed := checked(t, c, changed); !strings.HasSuffix(reason, "; "+pod+want) || len(freed) > 0 {
			t.Errorf("%s: %s, freed %q; want the end %q", name, reason, freed, pod+want)
		}
	}
	keep("no write for drift", c, func(work *Work) { work.Frees = false }, leaves+"drift is only reported here: "+command)
	keep("a mask", c, func(work *Work) { work.Spares = "masked by ada" }, leaves+"masked by ada")
	keep("no right", c.As(reader(t, ns)), func(*Work) {}, leaves+"it has no right to, see swell rbac --stuck-pods: "+command)
	since, _, _ := unstructured.NestedString(livePod(t, ns, "db-1").Object, "status", "startTime")
	patchPod(t, ns, podName, `{"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2100-01-01T00:00:00Z"}]}`)
	keep("it was ready", c, func(*Work) {}, leaves+"it may have been ready before: "+command)
	patchPod(t, ns, podName, `{"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "`+since+`"}]}`)
	if slices.ContainsFunc(w.take(), func(s sent) bool { return s.method == http.MethodDelete }) {
		t.Error("something was deleted")
	}
	for name, change := range map[string]func(*store.Entry){
		"an object of another UID":                         func(e *store.Entry) { e.UID = "other" },
		"an object of which nobody knows how it should be": func(e *store.Entry) { e.Digest = "" },
	} {
		changed, entry := work, work.Known[work.Objects[0].ID]
		change(&entry)
		changed.Known = map[object.ID]store.Entry{entry.ID: entry}
		if reason, freed := checked(t, c, changed); strings.Contains(reason, pod) || len(freed) > 0 {
			t.Errorf("%s: %s, freed %q", name, reason, freed)
		}
	}

	work.PutBack = false // a broken image is broken whatever comes after it
	reason, freed := checked(t, c, work)
	if want := "; " + pod + ": it never was ready, and was deleted"; !strings.HasSuffix(reason, want) {
		t.Errorf("reason %q, want the end %q", reason, want)
	}
	want := "StatefulSet/" + ns + "/db: pod db-1 of revision " + revision +
		", which never was ready and which it waited for to make pods of revision "
	if len(freed) != 1 || !strings.HasPrefix(freed[0], want) {
		t.Errorf("freed %q, want %q", freed, want)
	}
	becomes(t, c, health.Health{State: health.Healthy}, work.Objects...)
	if now := revisionOf(t, ns); now == revision {
		t.Errorf("the pod still has revision %s", now)
	}
	deletions := slices.DeleteFunc(w.take(), func(s sent) bool { return s.method != http.MethodDelete })
	only := []sent{{http.MethodDelete, "/api/v1/namespaces/" + ns + "/pods/db-1", "", acceptMeta}}
	if diff := cmp.Diff(only, deletions, cmp.AllowUnexported(sent{})); diff != "" {
		t.Error(diff)
	}
}

const podName = "statefulset.kubernetes.io/pod-name=db-1"

// reader is an account that may see StatefulSets and their pods, and change nothing.
func reader(t *testing.T, ns string) (user string) {
	t.Helper()
	create(t, schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: %s}
rules: [{apiGroups: ["", apps], resources: [pods, events, statefulsets], verbs: [get, list]}]
`, ns))
	create(t, schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: %[1]s}
subjects: [{kind: ServiceAccount, name: reader, namespace: %[1]s}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
`, ns))
	user = "system:serviceaccount:" + ns + ":reader"
	c, _ := connect(t, Options{})
	eventually(t, func() (bool, string) {
		_, err := c.As(user).begin().listPods(t.Context(), liveSet(t, ns))
		return err == nil, fmt.Sprint(err)
	})
	return user
}

// TestAPhaseFreesAStuckStatefulSet: a later phase of what was put back waited for ever.
func TestAPhaseFreesAStuckStatefulSet(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	work, revision := stuck(t, c, ns)
	work.Objects = append(work.Objects, inPhase(1, configMap(t, ns, "a", "1")))
	freed := ""
	eventually(t, func() (bool, string) {
		results := c.Apply(t.Context(), work)
		if freed == "" {
			freed = results[0].Freed
		}
		return results[1].Action == Created, results[1].Reason
	})
	if want := "pod db-1 of revision " + revision; !strings.HasPrefix(freed, want) {
		t.Errorf("freed %q, want %q", freed, want)
	}
}
