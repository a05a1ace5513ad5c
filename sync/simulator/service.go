// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// serviceAddresses are those that a Service may have.
var serviceAddresses = netip.MustParsePrefix("10.96.0.0/16")

// allocate gives a Service an address, as the API server does.
func (c *Cluster) allocate(o object) field.ErrorList {
	s := o.(*corev1.Service)
	if s.Spec.Type != corev1.ServiceTypeClusterIP {
		return nil // is refused
	}
	if why := c.refusedAddress(s); why != "" {
		return field.ErrorList{field.Invalid(specPath.Child("clusterIPs"), []string{s.Spec.ClusterIP}, "failed to allocate IP "+s.Spec.ClusterIP+": "+why)}
	}
	for s.Spec.ClusterIP == "" {
		c.address++
		if ip := fmt.Sprintf("10.96.%d.%d", c.address/250, c.address%250+2); !c.isAllocated(ip) {
			s.Spec.ClusterIP = ip
		}
	}
	s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	presetPointer(&s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(s.Spec.IPFamilies) == 0 {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	return nil
}

// keepAddress keeps what was allocated and is not in the new object.
func keepAddress(o, old object) {
	now, before := &o.(*corev1.Service).Spec, old.(*corev1.Service).Spec
	preset(&now.ClusterIP, before.ClusterIP)
	if len(now.ClusterIPs) == 0 || now.ClusterIP != before.ClusterIP && slices.Equal(now.ClusterIPs, before.ClusterIPs) {
		now.ClusterIPs = []string{now.ClusterIP}
	}
	if now.IPFamilyPolicy == nil {
		now.IPFamilyPolicy = before.IPFamilyPolicy
	}
	if len(now.IPFamilies) == 0 {
		now.IPFamilies = before.IPFamilies
	}
}

// refusedAddress says why a Service may not have the address that it asks for; "" when
// it may.
func (c *Cluster) refusedAddress(s *corev1.Service) string {
	ip, err := netip.ParseAddr(s.Spec.ClusterIP)
	switch {
	case err != nil: // none, or none is wanted; what is no address is found later
		return ""
	case !serviceAddresses.Contains(ip):
		return "the provided network does not match the current range"
	case c.isAllocated(s.Spec.ClusterIP) && c.find(c.kindOf(coreV1.WithKind("Service")), keyOf(s)) == nil:
		return "provided IP is already allocated"
	}
	return ""
}

func (c *Cluster) isAllocated(ip string) bool {
	if ip == "10.96.0.1" { // of the Service kubernetes
		return true
	}
	services := c.stores[resource{"", "services"}]
	if services == nil {
		return false
	}
	for _, o := range services.objects {
		if o.(*corev1.Service).Spec.ClusterIP == ip {
			return true
		}
	}
	return false
}
