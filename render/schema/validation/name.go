// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/netip"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

const (
	wantFile     = "a key of at most 253 letters, digits, -, _ and ."
	wantLabel    = "at most 63 lower-case letters, digits and -"
	wantName     = "at most 253 lower-case letters, digits, - and ."
	wantSegment  = "a name without / and %, and not . or .."
	wantPortName = "at most 15 lower-case letters, digits and single -, with a letter"
	wantEnv      = "printable ASCII characters without ="
)

var (
	// dnsLabel is a DNS label, as the name of a container is one.
	dnsLabel = texts(func(s string) string { return unless(document.IsLabel(s), wantLabel) })
	// dnsName is a DNS name, as that of most objects is one.
	dnsName = texts(func(s string) string { return unless(document.IsName(s), wantName) })
	// prefix is what names may start with.
	prefix = texts(func(s string) string { return unless(document.IsName(strings.TrimSuffix(s, "-")), wantName) })
	// segment can be a part of a URL's path.
	segment = texts(func(s string) string { return unless(isSegment(s), wantSegment) })
	// labelKey is a key of labels.
	labelKey = texts(func(s string) string { return unless(document.IsKey(s), document.WantKey) })
	// anyCaseKey is one whose domain may have upper-case letters.
	anyCaseKey = texts(func(s string) string { return unless(document.IsKey(strings.ToLower(s)), document.WantKey) })
	// labelValue is a value of labels.
	labelValue = texts(func(s string) string { return unless(document.IsLabelValue(s), document.WantLabel) })
	// fileName is a key of a ConfigMap.
	fileName = texts(func(s string) string { return unless(isFileName(s), wantFile) })
	// portName is an IANA service name.
	portName = texts(func(s string) string { return unless(isPortName(s), wantPortName) })
	// env is the name of a variable.
	env = texts(func(s string) string { return unless(isEnv(s), wantEnv) })
)

func unless(good bool, want string) string {
	if good {
		return ""
	}
	return want
}

func isSegment(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/%")
}

func isEnv(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '=' {
			return false
		}
	}
	return s != ""
}

func isFileName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 253 && s != "." && !strings.HasPrefix(s, "..")
}

func isPortName(s string) bool {
	letter := false
	for i := range len(s) {
		letter = letter || s[i] >= 'a' && s[i] <= 'z'
	}
	return letter && len(s) <= 15 && document.IsLabel(s) && !strings.Contains(s, "--")
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// portOrName is a port's number or the name of a container's port.
func portOrName(v any) Flaws {
	if _, ok := v.(string); ok {
		f := portName(v)
		if s := v.(string); f != nil && s != "" && strings.Trim(s, "0123456789") == "" {
			return want("a number without quotes, or the name of a port: " + wantPortName)
		}
		return f
	}
	return port(v)
}

// ip is an IP address. API servers take leading zeros in old fields.
var ip = texts(func(s string) string { return unless(isIP(s), "an IP address") })

func isIP(s string) bool {
	addr, err := netip.ParseAddr(withoutZeros(s))
	return err == nil && addr.Zone() == ""
}

// cidr is a range of IP addresses. API servers take leading zeros, and bits
// beyond the prefix, in old fields.
var cidr = texts(func(s string) string {
	_, ok := readCIDR(s)
	return unless(ok, "a range of addresses like 10.0.0.0/8 or 2001:db8::/32")
})

func readCIDR(s string) (netip.Prefix, bool) {
	addr, bits, ok := strings.Cut(s, "/")
	if !ok || bits == "" || strings.Trim(bits, "0123456789") != "" {
		return netip.Prefix{}, false
	}
	for len(bits) > 1 && bits[0] == '0' {
		bits = bits[1:]
	}
	prefix, err := netip.ParsePrefix(withoutZeros(addr) + "/" + bits)
	return prefix, err == nil
}

// withoutZeros takes the leading zeros of the parts of an IPv4 address away.
func withoutZeros(s string) string {
	if !strings.HasPrefix(s, "0") && !strings.Contains(s, ".0") || strings.Contains(s, ":") {
		return s
	}
	parts := strings.Split(s, ".")
	for i, part := range parts {
		for len(part) > 1 && part[0] == '0' {
			part = part[1:]
		}
		parts[i] = part
	}
	return strings.Join(parts, ".")
}

// host is a DNS name, perhaps with *. in front.
var host = texts(func(s string) string {
	switch {
	case strings.Contains(s, "*"):
		return unless(strings.HasPrefix(s, "*.") && document.IsName(s[2:]), "a name like *.example.com")
	case isIP(s):
		return "a DNS name, not an address"
	}
	return unless(document.IsName(s), wantName)
})

// relative is a path below some folder.
var relative = texts(func(s string) string {
	return unless(!strings.HasPrefix(s, "/") && !hasBackstep(s), "a relative path without ..")
})

// inVolume is a path of a file in a volume.
var inVolume = texts(func(s string) string {
	switch {
	case s == "":
		return "a path"
	case strings.HasPrefix(s, "/") || hasBackstep(s) || strings.HasPrefix(s, ".."):
		return "a relative path without .."
	}
	return ""
})

func hasBackstep(s string) bool {
	for part := range strings.SplitSeq(s, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

func isDNSName(s string) bool { return document.IsName(s) }

func readIP(s string) netip.Addr {
	addr, _ := netip.ParseAddr(withoutZeros(s))
	return addr.Unmap()
}
