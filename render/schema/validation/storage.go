// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"reflect"
	"strings"
)

const storage = "io.k8s.api.storage.v1."

var storageTypes = types{
	storage + "StorageClass": {Fields: map[string]Rule{"provisioner": provisioner, "parameters": parameters, "reclaimPolicy": texts(func(s string) string {
		return unless(s == "" || s == "Delete" || s == "Retain", "Delete or Retain")
	}), "allowedTopologies": topologies}},
	storage + "VolumeAttributesClass":         {Self: mapping(needs("parameters")), Fields: map[string]Rule{"driverName": provisioner, "parameters": every(some("parameter"), parameters)}},
	storage + "CSIDriver":                     {Name: driver, Optional: []string{"spec"}},
	storage + "CSIDriverSpec":                 {Fields: map[string]Rule{"tokenRequests": tokens, "volumeLifecycleModes": each(texts(lifecycleMode)), "fsGroupPolicy": oneText("File", "None", "ReadWriteOnceWithFSType")}},
	storage + "TokenRequest":                  {Fields: map[string]Rule{"expirationSeconds": tokenSeconds}, Optional: []string{"audience"}},
	storage + "CSIStorageCapacity":            {Fields: map[string]Rule{"storageClassName": dnsName, "capacity": notNegative}},
	core + "TopologySelectorTerm":             {Fields: map[string]Rule{"matchLabelExpressions": every(each(mapping(topologyValues)), onlyOnce("key", "this key is there already: put all values into one item"))}},
	core + "TopologySelectorLabelRequirement": {Fields: map[string]Rule{"key": labelKey, "values": some("value")}},
}

var provisioner = every(nonEmpty, except("", anyCaseKey))

func parameters(v any) Flaws {
	m, _ := v.(map[string]any)
	size := 0
	for k, v := range m {
		if k == "" {
			return say("want a name for each parameter")
		}
		s, _ := v.(string)
		size += len(k) + len(s)
	}
	if len(m) > 512 || size > 256<<10 {
		return say("want at most 512 parameters and 256 KiB")
	}
	return nil
}

func tokens(v any) (found Flaws) {
	l, _ := v.([]any)
	for i, item := range l {
		m, _ := item.(map[string]any)
		for _, other := range l[:i] {
			if o, _ := other.(map[string]any); m != nil && o != nil && text(o, "audience") == text(m, "audience") {
				found = append(found, say("this audience is there already: remove one of them").at("audience").item(i)...)
				break
			}
		}
	}
	return found
}

func lifecycleMode(s string) string {
	return unless(s == "Persistent" || s == "Ephemeral", "Persistent or Ephemeral")
}

func topologyValues(m map[string]any) (found Flaws) {
	values := list(m, "values")
	for i, v := range values {
		for _, other := range values[:i] {
			if same(v, other) {
				found = append(found, say("this value is there already: remove one of them").item(i).at("values")...)
				break
			}
		}
	}
	return found
}

// topologies need a condition each.
func topologies(v any) (found Flaws) {
	l, _ := v.([]any)
	for i, item := range l {
		m, ok := item.(map[string]any)
		if ok && len(list(m, "matchLabelExpressions")) == 0 && (m["matchLabelExpressions"] == nil || list(m, "matchLabelExpressions") != nil) {
			found = append(found, missing("matchLabelExpressions", "").item(i)...)
		}
		for _, other := range l[:i] {
			if o, _ := other.(map[string]any); m != nil && o != nil && reflect.DeepEqual(o["matchLabelExpressions"], m["matchLabelExpressions"]) {
				found = append(found, say("this term is there already: remove one of them").item(i)...)
				break
			}
		}
	}
	return found
}

const scheduling = "io.k8s.api.scheduling.v1."

const highestPriority = 1_000_000_000 // of those that users may have

var miscellaneousTypes = types{
	scheduling + "PriorityClass":      {Self: mapping(priorityClass)},
	"io.k8s.api.node.v1.RuntimeClass": {Fields: map[string]Rule{"handler": dnsLabel}},
	"io.k8s.api.node.v1.Scheduling":   {Fields: map[string]Rule{"nodeSelector": labels, "tolerations": uniqueTolerations}},
	"io.k8s.api.node.v1.Overhead": {Fields: map[string]Rule{"podFixed": func(v any) Flaws {
		m, _ := v.(map[string]any)
		return containerResources(map[string]any{"limits": m}).below("limits")
	}}},
	"io.k8s.api.coordination.v1.LeaseSpec": {Fields: map[string]Rule{"leaseDurationSeconds": positive, "leaseTransitions": count}},
}

func uniqueTolerations(v any) (found Flaws) {
	l, _ := v.([]any)
	for i, item := range l {
		m, _ := item.(map[string]any)
		for _, other := range l[:i] {
			o, _ := other.(map[string]any)
			if m != nil && o != nil && text(m, "key") == text(o, "key") && text(m, "operator") == text(o, "operator") && text(m, "value") == text(o, "value") && text(m, "effect") == text(o, "effect") {
				found = append(found, say("this toleration is there already: remove one of them").item(i)...)
				break
			}
		}
	}
	return found
}

// below takes the first step off each path, which is a key.
func (f Flaws) below(key string) Flaws {
	for i := range f {
		if len(f[i].Path) > 0 && f[i].Path[0] == key {
			f[i].Path = f[i].Path[1:]
		}
	}
	return f
}

func priorityClass(m map[string]any) Flaws {
	name := text(object(m, "metadata"), "name")
	value := integer(m, "value", 0)
	if !strings.HasPrefix(name, "system-") {
		if value > highestPriority {
			return want("at most 1000000000").at("value")
		}
		return nil
	}
	if name != "system-node-critical" && name != "system-cluster-critical" {
		return want("a name without system- in front, which is for the system").at("name").at("metadata")
	}
	return nil
}
