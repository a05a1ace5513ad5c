// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

var containerTypes = types{
	core + "Container": {Self: mapping(container), Fields: map[string]Rule{
		"name": dnsLabel, "ports": uniquePortNames, "resources": mapping(containerResources), "volumeDevices": onlyOnce("name", "this volume is there already: remove one of them")}},
	core + "EphemeralContainer": {Fields: map[string]Rule{"name": dnsLabel}},
	core + "ContainerPort":      {Fields: map[string]Rule{"containerPort": port, "hostPort": portOrNone, "name": except("", portName)}},
	core + "EnvVar":             {Self: mapping(envVar), Fields: map[string]Rule{"name": env}},
	core + "EnvVarSource":       {Self: mapping(envSource)},
	core + "EnvFromSource": {Self: mapping(envFrom), Fields: map[string]Rule{
		"prefix": except("", env), "configMapRef": nameOf(prefix), "secretRef": nameOf(prefix)}},
	core + "ConfigMapKeySelector":  {Self: mapping(needsName), Fields: map[string]Rule{"key": fileName, "name": dnsName}},
	core + "SecretKeySelector":     {Self: mapping(needsName), Fields: map[string]Rule{"key": fileName, "name": dnsName}},
	core + "ResourceFieldSelector": {Self: mapping(resourceField)},
	core + "VolumeMount": {Self: mapping(mount), Fields: map[string]Rule{
		"name": nonEmpty, "mountPath": nonEmpty, "subPath": relative, "subPathExpr": relative, "recursiveReadOnly": oneText("Disabled", "Enabled", "IfPossible")}},
	core + "VolumeDevice": {Fields: map[string]Rule{"name": nonEmpty, "devicePath": every(nonEmpty, texts(func(s string) string {
		return unless(!hasBackstep(s), "a path without ..")
	}))}},
}

// container is about fields of a container that concern each other.
func container(m map[string]any) (found Flaws) {
	if security := object(m, "securityContext"); !isTrue(security, "privileged") {
		for i, item := range list(m, "volumeMounts") {
			below, _ := item.(map[string]any)
			if below["mountPropagation"] == "Bidirectional" {
				found = append(found, say("only a container with securityContext.privileged may have Bidirectional").at("mountPropagation").item(i).at("volumeMounts")...)
			}
		}
	}
	devices := list(m, "volumeDevices")
	for i, item := range devices {
		device, _ := item.(map[string]any)
		for _, other := range list(m, "volumeMounts") {
			mount, _ := other.(map[string]any)
			if name := text(device, "name"); name != "" && name == text(mount, "name") {
				found = append(found, say("this volume is in volumeMounts as well: remove one of them").at("name").item(i).at("volumeDevices")...)
			} else if path := text(device, "devicePath"); path != "" && path == text(mount, "mountPath") {
				found = append(found, say("this path is in volumeMounts as well: remove one of them").at("devicePath").item(i).at("volumeDevices")...)
			}
		}
	}
	return found
}

// uniquePortNames leaves ports that are there twice to the keys of their list.
func uniquePortNames(v any) Flaws { return named(v, false, "containerPort") }

// named finds ports of one name, and where each needs one those without.
func named(v any, needed bool, number string) (found Flaws) {
	l, _ := v.([]any)
	for i, item := range l {
		m, _ := item.(map[string]any)
		name := text(m, "name")
		switch {
		case m == nil || len(l) == 1:
		case name == "" && needed:
			found = append(found, Flaws{{Want: "a name for each of several ports"}}.item(i)...)
		case name != "":
			if j := sameName(l[:i], name); j >= 0 && !samePort(l[j], m, number) {
				found = append(found, Flaws{{Want: fmt.Sprintf("another name than that of item %d", j)}}.item(i)...)
			}
		}
	}
	return found
}

// sameName is the index of the first item with a name; -1 where there is none.
func sameName(l []any, name string) int {
	for i, item := range l {
		if m, ok := item.(map[string]any); ok && m["name"] == name {
			return i
		}
	}
	return -1
}

func samePort(item any, m map[string]any, number string) bool {
	other, _ := item.(map[string]any)
	a, _ := whole(other[number])
	b, ok := whole(m[number])
	return ok && a == b && protocol(other) == protocol(m)
}

func protocol(m map[string]any) string {
	if p := text(m, "protocol"); p != "" {
		return p
	}
	return "TCP"
}

func envVar(m map[string]any) Flaws {
	if m["valueFrom"] != nil && text(m, "value") != "" {
		return say("remove it, or value: a variable has only one of them").at("valueFrom")
	}
	return nil
}

var envSources = []string{"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"}

// podFields are what a variable may have of its pod.
var podFields = map[string]bool{"metadata.name": true, "metadata.namespace": true, "metadata.uid": true, "spec.nodeName": true, "spec.host": true,
	"spec.serviceAccountName": true, "status.hostIP": true, "status.hostIPs": true, "status.podIP": true, "status.podIPs": true}

func envSource(m map[string]any) Flaws {
	if f := oneOf(m, envSources, "source"); f != nil {
		return f
	}
	return fieldRef(object(m, "fieldRef"), podFields, "one of metadata.name, metadata.namespace, metadata.uid, metadata.labels['KEY'], metadata.annotations['KEY'], "+
		"spec.nodeName, spec.serviceAccountName, status.hostIP, status.podIP").at("fieldRef")
}

// fieldRef is about the field of a pod that something else refers to.
func fieldRef(m map[string]any, known map[string]bool, wanted string) Flaws {
	path, isText := m["fieldPath"].(string)
	if !isText {
		return nil
	}
	if version := text(m, "apiVersion"); version != "" && version != "v1" {
		return want("v1").at("apiVersion")
	}
	if base, subscript, ok := strings.Cut(path, "['"); ok && strings.HasSuffix(subscript, "']") {
		subscript = strings.TrimSuffix(subscript, "']")
		if base == "metadata.labels" && document.IsKey(subscript) || base == "metadata.annotations" && document.IsKey(strings.ToLower(subscript)) {
			return nil
		}
	} else if known[path] {
		return nil
	}
	return want(wanted).at("fieldPath")
}

func envFrom(m map[string]any) Flaws {
	return oneOf(m, []string{"configMapRef", "secretRef"}, "source")
}

// nameOf makes a rule for references that need a name.
func nameOf(rule Rule) Rule {
	return mapping(func(m map[string]any) Flaws {
		if text(m, "name") == "" {
			return missing("name", "")
		}
		return rule(m["name"]).at("name")
	})
}

func needsName(m map[string]any) Flaws {
	if m["name"] == nil {
		return missing("name", "")
	}
	return nil
}

// resourceField is about a resource of a container that something refers to.
func resourceField(m map[string]any) Flaws {
	name, isText := m["resource"].(string)
	if !isText {
		return nil
	}
	kind, what, _ := strings.Cut(name, ".")
	known := what == "cpu" || what == "memory" || what == "ephemeral-storage" || strings.HasPrefix(what, "hugepages-")
	if kind != "limits" && kind != "requests" || !known {
		return want("one of limits.cpu, limits.memory, limits.ephemeral-storage, requests.cpu, requests.memory, requests.ephemeral-storage").at("resource")
	}
	divisor, ok := quantity(m["divisor"])
	if !ok || divisor.IsZero() {
		return nil
	}
	s := divisor.String()
	if what == "cpu" && s != "1" && s != "1m" {
		return want("1 or 1m").at("divisor")
	}
	if what != "cpu" && !byteDivisors[s] {
		return want("1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi or 1Ei").at("divisor")
	}
	return nil
}

var byteDivisors = map[string]bool{"1": true, "1k": true, "1M": true, "1G": true, "1T": true, "1P": true, "1E": true,
	"1Ki": true, "1Mi": true, "1Gi": true, "1Ti": true, "1Pi": true, "1Ei": true}

// mount is about fields of one volume mount that concern each other.
func mount(m map[string]any) Flaws {
	if text(m, "subPath") != "" && text(m, "subPathExpr") != "" {
		return say("remove it, or subPath: a mount has only one of them").at("subPathExpr")
	}
	if recursive := text(m, "recursiveReadOnly"); recursive == "Enabled" || recursive == "IfPossible" {
		if !isTrue(m, "readOnly") {
			return say("only with readOnly: true").at("recursiveReadOnly")
		}
		if p := text(m, "mountPropagation"); p != "" && p != "None" {
			return say("not with mountPropagation: remove one of them").at("recursiveReadOnly")
		}
	}
	return nil
}

// containerResources is about what a container asks for and may have. What it
// does not ask for is what it may have.
func containerResources(m map[string]any) (found Flaws) {
	limits, requests := object(m, "limits"), object(m, "requests")
	pages, other := false, false
	look := func(field string, quantities map[string]any) {
		for name, amount := range quantities {
			if amount == nil {
				continue
			}
			pages = pages || strings.HasPrefix(name, hugePages)
			other = other || name == "cpu" || name == "memory"
			if wrong := containerResource(name); wrong != "" {
				found = append(found, Flaws{{Say: wrong}}.at(name).at(field)...)
			} else if f := amountOf(name, amount); f != nil {
				found = append(found, f.at(name).at(field)...)
			}
		}
	}
	look("limits", limits)
	look("requests", requests)
	for name, asked := range requests {
		limit := limits[name]
		switch {
		case asked == nil:
		case limit != nil && exceeds(asked, limit):
			found = append(found, Flaws{{Want: "at most the limit of " + name, Got: true}}.at(name).at("requests")...)
		case limit == nil && !canOvercommit(name):
			found = append(found, say("want a limit as well: there is no more of it than what is asked for").at(name).at("requests")...)
		case limit != nil && !canOvercommit(name) && exceeds(limit, asked):
			found = append(found, Flaws{{Want: "the same as the limit of " + name, Got: true}}.at(name).at("requests")...)
		}
	}
	if pages && !other {
		found = append(found, say("huge pages need cpu or memory beside them")...)
	}
	return found
}

const hugePages = "hugepages-"

// containerResource says what is wrong with the name of a resource; empty when
// it is good.
func containerResource(name string) string {
	switch {
	case name == "cpu" || name == "memory" || name == "ephemeral-storage" || strings.HasPrefix(name, hugePages) && document.IsKey(name):
		return ""
	case !strings.Contains(name, "/"):
		return "no such resource" + document.DidYouMean(name, []string{"cpu", "memory", "ephemeral-storage"})
	case !document.IsKey(name):
		return "want " + document.WantKey
	case strings.Contains(name, "kubernetes.io/"):
		return ""
	case strings.HasPrefix(name, "requests.") || !document.IsKey("requests."+name):
		return "want the name of an extended resource, like example.com/device"
	}
	return ""
}

// amountOf is about the quantity of a resource.
func amountOf(name string, amount any) Flaws {
	if isNegative(amount) {
		return want("at least 0")
	}
	if isWholeResource(name) {
		if q, ok := quantity(amount); ok && q.MilliValue()%1000 != 0 {
			return want("a whole number")
		}
	}
	if size, ok := strings.CutPrefix(name, hugePages); ok {
		page, err := ParseQuantity(size)
		q, ok := quantity(amount)
		if err != nil || page.Sign() <= 0 || page.MilliValue()%1000 != 0 || ok && q.Value()%page.Value() != 0 {
			return want("a multiple of the size of a page, as in the resource's name")
		}
	}
	return nil
}

// canOvercommit says whether one may ask for less of a resource than one may have.
func canOvercommit(name string) bool {
	return !strings.HasPrefix(name, hugePages) && (!strings.Contains(name, "/") || strings.Contains(name, "kubernetes.io/"))
}

// isWholeResource says whether a resource is counted.
func isWholeResource(name string) bool {
	switch name {
	case "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
		"services.nodeports", "services.loadbalancers":
		return true
	}
	return isExtended(name)
}

func isExtended(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, "kubernetes.io/") && !strings.HasPrefix(name, "requests.")
}
