// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"slices"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
)

// hostNames are those that units have, by whether traffic for them comes in there.
type hostNames struct {
	base, head map[bool]func() *render.Hosts
}

func newHostNames(base, head *render.Snapshot) *hostNames {
	namesIn := func(s *render.Snapshot) map[bool]func() *render.Hosts {
		hosts := func(listens bool) func() *render.Hosts {
			return sync.OnceValue(func() *render.Hosts { return render.HostsOf(s.Units, listens) })
		}
		return map[bool]func() *render.Hosts{false: hosts(false), true: hosts(true)}
	}
	return &hostNames{namesIn(base), namesIn(head)}
}

// risks are those of an object that a unit brings to a target, or changes there; old may be nil.
func (o *Outlook) risks(to object.UnitTarget, old, obj *object.Object) []string {
	return append(risks(old, obj, o.knows), o.hosts.risks(to, old, obj)...)
}

// risks are the host names that an object takes and that other units have, or had.
func (h *hostNames) risks(to object.UnitTarget, old, obj *object.Object) (texts []string) {
	if h == nil || !object.HasHosts(obj.ID) {
		return nil
	}
	before := hostsOf(old)
	for _, host := range hostsOf(obj) {
		isSame := func(other object.Host) bool { return other.Name == host.Name && other.Listens == host.Listens }
		if slices.ContainsFunc(before, isSame) {
			continue
		}
		if text := h.risk(to, host); text != "" {
			texts = append(texts, obj.Redactor().Redact(text))
		}
	}
	return slices.Compact(texts)
}

// risk says who else has a host name; empty where nobody does.
func (h *hostNames) risk(to object.UnitTarget, host object.Host) string {
	const text = "it has the host name %s, which %s %s"
	others := func(hosts map[bool]func() *render.Hosts) []config.UnitPath {
		return hosts[host.Listens]().Others(to.Unit, to.Target.Cluster(), host.Name)
	}
	name := document.Printable(host.Name)
	if now := others(h.head); len(now) > 0 {
		return fmt.Sprintf(text, name, visible(now[0]), "has, too")
	}
	if before := others(h.base); len(before) > 0 {
		return fmt.Sprintf(text, name, visible(before[0]), "had")
	}
	return ""
}

// hostsOf are the host names of an object, which may be nil.
func hostsOf(o *object.Object) []object.Host {
	if o == nil {
		return nil
	}
	content, _ := decode(o.JSON).(map[string]any)
	return object.Hosts(o.ID, content)
}
