// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import "strings"

const maxID = 1<<31 - 1 // of users and groups

var securityTypes = types{
	core + "SecurityContext": {Self: mapping(securityContext), Fields: map[string]Rule{"runAsUser": id, "runAsGroup": id}},
	core + "PodSecurityContext": {Fields: map[string]Rule{"runAsUser": id, "runAsGroup": id, "fsGroup": id, "supplementalGroups": each(id),
		"sysctls": each(mapping(sysctl))}},
	core + "SeccompProfile": {Self: mapping(localProfile), Fields: map[string]Rule{"type": nonEmpty, "localhostProfile": relative}},
	core + "AppArmorProfile": {Self: mapping(localProfile), Fields: map[string]Rule{"type": nonEmpty, "localhostProfile": texts(func(s string) string {
		return unless(s != "" && len(s) <= 4095 && s == strings.TrimSpace(s), "the name of a profile, without spaces around it")
	})}},
	core + "WindowsSecurityContextOptions": {Fields: map[string]Rule{"gmsaCredentialSpecName": dnsName, "gmsaCredentialSpec": nonEmpty, "runAsUserName": nonEmpty}},
}

// id is the number of a user or a group.
var id = Rule(func(v any) Flaws {
	if n, ok := whole(v); ok && (n < 0 || n > maxID) {
		return want("a number from 0 to 2147483647")
	}
	return nil
})

func securityContext(m map[string]any) Flaws {
	if m["allowPrivilegeEscalation"] != false {
		return nil
	}
	if isTrue(m, "privileged") {
		return say("not with privileged: true, which allows it").at("allowPrivilegeEscalation")
	}
	for _, capability := range list(object(m, "capabilities"), "add") {
		if capability == "CAP_SYS_ADMIN" {
			return say("not with the capability CAP_SYS_ADMIN, which allows it").at("allowPrivilegeEscalation")
		}
	}
	return nil
}

// localProfile is about a profile on the node, of seccomp or AppArmor.
func localProfile(m map[string]any) Flaws {
	kind, isText := m["type"].(string)
	switch {
	case !isText || kind == "":
		return nil
	case kind == "Localhost" && m["localhostProfile"] == nil:
		return missing("localhostProfile", ", the type is Localhost")
	case kind != "Localhost" && m["localhostProfile"] != nil:
		return say("only with type: Localhost").at("localhostProfile")
	}
	return nil
}

func sysctl(m map[string]any) Flaws {
	return texts(func(s string) string {
		return unless(isSysctl(s), "the name of a kernel setting, like net.core.somaxconn")
	})(m["name"]).at("name")
}

// isSysctl says whether s can be the name of a kernel's setting.
func isSysctl(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '.' || r == '/' }) {
		inner := strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-_")
		if inner != "" || strings.ContainsAny(part[:1]+part[len(part)-1:], "-_") {
			return false
		}
	}
	return !strings.ContainsAny(s[:1]+s[len(s)-1:], "./") && !strings.Contains(s, "..") && !strings.Contains(s, "//")
}
