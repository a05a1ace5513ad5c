// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

const discovery = "io.k8s.api.discovery.v1."

var endpointTypes = types{
	core + "EndpointSubset": {Self: mapping(func(m map[string]any) Flaws {
		if len(list(m, "addresses")) == 0 && len(list(m, "notReadyAddresses")) == 0 {
			return say("want addresses or notReadyAddresses")
		}
		return nil
	}), Fields: map[string]Rule{"ports": func(v any) (found Flaws) {
		l, _ := v.([]any)
		for i, item := range l {
			if m, ok := item.(map[string]any); ok && len(l) > 1 && text(m, "name") == "" {
				found = append(found, want("a name for each of several ports").item(i)...)
			}
		}
		return found
	}}},
	core + "EndpointAddress":    {Fields: map[string]Rule{"ip": reachable, "hostname": except("", dnsLabel), "nodeName": dnsName}},
	core + "EndpointPort":       {Fields: map[string]Rule{"port": port, "name": except("", dnsLabel), "appProtocol": labelKey}},
	discovery + "EndpointSlice": {Self: mapping(endpointSlice), Fields: map[string]Rule{"endpoints": atMost(1000, "endpoints")}},
	discovery + "Endpoint":      {Fields: map[string]Rule{"addresses": every(some("address"), atMost(100, "addresses")), "nodeName": dnsName, "hostname": dnsLabel}},
	discovery + "EndpointPort":  {Fields: map[string]Rule{"name": except("", dnsLabel), "appProtocol": labelKey}},
	discovery + "EndpointHints": {Fields: map[string]Rule{"forZones": atMost(8, "zones")}},
	discovery + "ForZone":       {Fields: map[string]Rule{"name": labelValue}},
}

// endpointSlice holds addresses against their type.
func endpointSlice(m map[string]any) (found Flaws) {
	kind := text(m, "addressType")
	for i, item := range list(m, "endpoints") {
		endpoint, _ := item.(map[string]any)
		for j, item := range list(endpoint, "addresses") {
			s, isText := item.(string)
			if !isText {
				continue
			}
			f := Flaws(nil)
			switch {
			case kind == "IPv4" && (!isIP(s) || !readIP(s).Is4()), kind == "IPv6" && (!isIP(s) || readIP(s).Is4()):
				f = want("an address of " + kind)
			case kind == "IPv4" || kind == "IPv6":
				f = reachable(s)
			}
			found = append(found, f.item(j).at("addresses").item(i).at("endpoints")...)
		}
	}
	ports := list(m, "ports")
	for i, item := range ports {
		p, _ := item.(map[string]any)
		for _, other := range ports[:i] {
			if o, _ := other.(map[string]any); p != nil && o != nil && text(o, "name") == text(p, "name") {
				found = append(found, want("another name than that of a port before it").at("name").item(i).at("ports")...)
				break
			}
		}
	}
	return found
}
