// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
)

// PlainText are the addresses to which the daemon sends a token or a password over plain http to
// another machine, where whoever is on the way reads it: a line each, with the field.
func (d *Daemon) PlainText() (lines []string) {
	note := func(field, address string, hasToken bool) {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" || isLoopback(u.Hostname()) {
			return
		}
		if _, hasPassword := u.User.Password(); hasToken || hasPassword {
			lines = append(lines, fmt.Sprintf("%s: http://%s gets credentials without encryption: want https", field, u.Host))
		}
	}
	note("spec.repository.url", d.Repository.URL, d.Repository.TokenFile != "")
	forge := d.Previews.Forge
	note("spec.previews.forge.url", forge.URL, forge.TokenFile != "" || forge.App != ForgeApp{})
	for _, name := range slices.Sorted(maps.Keys(d.Endpoints)) {
		e := d.Endpoints[name]
		note("spec.endpoints "+name, e.URL, e.TokenFile != "")
	}
	return lines
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
