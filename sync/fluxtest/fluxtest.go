// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package fluxtest gives tests the real kustomize-controller of Flux. What its
// source-controller would do, serve a commit as an archive, it does itself.
package fluxtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/sync/devcluster"
)

// Namespace is where Flux and its documents live.
const Namespace = "flux-system"

var (
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	// Kustomizations are those of Flux.
	Kustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	sources        = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
)

// Flux is a kustomize-controller of one cluster, that ends with its test.
type Flux struct {
	testing.TB
	client dynamic.Interface
	server *httptest.Server

	mu       sync.Mutex // guards what follows
	archives map[string][]byte
}

// Start starts the controller for a cluster, as its administrator. Its definition stands
// beside the binary.
func Start(t testing.TB, binary string, clusters *devcluster.Clusters, cluster string) *Flux {
	t.Helper()
	cfg, err := clusters.Config(cluster)
	f := &Flux{TB: t, archives: map[string][]byte{}}
	f.must(err)
	f.client, err = dynamic.NewForConfig(cfg)
	f.must(err)
	f.install(binary)
	f.server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.server.Close)
	// Of another program's context, so that it can end in peace.
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary, "--metrics-addr=0", "--health-addr=:0", "--events-addr=", "--log-encoding=console",
		"--min-retry-delay=200ms", "--interval-jitter-percentage=0", "--requeue-dependency=1s")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig(clusters.Kubeconfig, cluster), "RUNTIME_NAMESPACE="+Namespace)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	f.must(cmd.Start())
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // how it ends is of no interest
	})
	return f
}

func (f *Flux) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// kubeconfig is a copy with a cluster as its current context.
func (f *Flux) kubeconfig(file, cluster string) string {
	f.Helper()
	content, err := os.ReadFile(file)
	f.must(err)
	var all map[string]any
	f.must(yaml.Unmarshal(content, &all))
	all["current-context"] = cluster
	content, err = yaml.Marshal(all)
	f.must(err)
	copied := filepath.Join(f.TempDir(), "kubeconfig")
	f.must(os.WriteFile(copied, content, 0o600))
	return copied
}

// install makes the namespace and the definitions: that of Kustomizations is Flux's own,
// those of sources take anything.
func (f *Flux) install(binary string) {
	f.Helper()
	content, err := os.ReadFile(binary + ".yaml")
	f.must(err)
	var definition map[string]any
	f.must(yaml.Unmarshal(content, &definition))
	f.ensure(namespaces, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": Namespace}})
	f.ensure(definitions, definition)
	names := []string{"kustomizations." + Kustomizations.Group}
	for kind, plural := range map[string]string{"GitRepository": "gitrepositories", "OCIRepository": "ocirepositories", "Bucket": "buckets", "ExternalArtifact": "externalartifacts"} {
		open := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
		f.ensure(definitions, map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + sources.Group},
			"spec": map[string]any{"group": sources.Group, "scope": "Namespaced", "names": map[string]any{"kind": kind, "plural": plural},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": open, "subresources": map[string]any{"status": map[string]any{}}}}},
		})
		names = append(names, plural+"."+sources.Group)
	}
	for _, name := range names {
		f.Until(name+" is served", func() bool {
			object, err := f.client.Resource(definitions).Get(f.Context(), name, metav1.GetOptions{})
			f.must(err)
			return condition(object, "Established") == "True"
		})
	}
}

// ensure creates an object of the cluster, unless it is there.
func (f *Flux) ensure(resource schema.GroupVersionResource, object map[string]any) {
	f.Helper()
	_, err := f.client.Resource(resource).Create(f.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		f.must(err)
	}
}

// Until waits until ok.
func (f *Flux) Until(what string, ok func() bool) {
	f.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !ok(); {
		if time.Now().After(deadline) {
			f.Fatalf("%s: not within 5 minutes", what)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Publish has a GitRepository offer a folder at a revision.
func (f *Flux) Publish(name, dir, revision string) {
	f.Helper()
	archive, err := archiveOf(dir)
	f.must(err)
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(archive))
	file := name + "-" + revision + ".tar.gz"
	f.mu.Lock()
	f.archives["/"+file] = archive
	f.mu.Unlock()
	f.apply(sources, name, map[string]any{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"interval": "1m", "url": "https://git.example.com/" + name}}, "")
	f.apply(sources, name, map[string]any{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": map[string]any{"name": name},
		"status": map[string]any{"artifact": map[string]any{"url": f.server.URL + "/" + file, "path": file, "revision": "main@sha1:" + revision, "digest": digest,
			"lastUpdateTime": time.Now().UTC().Format(time.RFC3339), "size": len(archive)},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}}}, "status")
}

// Kustomization applies a Kustomization of a repository.
func (f *Flux) Kustomization(name string, spec map[string]any) {
	f.Helper()
	f.apply(Kustomizations, name, map[string]any{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"name": name}, "spec": spec}, "")
}

func (f *Flux) apply(resource schema.GroupVersionResource, name string, object map[string]any, sub string) {
	f.Helper()
	body, err := json.Marshal(object)
	f.must(err)
	force := true
	var subresources []string
	if sub != "" {
		subresources = []string{sub}
	}
	_, err = f.client.Resource(resource).Namespace(Namespace).Patch(f.Context(), name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "test", Force: &force}, subresources...)
	f.must(err)
}

// Suspend has Flux leave a Kustomization alone, or take it up again, as the flux command
// does.
func (f *Flux) Suspend(name string, suspended bool) {
	f.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspended)
	_, err := f.client.Resource(Kustomizations).Namespace(Namespace).Patch(f.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "flux"})
	f.must(err)
}

// Reconcile asks for a Kustomization to be applied now, and waits until it was.
func (f *Flux) Reconcile(name string) {
	f.Helper()
	at := time.Now().Format(time.RFC3339Nano)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, at)
	_, err := f.client.Resource(Kustomizations).Namespace(Namespace).Patch(f.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "flux"})
	f.must(err)
	f.Until(name+" is applied", func() bool {
		object, err := f.client.Resource(Kustomizations).Namespace(Namespace).Get(f.Context(), name, metav1.GetOptions{})
		f.must(err)
		handled, _, _ := unstructured.NestedString(object.Object, "status", "lastHandledReconcileAt")
		return handled == at && condition(object, "Ready") == "True"
	})
}

// Delete deletes a Kustomization, and waits until it is gone.
func (f *Flux) Delete(name string) {
	f.Helper()
	client := f.client.Resource(Kustomizations).Namespace(Namespace)
	if err := client.Delete(f.Context(), name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		f.must(err)
	}
	f.Until(name+" is gone", func() bool {
		_, err := client.Get(f.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func condition(object *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, _ := c.(map[string]any); c["type"] == kind {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}

func (f *Flux) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	archive := f.archives[r.URL.Path]
	f.mu.Unlock()
	if archive == nil {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(archive) // who is gone has no use for it
}

// archiveOf is a folder without its .git, as source-controller packs it.
func archiveOf(dir string) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".git":
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if err := packed.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Clean(filepath.ToSlash(below)), Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = packed.Write(content)
		return err
	})
	err = errors.Join(err, packed.Close(), zipped.Close())
	return out.Bytes(), err
}
