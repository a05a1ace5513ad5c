// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	askInterval = 50 * time.Millisecond
	askTimeout  = 5 * time.Second // for one question
)

// client is a client of our own to the cluster, with no pace of its own.
func (c *cluster) client() (kubernetes.Interface, error) {
	a := c.access(userDevcluster)
	return kubernetes.NewForConfig(&rest.Config{
		Host:            a.Server,
		BearerToken:     a.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: a.CA},
		QPS:             -1,
		Timeout:         askTimeout,
	})
}

// await asks until nothing is missing any more. missing returns what is, in
// words, or nothing.
func await(ctx context.Context, missing func(context.Context) string) error {
	var last string
	err := wait.PollUntilContextTimeout(ctx, askInterval, startLimit, true, func(ctx context.Context) (bool, error) {
		last = missing(ctx)
		return last == "", nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("not ready after %v: %s", startLimit, last)
	}
	return err
}

// awaitEtcd returns when the etcd at url can read and write.
func awaitEtcd(ctx context.Context, url string) error {
	client := &http.Client{Timeout: askTimeout}
	err := await(ctx, func(ctx context.Context) string {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
		if err != nil {
			return err.Error()
		}
		resp, err := client.Do(req)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return resp.Status
		}
		return ""
	})
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

// awaitAPI returns when the API server has done all that it does at its start.
func awaitAPI(ctx context.Context, client kubernetes.Interface) error {
	return await(ctx, func(ctx context.Context) string {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err != nil {
			return "kube-apiserver: /readyz: " + err.Error()
		}
		return ""
	})
}

// awaitPods returns when a pod in the namespace "default" would be admitted,
// scheduled and run.
func awaitPods(ctx context.Context, client kubernetes.Interface) error {
	return await(ctx, func(ctx context.Context) string {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return "service account: " + err.Error()
		}
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return "nodes: " + err.Error()
		}
		ready := 0
		for i := range nodes.Items {
			if nodeReady(&nodes.Items[i]) {
				ready++
			}
		}
		if ready < len(nodeNames) {
			return fmt.Sprintf("nodes: %d of %d ready", ready, len(nodeNames))
		}
		return ""
	})
}

// nodeReady tells whether a pod may go to the node: it says that it is ready
// and the controller manager has taken the taint off that it was born with.
func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0
		}
	}
	return false
}
