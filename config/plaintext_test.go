// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlainText(t *testing.T) {
	d := &Daemon{
		Repository: GitRepository{URL: "http://git.example.com/x.git", TokenFile: "token"},
		Previews:   Previews{Forge: ForgeAccess{URL: "http://forge:3000", App: ForgeApp{ID: "1"}}},
		Endpoints: map[string]Endpoint{
			"open": {URL: "http://open.example.com"}, "near": {URL: "http://127.0.0.1:9090", TokenFile: "t"},
			"local": {URL: "http://localhost", TokenFile: "t"},
			"safe":  {URL: "https://safe.example.com", TokenFile: "t"}, "prom": {URL: "http://u:pw@prom", TokenFile: ""},
		},
	}
	const why = " gets credentials without encryption: want https"
	want := []string{
		"spec.repository.url: http://git.example.com" + why, "spec.previews.forge.url: http://forge:3000" + why,
		"spec.endpoints prom: http://prom" + why,
	}
	if diff := cmp.Diff(want, d.PlainText()); diff != "" {
		t.Error(diff)
	}
}
