// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import "strings"

// Host is a host name that an object takes in its cluster.
type Host struct {
	// Name is in lower case and has no dot at its end. One that begins with "*." is all below.
	Name string
	// Listens says that traffic for the name comes in there, as a Gateway has it. Else it goes on
	// from there. One name mostly has one of each.
	Listens bool
	Path    []any // in the object
}

// hostFields are the fields of host names by group and kind; * stands for each item of a list.
var hostFields = map[string][]string{
	"networking.k8s.io Ingress":                {"spec.rules.*.host", "spec.tls.*.hosts.*"},
	"extensions Ingress":                       {"spec.rules.*.host", "spec.tls.*.hosts.*"},
	"gateway.networking.k8s.io Gateway":        {"spec.listeners.*.hostname"},
	"gateway.networking.k8s.io ListenerSet":    {"spec.listeners.*.hostname"},
	"gateway.networking.x-k8s.io XListenerSet": {"spec.listeners.*.hostname"},
	"gateway.networking.k8s.io HTTPRoute":      {"spec.hostnames.*"},
	"gateway.networking.k8s.io GRPCRoute":      {"spec.hostnames.*"},
	"gateway.networking.k8s.io TLSRoute":       {"spec.hostnames.*"},
	"route.openshift.io Route":                 {"spec.host"},
}

// HasHosts says whether objects of a kind may take host names.
func HasHosts(id ID) bool { return hostFields[id.Group+" "+id.Kind] != nil }

// Hosts are the host names that an object takes, in the order of its lists. An empty one, which is
// every name that nobody else has, is none.
func Hosts(id ID, content map[string]any) (hosts []Host) {
	for _, field := range hostFields[id.Group+" "+id.Kind] {
		listens := strings.HasPrefix(field, "spec.listeners.")
		textsAt(content, strings.Split(field, "."), nil, func(path []any, text string) {
			name := strings.ToLower(strings.TrimRight(text, "."))
			if spec, _ := content["spec"].(map[string]any); spec["wildcardPolicy"] == "Subdomain" { // of a Route
				_, parent, _ := strings.Cut(name, ".")
				name = "*." + parent
			}
			if name != "" {
				hosts = append(hosts, Host{name, listens, path})
			}
		})
	}
	return hosts
}

// textsAt calls a function for each text at a path, see [hostFields].
func textsAt(value any, steps []string, path []any, do func(path []any, text string)) {
	if len(steps) == 0 {
		if text, ok := value.(string); ok {
			do(path, text)
		}
		return
	}
	below := func(step, value any) { textsAt(value, steps[1:], append(path[:len(path):len(path)], step), do) }
	switch v := value.(type) {
	case map[string]any:
		below(steps[0], v[steps[0]])
	case []any:
		for i, item := range v {
			if steps[0] == "*" {
				below(i, item)
			}
		}
	}
}

// Wildcards are the wildcards that a host name falls under, the nearest first.
func Wildcards(name string) (list []string) {
	name = strings.TrimPrefix(name, "*.")
	for {
		_, parent, found := strings.Cut(name, ".")
		if !found {
			return list
		}
		list, name = append(list, "*."+parent), parent
	}
}
