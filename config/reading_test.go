// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import "testing"

// TestUnreadableTenant: a tenant that cannot be read is not known. It is not the
// inherited one, and no other tenant either: what a unit with such a problem may want
// stays in the clusters, whoever has it.
func TestUnreadableTenant(t *testing.T) {
	const head = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\n"
	for content, want := range map[string]string{
		head + "spec: {tenant: b}":            "b",
		head + "spec: {rollout: x}":           "inherited",
		head + "spec: {adopt: 5}":             "inherited",
		head + "spec: {tenant: b, adopt: 5}":  "b",
		head + "spec: {tenant: B_d}":          "",
		head + "spec: {tenant: 5}":            "",
		head + "spec: {tenent: b}":            "",
		head + "spec: [tenant]":               "",
		head + "spec: {tenant: b":             "",
		head + "spec: {tenant: b}\n---\na: b": "",
	} {
		d := Defaults{Tenant: "inherited", Policy: &Policy{}}
		problems := d.mergeFile("a/swell.yaml", []byte(content))
		if d.Tenant != want || want == "" && len(problems) == 0 {
			t.Errorf("%s: tenant %q, want %q; %v", content, d.Tenant, want, problems)
		}
	}
}

// TestUnreadableIgnore: a rule of ignore with a mistake of form is left out. Without
// its object, its match or its kind it would hold for more than it says.
func TestUnreadableIgnore(t *testing.T) {
	d := Defaults{Policy: &Policy{}}
	problems := d.mergeFile("a/swell.yaml", []byte(`apiVersion: swell.sh/v1
kind: Defaults
metadata: {name: a}
spec:
  ignore:
  - {kind: Deployment, object: 5, fields: [/spec]}
  - {kind: Deployment, match: {label: {region: sas}}, fields: [/spec]}
  - {kinds: Deployment, fields: [/spec]}
  - {kind: Deployment, object: web, fields: [/spec/replicas]}
`))
	if rules := d.Policy.Ignore; len(rules) != 1 || rules[0].Object != "web" || len(problems) != 3 {
		t.Errorf("%+v, %v", rules, problems)
	}
}
