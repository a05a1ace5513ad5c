// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/devcluster"
)

// Live reads one cluster behind swell's back, as anybody could.
type Live struct {
	Client dynamic.Interface
	http   *http.Client
	host   string
}

// Connect makes a connection to one of the clusters, with the rights that their kubeconfig gives there.
func Connect(clusters *devcluster.Clusters, name string) (*Live, error) {
	cfg, err := clusters.Config(name)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	return &Live{client, httpClient, cfg.Host}, nil
}

// Applies reads from the API server's own metrics how many server-side applies
// it has taken, without those that it sends itself about its flow control.
func (l *Live) Applies(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.host+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := l.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s/metrics: %s", l.host, response.Status)
	}
	total := 0
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `verb="APPLY"`) || strings.Contains(line, "flowcontrol") {
			continue
		}
		count, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("%s/metrics: %q: %w", l.host, line, err)
		}
		total += int(count)
	}
	return total, lines.Err()
}

var (
	Deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	// Kinds are the resources that the example renders to.
	Kinds = []schema.GroupVersionResource{Deployments,
		{Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "resourcequotas"}, {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
		{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
		{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Version: "v1", Resource: "serviceaccounts"}, {Version: "v1", Resource: "limitranges"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Group: "apps", Version: "v1", Resource: "daemonsets"},
		{Group: "batch", Version: "v1", Resource: "jobs"},
		{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	}
)

// Managed counts the objects that carry swell's label and its field manager.
func (l *Live) Managed(ctx context.Context) (int, error) {
	n := 0
	for _, resource := range Kinds {
		list, err := l.Client.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: config.AppliedSelector})
		if err != nil {
			return 0, err
		}
		for _, object := range list.Items {
			for _, entry := range object.GetManagedFields() {
				if entry.Manager == "swell" && entry.Operation == metav1.ManagedFieldsOperationApply {
					n++
				}
			}
		}
	}
	return n, nil
}

// Deployment is what the story tells of a Deployment.
type Deployment struct {
	Image    string
	Replicas int64
	// Writes is the metadata.generation, which counts changes of the spec.
	Writes int64
	Ready  int64
}

// Deployment reads one.
func (l *Live) Deployment(ctx context.Context, namespace, name string) (Deployment, error) {
	object, err := l.Client.Resource(Deployments).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Deployment{}, err
	}
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		return Deployment{}, fmt.Errorf("deployment %s/%s: no containers: %w", namespace, name, err)
	}
	d := Deployment{Writes: object.GetGeneration()}
	d.Image, _, _ = unstructured.NestedString(containers[0].(map[string]any), "image")
	d.Replicas, _, _ = unstructured.NestedInt64(object.Object, "spec", "replicas")
	d.Ready, _, _ = unstructured.NestedInt64(object.Object, "status", "readyReplicas")
	return d, nil
}

// UnreadyDeployments counts those with fewer ready pods than wanted.
func (l *Live) UnreadyDeployments(ctx context.Context) (unready, total int, err error) {
	list, err := l.Client.Resource(Deployments).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, err
	}
	for _, object := range list.Items {
		want, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
		ready, _, _ := unstructured.NestedInt64(object.Object, "status", "readyReplicas")
		if ready < want {
			unready++
		}
	}
	return unready, len(list.Items), nil
}

// Generations are the Deployments that carry swell's label, with how often their spec was
// changed.
func (l *Live) Generations(ctx context.Context) ([]string, error) {
	list, err := l.Client.Resource(Deployments).List(ctx, metav1.ListOptions{LabelSelector: config.AppliedSelector})
	if err != nil {
		return nil, err
	}
	var all []string
	for _, object := range list.Items {
		all = append(all, fmt.Sprintf("%s/%s %s %d", object.GetNamespace(), object.GetName(), object.GetUID(), object.GetGeneration()))
	}
	return all, nil
}

// Edit changes a Deployment the way kubectl edit would.
func (l *Live) Edit(ctx context.Context, namespace, name string, patch any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = l.Client.Resource(Deployments).Namespace(namespace).Patch(ctx, name, types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: "kubectl-edit"})
	return err
}
