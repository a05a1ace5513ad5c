// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
)

var serviceTypes = types{
	core + "Service": {Self: mapping(service), Name: dnsLabel},
	core + "ServiceSpec": {Self: mapping(serviceSpec), Fields: map[string]Rule{"ports": servicePorts, "selector": labels, "externalIPs": each(reachable),
		"loadBalancerSourceRanges": each(texts(func(s string) string {
			_, ok := readCIDR(strings.TrimSpace(s))
			return unless(ok, "a range of addresses like 10.0.0.0/8 or 2001:db8::/32")
		})),
		"clusterIP":           texts(clusterIP),
		"loadBalancerClass":   labelKey,
		"trafficDistribution": texts(distribution),
		"ipFamilies":          families,
		"healthCheckNodePort": portOrNone,
	}},
	core + "ServicePort":    {Fields: map[string]Rule{"port": port, "nodePort": portOrNone, "targetPort": targetPort, "name": except("", dnsLabel), "appProtocol": labelKey}},
	core + "ClientIPConfig": {Fields: map[string]Rule{"timeoutSeconds": between(1, 86400)}},
}

// service is about what a Service has to have.
func service(m map[string]any) (found Flaws) {
	if m["spec"] == nil {
		return missing("spec", "")
	}
	annotations := object(object(m, "metadata"), "annotations")
	mode, hints := annotations["service.kubernetes.io/topology-mode"], annotations["service.kubernetes.io/topology-aware-hints"]
	if mode != nil && hints != nil && !same(mode, hints) {
		found = append(found, say("want the same as in service.kubernetes.io/topology-aware-hints, or only one of them").at("service.kubernetes.io/topology-mode").at("annotations").at("metadata")...)
	}
	return found
}

// serviceSpec is about fields of a Service that concern each other. ClusterIP is
// the type of one that says none.
func serviceSpec(m map[string]any) (found Flaws) {
	kind, _ := m["type"].(string)
	if kind == "" {
		if m["type"] != nil && m["type"] != "" {
			return nil
		}
		kind = "ClusterIP"
	}
	if !slices.Contains([]string{"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"}, kind) {
		return nil // which the enum says
	}
	headless := text(m, "clusterIP") == "None" || m["clusterIP"] == nil && len(list(m, "clusterIPs")) == 1 && list(m, "clusterIPs")[0] == "None"
	if len(list(m, "ports")) == 0 && (m["ports"] == nil || list(m, "ports") != nil) && !headless && kind != "ExternalName" {
		found = append(found, missing("ports", ", or clusterIP: None")...)
	}
	external := kind == "NodePort" || kind == "LoadBalancer"
	if headless && external {
		found = append(found, say("not None for the type "+kind).at("clusterIP")...)
	}
	if kind == "ExternalName" {
		found = append(found, externalName(m)...)
	}
	if ips := list(m, "clusterIPs"); len(ips) > 0 && kind != "ExternalName" {
		if s := text(m, "clusterIP"); s != "" && s != ips[0] {
			found = append(found, say("want the same as the first of clusterIPs, or only one of them").at("clusterIP")...)
		}
		if len(ips) > 2 {
			found = append(found, say("want at most 2").at("clusterIPs")...)
		}
	}
	if kind == "ClusterIP" {
		for i, item := range list(m, "ports") {
			p, _ := item.(map[string]any)
			if n, ok := whole(p["nodePort"]); ok && n != 0 {
				found = append(found, say("remove it, or say type: NodePort").at("nodePort").item(i).at("ports")...)
			}
		}
	}
	found = append(found, ofBalancer(m, kind == "LoadBalancer")...)
	if m["externalTrafficPolicy"] != nil && m["externalTrafficPolicy"] != "" && !external && (kind != "ClusterIP" || len(list(m, "externalIPs")) == 0) {
		found = append(found, say("only with type: NodePort or LoadBalancer, or externalIPs").at("externalTrafficPolicy")...)
	}
	return found
}

// ofBalancer finds fields that only a LoadBalancer has.
func ofBalancer(m map[string]any, is bool) (found Flaws) {
	if !is {
		for _, field := range [...]string{"loadBalancerClass", "allocateLoadBalancerNodePorts"} {
			if m[field] != nil {
				found = append(found, say("only with type: LoadBalancer").at(field)...)
			}
		}
		if len(list(m, "loadBalancerSourceRanges")) > 0 {
			found = append(found, say("only with type: LoadBalancer").at("loadBalancerSourceRanges")...)
		}
	}
	if n, ok := whole(m["healthCheckNodePort"]); ok && n != 0 && (!is || m["externalTrafficPolicy"] != "Local") {
		found = append(found, say("only with type: LoadBalancer and externalTrafficPolicy: Local").at("healthCheckNodePort")...)
	}
	return found
}

func externalName(m map[string]any) (found Flaws) {
	s, isText := m["externalName"].(string)
	switch {
	case m["externalName"] == nil || s == "" && isText:
		found = missing("externalName", ", as the type is ExternalName")
	case isText:
		found = dnsName(strings.TrimSuffix(s, ".")).at("externalName")
	}
	if ip := text(m, "clusterIP"); ip != "" {
		found = append(found, say("remove it: the type ExternalName has none").at("clusterIP")...)
	}
	for _, field := range [...]string{"clusterIPs", "ipFamilies"} {
		if len(list(m, field)) > 0 {
			found = append(found, say("remove it: the type ExternalName has none").at(field)...)
		}
	}
	if m["ipFamilyPolicy"] != nil {
		found = append(found, say("remove it: the type ExternalName has none").at("ipFamilyPolicy")...)
	}
	return found
}

// servicePorts are named when they are several.
func servicePorts(v any) (found Flaws) {
	l, _ := v.([]any)
	found = named(v, len(l) > 1, "port")
	for i, item := range l {
		m, _ := item.(map[string]any)
		n, ok := whole(m["nodePort"])
		if !ok || n == 0 {
			continue
		}
		for _, other := range l[:i] {
			if o, _ := other.(map[string]any); samePort(o, m, "nodePort") {
				found = append(found, want("another port of the nodes than that of a port before it").at("nodePort").item(i)...)
				break
			}
		}
	}
	return found
}

// targetPort is that of the service itself when it is 0 or empty.
func targetPort(v any) Flaws {
	if n, ok := whole(v); ok && n == 0 || v == "" {
		return nil
	}
	return portOrName(v)
}

func clusterIP(s string) string {
	return unless(s == "" || s == "None" || isIP(s), "an IP address, or None")
}

func distribution(s string) string {
	switch s {
	case "PreferClose", "PreferSameZone", "PreferSameNode":
		return ""
	}
	return "one of PreferClose, PreferSameZone, PreferSameNode"
}

func families(v any) (found Flaws) {
	l, _ := v.([]any)
	for i, item := range l {
		if s, isText := item.(string); isText && s != "IPv4" && s != "IPv6" {
			found = append(found, want("IPv4 or IPv6").item(i)...)
		}
		for _, other := range l[:i] {
			if same(other, item) {
				found = append(found, say("this family is there already: remove one of them").item(i)...)
			}
		}
	}
	return found
}

// reachable is an address that others can send to.
var reachable = texts(func(s string) string {
	if !isIP(s) {
		return "an IP address"
	}
	addr := readIP(s)
	return unless(!addr.IsUnspecified() && !addr.IsLoopback() && !addr.IsLinkLocalUnicast() && !addr.IsLinkLocalMulticast(),
		"an address that others can reach: not 0.0.0.0, loopback or link-local")
})
