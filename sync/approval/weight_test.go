// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"testing"

	"github.com/swell-sh/swell/render/object"
)

func TestWeights(t *testing.T) {
	for _, test := range []struct {
		group, kind string
		want        Weight
	}{
		{"", "Namespace", Heavy}, {"", "PersistentVolume", Heavy}, {"", "PersistentVolumeClaim", Heavy},
		{"apiextensions.k8s.io", "CustomResourceDefinition", Heavy}, {"storage.k8s.io", "StorageClass", Heavy},
		{"networking.k8s.io", "IngressClass", Heavy}, {"scheduling.k8s.io", "PriorityClass", Heavy}, {"node.k8s.io", "RuntimeClass", Heavy},
		{"gateway.networking.k8s.io", "GatewayClass", Heavy}, {"snapshot.storage.k8s.io", "VolumeSnapshotClass", Heavy},
		{"apps", "StatefulSet", Anchor}, {"apiregistration.k8s.io", "APIService", Anchor},
		{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", Anchor}, {"admissionregistration.k8s.io", "MutatingWebhookConfiguration", Anchor},
		{"admissionregistration.k8s.io", "ValidatingAdmissionPolicy", Anchor}, {"admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", Anchor},
		{"", "ConfigMap", Light}, {"", "Secret", Light}, {"apps", "Deployment", Light}, {"example.com", "Namespace", Light}, {"", "Class", Heavy},
	} {
		id := object.ID{Group: test.group, Kind: test.kind, Name: "a"}
		if got := WeightOf(id); got != test.want {
			t.Errorf("%s: got %d, want %d", id, got, test.want)
		}
	}
}
