// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// argoCD applies objects as Argo CD does (argo-cd.readthedocs.io, resource tracking and
// sync options): each with its tracking annotation, as kubectl apply does from the client's
// side, or by server-side apply where the Application asks for it.
type argoCD struct {
	*world
	cluster    string
	app        string
	serverSide bool
}

const argoManager = "argocd-controller"

// sync applies the objects.
func (a *argoCD) sync(objects []*unstructured.Unstructured) {
	a.Helper()
	for _, o := range objects {
		o = o.DeepCopy()
		gvk := o.GroupVersionKind()
		o.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": fmt.Sprintf("%s:%s/%s:%s/%s", a.app, gvk.Group, gvk.Kind, o.GetNamespace(), o.GetName())})
		var client dynamic.ResourceInterface = a.client(a.cluster).Resource(migrated[gvk.Kind])
		if gvk.Kind != "Namespace" {
			client = a.client(a.cluster).Resource(migrated[gvk.Kind]).Namespace(o.GetNamespace())
		}
		if a.serverSide {
			_, err := client.Apply(a.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: argoManager, Force: true})
			a.must(err)
			continue
		}
		a.must(a.fromClient(client, o, gvk))
	}
}

// fromClient is kubectl apply: a patch of what was applied last, what is to be, and what is.
func (a *argoCD) fromClient(client dynamic.ResourceInterface, o *unstructured.Unstructured, gvk schema.GroupVersionKind) error {
	const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	annotations := o.GetAnnotations()
	annotations[lastApplied] = string(text)
	o.SetAnnotations(annotations)
	live, err := client.Get(a.Context(), o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(a.Context(), o, metav1.CreateOptions{FieldManager: argoManager})
		return err
	}
	if err != nil {
		return err
	}
	original := []byte(live.GetAnnotations()[lastApplied])
	modified, err := json.Marshal(o)
	if err != nil {
		return err
	}
	current, err := json.Marshal(live)
	if err != nil {
		return err
	}
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		return err
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, meta, true)
	if err != nil {
		return err
	}
	_, err = client.Patch(a.Context(), o.GetName(), types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: argoManager})
	return err
}

// argoObjects are those of an overlay, as Argo CD gets them from kustomize. The overlay of
// dev-1 patches the ConfigMap.
func (m *migration) argoObjects(cluster string) (objects []*unstructured.Unstructured) {
	m.Helper()
	for _, file := range []string{"namespace.yaml", "web.yaml"} {
		text, err := os.ReadFile(filepath.Join(m.repo(), "apps/base/web", file))
		m.must(err)
		for _, document := range strings.Split(string(text), "---\n") {
			o := &unstructured.Unstructured{}
			m.must(yaml.Unmarshal([]byte(document), &o.Object))
			if o.GetKind() == "ConfigMap" && cluster == "dev-1" {
				m.must(unstructured.SetNestedField(o.Object, "one", "data", "cluster"))
			}
			objects = append(objects, o)
		}
	}
	return objects
}

// TestTakeOverFromArgoCD: two clusters go from Argo CD to swell and back, one where Argo CD
// applied from the client's side and one where it applied from the server's. Nothing is
// deleted, made anew or changed at any moment.
func TestTakeOverFromArgoCD(t *testing.T) {
	m := newMigration(t)
	argo := map[string]*argoCD{}
	for cluster := range migrationSites {
		argo[cluster] = &argoCD{world: m.world, cluster: cluster, app: "apps", serverSide: cluster == "dev-2"}
		argo[cluster].sync(m.argoObjects(cluster))
		m.until("the Deployment has its pods", func() bool { return m.seen(cluster, m.ns)["ReplicaSet"] != "" })
		m.before[cluster] = m.seen(cluster, m.ns)
	}
	m.want("the owners by Argo CD", m.managersOf("dev-1", m.ns), "argocd-controller argocd.argoproj.io/tracking-id kubectl.kubernetes.io/last-applied-configuration")
	m.want("the owners by Argo CD", m.managersOf("dev-2", m.ns), "argocd-controller argocd.argoproj.io/tracking-id")
	m.takeOver()

	// And back: on dev-1 Argo CD syncs first, on dev-2 swell lets go first.
	argo["dev-1"].sync(m.argoObjects("dev-1"))
	m.same("synced by Argo CD again")
	m.release()
	for cluster := range migrationSites {
		argo[cluster].sync(m.argoObjects(cluster))
		if owners := m.managersOf(cluster, m.ns); !strings.Contains(owners, "tracking-id") {
			t.Errorf("%s: the owners by Argo CD again: %s", cluster, owners)
		}
	}
	m.same("with Argo CD again")
}
