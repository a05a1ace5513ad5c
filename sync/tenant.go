// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// Tenants are isolated by the API servers: what is asked on behalf of a tenant
// with an account is asked as that account, and only the look at which cluster
// it is is swell's own. Whose an object is, is remembered with the target that
// it was written to, see [rollout.Target.Tenants]: a unit that is gone, or that
// went over to another tenant, leaves objects behind.

// writers are the accounts that a unit's objects on a target were written as,
// the last one first; never none.
func (d *Daemon) writers(path config.UnitPath, target config.TargetName) []string {
	var accounts []string
	if unit := d.state.Units[path]; unit != nil && unit.Targets[target] != nil {
		for _, tenant := range unit.Targets[target].Tenants {
			if account := d.monorepo.tenant(tenant).Account; !slices.Contains(accounts, account) {
				accounts = append(accounts, account)
			}
		}
	}
	if len(accounts) == 0 {
		accounts = []string{""}
	}
	return accounts
}

// identify finds as whom a job is done.
func (d *Daemon) identify(j *executor.Job) error {
	j.Writers = d.writers(j.Unit, j.Target)
	if j.Kind == rollout.Remove {
		j.Account = j.Writers[0]
		return nil
	}
	tenant, err := d.monorepo.tenantIn(j.Action)
	if err != nil {
		return err
	}
	if j.Tenant, j.Account = tenant, tenant.Account; !slices.Contains(j.Writers, j.Account) {
		j.Writers = slices.Insert(j.Writers, 0, j.Account)
	}
	return nil
}

// byAccount groups the entries of a cluster by the account that wrote them, in
// the order in which the accounts come.
func (d *Daemon) byAccount(entries []store.Entry) (accounts []string, of map[string][]store.Entry) {
	known := map[object.UnitTarget]string{}
	of = map[string][]store.Entry{}
	for _, e := range entries {
		at := e.Place()
		account, ok := known[at]
		if !ok {
			account = d.writers(e.Unit, e.Target)[0]
			known[at] = account
		}
		if of[account] == nil {
			accounts = append(accounts, account)
		}
		of[account] = append(of[account], e)
	}
	return accounts, of
}
