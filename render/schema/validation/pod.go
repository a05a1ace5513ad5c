// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	"github.com/swell-sh/swell/config/document"
)

var podTypes = types{
	core + "Pod": {Self: mapping(pod)},
	core + "PodSpec": {Self: mapping(podSpec), Fields: map[string]Rule{
		"containers": every(some("container"), images), "initContainers": images,
		"nodeSelector": labels, "activeDeadlineSeconds": between(1, 1<<31-1),
		"hostname": except("", dnsLabel), "subdomain": except("", dnsLabel),
		"serviceAccountName": except("", dnsName), "nodeName": except("", dnsName), "priorityClassName": except("", dnsName), "runtimeClassName": dnsName}},
	core + "PodTemplateSpec":   {Self: mapping(podTemplate)},
	core + "HostAlias":         {Fields: map[string]Rule{"ip": ip, "hostnames": each(dnsName)}},
	core + "PodReadinessGate":  {Fields: map[string]Rule{"conditionType": labelKey}},
	core + "PodSchedulingGate": {Fields: map[string]Rule{"name": labelKey}},
	core + "PodOS":             {Fields: map[string]Rule{"name": nonEmpty}},
	core + "PodDNSConfig": {Fields: map[string]Rule{"nameservers": every(each(ip), atMost(3, "name servers")),
		"searches": every(each(texts(search)), atMost(32, "search paths"), searchLength)}},
	core + "PodDNSConfigOption": {Self: mapping(needsName), Fields: map[string]Rule{"name": nonEmpty}},
}

// pod is about a pod that nothing makes from a template.
func pod(m map[string]any) (found Flaws) {
	spec := object(m, "spec")
	if m["spec"] == nil {
		return missing("spec", "")
	}
	if len(list(spec, "ephemeralContainers")) > 0 {
		found = append(found, say("remove it: ephemeral containers are added to a running pod").at("ephemeralContainers").at("spec")...)
	}
	if text(spec, "nodeName") != "" && len(list(spec, "schedulingGates")) > 0 {
		found = append(found, say("not with schedulingGates: remove one of them").at("nodeName").at("spec")...)
	}
	for _, field := range containerLists {
		for i, item := range list(spec, field) {
			c, _ := item.(map[string]any)
			if image := text(c, "image"); image != strings.TrimSpace(image) {
				found = append(found, want("no space around it").at("image").item(i).at(field).at("spec")...)
			}
		}
	}
	return append(found, mountsUnknown(spec, nil).at("spec")...)
}

// podTemplate is about templates, wherever they are.
func podTemplate(m map[string]any) (found Flaws) {
	if m["spec"] == nil {
		return missing("spec", "")
	}
	return nil
}

// podSpec is about fields of a pod that concern each other.
func podSpec(m map[string]any) (found Flaws) {
	containers := list(m, "containers")
	for i, item := range list(m, "initContainers") {
		c, _ := item.(map[string]any)
		if name := text(c, "name"); name != "" && sameName(containers, name) >= 0 {
			found = append(found, want("another name than that of a container").at("name").item(i).at("initContainers")...)
		}
		if c != nil && text(c, "restartPolicy") != "Always" {
			found = append(found, notOfInit(c).item(i).at("initContainers")...)
		}
	}
	found = append(found, hostPorts(m)...)
	found = append(found, sleeps(m)...)
	if m["dnsPolicy"] == "None" && len(list(object(m, "dnsConfig"), "nameservers")) == 0 {
		found = append(found, say("None needs name servers in dnsConfig.nameservers").at("dnsPolicy")...)
	}
	if isTrue(m, "hostPID") && isTrue(m, "shareProcessNamespace") {
		found = append(found, say("not with hostPID: remove one of them").at("shareProcessNamespace")...)
	}
	if os := text(object(m, "os"), "name"); os != "" {
		found = append(found, ofAnotherOS(m, os)...)
	}
	return found
}

// notOfInit finds what a container that ends before the others start cannot have.
func notOfInit(c map[string]any) (found Flaws) {
	for _, field := range [...]string{"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"} {
		if c[field] != nil {
			found = append(found, say("remove it, or say restartPolicy: Always for a container that goes on beside the others").at(field)...)
		}
	}
	return found
}

// images finds containers without one.
func images(v any) (found Flaws) {
	l, _ := v.([]any)
	for i, item := range l {
		c, ok := item.(map[string]any)
		if image := c["image"]; ok && (image == nil || image == "") {
			found = append(found, missing("image", "").item(i)...)
		}
	}
	return found
}

// hostPorts finds ports of the node that two containers want, and such as are
// not the container's own on the node's network.
func hostPorts(m map[string]any) (found Flaws) {
	hostNetwork := isTrue(m, "hostNetwork")
	var taken map[[3]any]bool
	for i, item := range list(m, "containers") {
		c, _ := item.(map[string]any)
		for j, item := range list(c, "ports") {
			p, _ := item.(map[string]any)
			n, ok := whole(p["hostPort"])
			if !ok || n == 0 {
				continue
			}
			if own, ok := whole(p["containerPort"]); ok && hostNetwork && own != n {
				found = append(found, want("the same as containerPort, as with hostNetwork: true").at("hostPort").item(j).at("ports").item(i).at("containers")...)
			}
			key := [3]any{n, protocol(p), text(p, "hostIP")}
			if taken[key] {
				found = append(found, want("another port of the node than that of a port before it").at("hostPort").item(j).at("ports").item(i).at("containers")...)
			}
			if taken == nil {
				taken = map[[3]any]bool{}
			}
			taken[key] = true
		}
	}
	return found
}

// mountsUnknown finds mounts of volumes that the pod does not have. claims are
// the claims that a StatefulSet makes for each of its pods.
func mountsUnknown(spec map[string]any, claims []any) (found Flaws) {
	volumes := list(spec, "volumes")
	for _, field := range containerLists {
		for i, item := range list(spec, field) {
			c, _ := item.(map[string]any)
			for j, item := range list(c, "volumeMounts") {
				m, _ := item.(map[string]any)
				if name := text(m, "name"); name != "" && sameName(volumes, name) < 0 && !hasClaim(claims, name) {
					found = append(found, unknownVolume(volumes, claims, name).at("name").item(j).at("volumeMounts").item(i).at(field)...)
				}
			}
			for j, item := range list(c, "volumeDevices") {
				m, _ := item.(map[string]any)
				name := text(m, "name")
				k := sameName(volumes, name)
				switch {
				case name == "" || hasClaim(claims, name):
				case k < 0:
					found = append(found, unknownVolume(volumes, claims, name).at("name").item(j).at("volumeDevices").item(i).at(field)...)
				default:
					volume := volumes[k].(map[string]any)
					if volume["persistentVolumeClaim"] == nil && volume["ephemeral"] == nil {
						found = append(found, want("a volume with persistentVolumeClaim or ephemeral").at("name").item(j).at("volumeDevices").item(i).at(field)...)
					}
				}
			}
		}
	}
	return found
}

func hasClaim(claims []any, name string) bool {
	for _, item := range claims {
		claim, _ := item.(map[string]any)
		if object(claim, "metadata")["name"] == name {
			return true
		}
	}
	return false
}

func unknownVolume(volumes, claims []any, name string) Flaws {
	var known []string
	for _, item := range volumes {
		m, _ := item.(map[string]any)
		known = append(known, text(m, "name"))
	}
	for _, item := range claims {
		m, _ := item.(map[string]any)
		known = append(known, text(object(m, "metadata"), "name"))
	}
	return say("the pod has no such volume" + document.DidYouMean(name, known))
}

// search is a domain in which a pod looks for names.
func search(s string) string {
	if s == "." {
		return ""
	}
	s = strings.TrimSuffix(s, ".")
	// An underscore may begin a part, or be inside it.
	for part := range strings.SplitSeq(s, ".") {
		part = strings.TrimPrefix(part, "_")
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" ||
			strings.ContainsAny(part[:1]+part[len(part)-1:], "-_") {
			return wantName
		}
	}
	return unless(len(s) <= 253, wantName)
}

func searchLength(v any) Flaws {
	l, _ := v.([]any)
	n := len(l) - 1
	for _, item := range l {
		s, _ := item.(string)
		n += len(s)
	}
	if n > 2048 {
		return say("want at most 2048 characters together")
	}
	return nil
}

// linuxOnly are fields of a pod, and of its security context and those of its
// containers, that mean nothing on Windows.
var (
	linuxPodFields       = [...]string{"hostPID", "hostIPC", "hostUsers", "shareProcessNamespace"}
	linuxContextFields   = [...]string{"appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser", "runAsGroup", "supplementalGroups"}
	linuxContainerFields = [...]string{"appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"}
)

// ofAnotherOS finds fields that the operating system of a pod does not have.
func ofAnotherOS(m map[string]any, os string) (found Flaws) {
	refuse := func(m map[string]any, fields []string) (found Flaws) {
		for _, field := range fields {
			if v := m[field]; v != nil && v != false {
				found = append(found, say("remove it: a pod of "+os+" does not have it").at(field)...)
			}
		}
		return found
	}
	context, containers := []string{"windowsOptions"}, []string{"windowsOptions"}
	if os == "windows" {
		context, containers = linuxContextFields[:], linuxContainerFields[:]
		found = append(found, refuse(m, linuxPodFields[:])...)
	} else if os != "linux" {
		return nil
	}
	found = append(found, refuse(object(m, "securityContext"), context).at("securityContext")...)
	for _, field := range containerLists {
		for i, item := range list(m, field) {
			c, _ := item.(map[string]any)
			found = append(found, refuse(object(c, "securityContext"), containers).at("securityContext").item(i).at(field)...)
		}
	}
	return found
}
