// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// allocate gives a Service an address, as the API server does.
func (c *Cluster) allocate(o object) {
	s := o.(*corev1.Service)
	if s.Spec.Type != corev1.ServiceTypeClusterIP {
		return // is refused
	}
	if s.Spec.ClusterIP == "" {
		c.address++
		s.Spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", c.address/250, c.address%250+1)
	}
	s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	presetPointer(&s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(s.Spec.IPFamilies) == 0 {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
}

// keepAddress keeps what was allocated and is not in the new object.
func keepAddress(o, old object) {
	now, before := &o.(*corev1.Service).Spec, old.(*corev1.Service).Spec
	preset(&now.ClusterIP, before.ClusterIP)
	if len(now.ClusterIPs) == 0 {
		now.ClusterIPs = []string{now.ClusterIP}
	}
	if now.IPFamilyPolicy == nil {
		now.IPFamilyPolicy = before.IPFamilyPolicy
	}
	if len(now.IPFamilies) == 0 {
		now.IPFamilies = before.IPFamilies
	}
}
