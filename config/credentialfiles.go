// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
)

// Credential is a file that the daemon's configuration names and that it has to read.
type Credential struct {
	Field string // that names it, such as spec.repository.tokenFile
	File  string
	// Public is one that others may read, but not write.
	Public bool
}

// Credentials are all such files but those of [Daemon.KubeconfigDir], in the order of the
// document. None of them is looked at.
func (d *Daemon) Credentials() (all []Credential) {
	add := func(field, file string) {
		if file != "" {
			all = append(all, Credential{Field: field, File: file})
		}
	}
	keys := func(field string, k SecretKeys) {
		for _, file := range k.AgeKeyFiles {
			add(field+".ageKeyFiles", file)
		}
	}
	add("spec.repository.tokenFile", d.Repository.TokenFile)
	add("spec.repository.sshKeyFile", d.Repository.SSHKeyFile)
	if file := d.Repository.KnownHostsFile; file != "" {
		all = append(all, Credential{"spec.repository.knownHostsFile", file, true})
	}
	for _, name := range slices.Sorted(maps.Keys(d.Clusters)) {
		add(fmt.Sprintf("spec.clusters %s.kubeconfig", name), d.Clusters[name].Kubeconfig)
	}
	keys("spec.secrets", d.Secrets.SecretKeys)
	for _, tenant := range slices.Sorted(maps.Keys(d.Secrets.Tenants)) {
		keys("spec.secrets.tenants "+tenant, d.Secrets.Tenants[tenant])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Endpoints)) {
		add(fmt.Sprintf("spec.endpoints %s.tokenFile", name), d.Endpoints[name].TokenFile)
	}
	add("spec.web.hookSecretFile", d.Web.HookSecretFile)
	add("spec.previews.forge.tokenFile", d.Previews.Forge.TokenFile)
	add("spec.previews.forge.app.keyFile", d.Previews.Forge.App.KeyFile)
	return all
}
