// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/netip"
	"strings"
)

const networking = "io.k8s.api.networking.v1."

var networkTypes = types{
	networking + "Ingress":               {Self: mapping(ingress)},
	networking + "IngressSpec":           {Self: mapping(ingressSpec), Fields: map[string]Rule{"ingressClassName": dnsName}},
	networking + "IngressRule":           {Fields: map[string]Rule{"host": except("", host)}},
	networking + "IngressTLS":            {Fields: map[string]Rule{"hosts": each(texts(tlsHost)), "secretName": except("", dnsName)}},
	networking + "HTTPIngressRuleValue":  {Fields: map[string]Rule{"paths": some("path")}},
	networking + "HTTPIngressPath":       {Self: mapping(ingressPath)},
	networking + "IngressBackend":        {Self: mapping(func(m map[string]any) Flaws { return oneOf(m, []string{"service", "resource"}, "backend") }), Fields: map[string]Rule{"resource": mapping(backendResource)}},
	networking + "IngressServiceBackend": {Self: mapping(serviceBackend), Fields: map[string]Rule{"name": dnsLabel}},
	networking + "ServiceBackendPort":    {Fields: map[string]Rule{"name": except("", portName), "number": portOrNone}},
	networking + "IngressClass":          {Self: mapping(needs("spec"))},
	networking + "IngressClassSpec": {Self: mapping(needs("controller")), Fields: map[string]Rule{"controller": texts(func(s string) string {
		return unless(isDomainPath(s) && len(s) <= 250, "a name after a domain and a slash, like example.com/controller")
	})}},
	networking + "IngressClassParametersReference": {Self: mapping(classParameters), Fields: map[string]Rule{"apiGroup": dnsName, "kind": segment, "name": segment, "namespace": dnsLabel, "scope": oneText("Cluster", "Namespace")}},
	networking + "NetworkPolicySpec":               {Fields: map[string]Rule{"policyTypes": every(atMost(2, "types"), each(nonEmpty))}},
	networking + "NetworkPolicyPort":               {Self: mapping(policyPort), Fields: map[string]Rule{"port": portOrName, "endPort": port}},
	networking + "NetworkPolicyPeer":               {Self: mapping(peer)},
	networking + "IPBlock":                         {Self: mapping(block), Fields: map[string]Rule{"cidr": cidr, "except": each(cidr)}},
	networking + "IPAddressSpec":                   {Self: mapping(needs("parentRef"))},
	networking + "ParentReference":                 {Self: mapping(parent), Fields: map[string]Rule{"group": except("", dnsName), "resource": segment, "name": segment, "namespace": except("", segment)}},
	networking + "IPAddress":                       {Name: texts(strictIP)},
	networking + "ServiceCIDRSpec":                 {Self: mapping(needs("cidrs")), Fields: map[string]Rule{"cidrs": every(some("range"), atMost(2, "ranges"), each(texts(strictCIDR)))}},
}

func ingress(m map[string]any) (found Flaws) {
	if m["spec"] == nil {
		return missing("spec", "")
	}
	class, ok := object(object(m, "metadata"), "annotations")["kubernetes.io/ingress.class"]
	if other := object(m, "spec")["ingressClassName"]; ok && other != nil && !same(other, class) {
		found = append(found, say("want the same as in spec.ingressClassName, or only one of them").at("kubernetes.io/ingress.class").at("annotations").at("metadata")...)
	}
	return found
}

func ingressSpec(m map[string]any) Flaws {
	if len(list(m, "rules")) == 0 && (m["rules"] == nil || list(m, "rules") != nil) && m["defaultBackend"] == nil {
		return say("want rules or a defaultBackend")
	}
	return nil
}

func tlsHost(s string) string {
	if strings.Contains(s, "*") {
		return unless(strings.HasPrefix(s, "*.") && isDNSName(s[2:]), "a name like *.example.com")
	}
	return unless(isDNSName(s), wantName)
}

func ingressPath(m map[string]any) Flaws {
	path, isText := m["path"].(string)
	if m["path"] != nil && !isText {
		return nil
	}
	switch m["pathType"] {
	case "Exact", "Prefix":
		if !strings.HasPrefix(path, "/") {
			if m["path"] == nil {
				return missing("path", ", as the pathType is "+text(m, "pathType"))
			}
			return want("a path that starts with /").at("path")
		}
		for _, part := range [...]string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(path, part) {
				return want("a path without " + part).at("path")
			}
		}
		if strings.HasSuffix(path, "/.") || strings.HasSuffix(path, "/..") {
			return want("a path that does not end with /. or /..").at("path")
		}
	case "ImplementationSpecific":
		if path != "" && !strings.HasPrefix(path, "/") {
			return want("a path that starts with /").at("path")
		}
	case "":
		return want("one of Exact, Prefix, ImplementationSpecific").at("pathType")
	}
	return nil
}

func backendResource(m map[string]any) (found Flaws) {
	for _, field := range [...]string{"kind", "name"} {
		if m[field] == nil {
			found = append(found, missing(field, "")...)
		} else {
			found = append(found, segment(m[field]).at(field)...)
		}
	}
	return append(found, dnsName(m["apiGroup"]).at("apiGroup")...)
}

func serviceBackend(m map[string]any) Flaws {
	p := object(m, "port")
	if m["port"] != nil && p == nil {
		return nil
	}
	number, _ := whole(p["number"])
	switch name := text(p, "name"); {
	case name != "" && number != 0:
		return say("remove it, or number: a port has only one of them").at("name").at("port")
	case name == "" && number == 0 && (p["name"] == nil || p["name"] == "") && (p["number"] == nil || number == 0):
		return missing("port", ", want its name or number")
	}
	return nil
}

func classParameters(m map[string]any) Flaws {
	switch scope := text(m, "scope"); {
	case scope == "Namespace" && m["namespace"] == nil:
		return missing("namespace", ", as the scope is Namespace")
	case (scope == "Cluster" || m["scope"] == nil) && m["namespace"] != nil:
		return say("only with scope: Namespace").at("namespace")
	}
	return nil
}

func policyPort(m map[string]any) Flaws {
	end, ok := whole(m["endPort"])
	if !ok {
		return nil
	}
	first, isNumber := whole(m["port"])
	switch {
	case m["port"] == nil:
		return say("only with a port").at("endPort")
	case !isNumber:
		return say("only with a port that is a number").at("endPort")
	case end < first:
		return want("at least port").at("endPort")
	}
	return nil
}

func peer(m map[string]any) Flaws {
	selects := m["podSelector"] != nil || m["namespaceSelector"] != nil
	switch {
	case !selects && m["ipBlock"] == nil:
		return say("want podSelector, namespaceSelector or ipBlock")
	case selects && m["ipBlock"] != nil:
		return say("remove it, or the selectors: a range of addresses stands alone").at("ipBlock")
	}
	return nil
}

func block(m map[string]any) (found Flaws) {
	whole, ok := readCIDR(text(m, "cidr"))
	if !ok {
		return nil
	}
	for i, item := range list(m, "except") {
		s, _ := item.(string)
		part, ok := readCIDR(s)
		if ok && (part.Addr().Is4() != whole.Addr().Is4() || !whole.Masked().Contains(part.Masked().Addr()) || part.Bits() <= whole.Bits()) {
			found = append(found, want("a part of cidr").item(i).at("except")...)
		}
	}
	return found
}

func parent(m map[string]any) (found Flaws) {
	for _, field := range [...]string{"resource", "name"} {
		if m[field] == nil {
			found = append(found, missing(field, "")...)
		}
	}
	return found
}

// strictIP is an address as it is written in new fields.
func strictIP(s string) string {
	addr, err := netip.ParseAddr(s)
	return unless(err == nil && addr.String() == s && !addr.Is4In6() && addr.Zone() == "", "an IP address in its usual form")
}

// strictCIDR is a range as it is written in new fields.
func strictCIDR(s string) string {
	prefix, err := netip.ParsePrefix(s)
	return unless(err == nil && prefix.Masked().String() == s && !prefix.Addr().Is4In6(), "a range of addresses like 10.0.0.0/8 or 2001:db8::/32, without bits behind the prefix")
}
