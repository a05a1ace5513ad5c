// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
)

// sharedName is a name in an object that leads to what another tenant may have in the cluster: a
// service account that the unit does not bring itself, or a host name.
type sharedName struct {
	Host    string // see [object.Host]; empty for an account
	Listens bool
	Account object.ID // a ServiceAccount
	Places  []int     // indexes of placements, sorted
	// Problem is where the name stands. Its message has no end: who has it.
	Problem document.Problem
}

// noteNames notes the names in a finished object that lead to what others may have.
func (d *draft) noteNames(id object.ID) {
	for _, host := range object.Hosts(id, d.object) {
		found := d.finding(host.Path, "host name %q", d.shown(host.Name))
		d.sharedNames = append(d.sharedNames, sharedName{Host: host.Name, Listens: host.Listens, Problem: found})
	}
	if len(d.tenants) == 0 {
		return
	}
	known := map[object.ID]bool{}
	for _, use := range accountsIn(id, d.object) {
		account := object.ID{Kind: "ServiceAccount", Namespace: use.namespace, Name: use.name}
		i := slices.IndexFunc(d.tenants, func(r ruling) bool { return !r.MayName(id.Namespace, use.namespace, use.name) })
		if i < 0 || known[account] {
			continue
		}
		known[account] = true
		r := d.tenants[i]
		const text = "no unit of tenant %s brings the service account %s, and its accounts do not name it (%s)%s"
		found := d.finding(use.path, text, r.Name, d.shown(use.namespace+"/"+use.name), r.Position.File, r.of)
		d.sharedNames = append(d.sharedNames, sharedName{Account: account, Problem: found})
	}
}

// finding is a problem at a path that is none yet.
func (d *draft) finding(path []any, format string, args ...any) document.Problem {
	before := len(d.problems)
	d.problem(document.CodeTenancy, path, format, args...)
	p := d.problems[before]
	d.problems = d.problems[:before]
	return p
}

// shown is a name as a message may have it.
func (d *draft) shown(name string) string {
	if config.MaySecretObject(d.object) {
		return document.Redacted
	}
	var secrets config.Redactor
	for _, text := range d.secrets {
		secrets.Add(text)
	}
	return secrets.Redact(document.Shorten(name))
}

// sharedKey tells the shared names of a unit apart.
type sharedKey struct {
	host     string
	listens  bool
	account  object.ID
	position document.Position
	message  string
}

// noteShared takes over the shared names of a bundle's objects on the i-th place, but for accounts that
// the bundle brings.
func (u *unitRenderer) noteShared(i int, found []sharedName, b *object.Bundle) {
	if len(found) == 0 {
		return
	}
	brought := map[object.ID]bool{}
	for _, o := range b.Objects {
		brought[o.ID] = true
	}
	for _, r := range found {
		if r.Host == "" && brought[r.Account] {
			continue
		}
		key := sharedKey{r.Host, r.Listens, r.Account, r.Problem.Position, r.Problem.Message}
		n, known := u.sharedAt[key]
		if !known {
			if n = len(u.sharedNames); u.sharedAt == nil {
				u.sharedAt = map[sharedKey]int{}
			}
			u.sharedAt[key] = n
			u.sharedNames = append(u.sharedNames, r)
		}
		u.sharedNames[n].Places = append(u.sharedNames[n].Places, i)
	}
}

// namesAccounts says whether there are service accounts among some names.
func namesAccounts(names []sharedName) bool {
	return slices.ContainsFunc(names, func(r sharedName) bool { return r.Host == "" })
}

// accountProblems are the problems of units that name service accounts of others.
func (p *pass) accountProblems() map[config.UnitPath]document.Problems {
	found := map[config.UnitPath]document.Problems{}
	for path := range p.naming {
		e := p.entries[path]
		var problems targetProblems
		for _, r := range e.unit.sharedNames {
			if r.Host != "" {
				continue
			}
			for _, i := range r.Places {
				if len(problems.problems) < maxUnitProblems && !p.brings(e.unit.Tenant, e.placed[i].cluster.Name, r.Account) {
					problems.placement = i
					problems.add(r.Problem)
				}
			}
		}
		if list := problems.ofUnit(path, e.placed); len(list) > 0 {
			found[path] = list
		}
	}
	return found
}

// brings says whether units of a tenant, and of no other one, bring an object to a cluster.
func (p *pass) brings(tenant, cluster string, id object.ID) bool {
	units := p.claims.of(cluster, id.Hash())
	isOther := func(by object.UnitTarget) bool { return p.entries[by.Unit].unit.Tenant != tenant }
	return len(units) > 0 && !slices.ContainsFunc(units, isOther)
}

// ofUnit are the problems as those of a unit.
func (t *targetProblems) ofUnit(path config.UnitPath, placed []place) document.Problems {
	problems := t.all(placed)
	for i := range problems {
		problems[i].Unit = string(path)
	}
	return problems
}
