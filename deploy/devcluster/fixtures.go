// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// nodeNames are the nodes of every cluster, each in a zone of its own.
var nodeNames = []string{"node-1", "node-2"}

// Names that stages.yaml knows too.
const (
	storageClass       = "standard"
	storageProvisioner = "devcluster.swell.sh"
)

// createFixtures makes the objects that a new cluster would get from its
// machines and from whoever set it up.
func createFixtures(ctx context.Context, client kubernetes.Interface) error {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        storageClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner: storageProvisioner,
	}
	if _, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("storage class %s: %w", storageClass, err)
	}
	for i, name := range nodeNames {
		if _, err := client.CoreV1().Nodes().Create(ctx, newNode(name, i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
	}
	return nil
}

// newNode is what a kubelet would say of its machine. kwok adds the rest: that
// it is ready, and how much room it has (stages.yaml).
func newNode(name string, index int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:     name,
				corev1.LabelOSStable:     "linux",
				corev1.LabelArchStable:   "amd64",
				corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", index+1),
			},
		},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", index+11)},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          kubernetesVersion(),
				ContainerRuntimeVersion: "kwok://0",
				OSImage:                 "none (simulated by kwok)",
				OperatingSystem:         "linux",
				Architecture:            "amd64",
			},
		},
	}
}
