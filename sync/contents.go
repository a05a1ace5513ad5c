// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/ownership"
)

// container is a namespace of a cluster, or a kind that a definition there defines.
type container struct {
	cluster, namespace string
	group, kind        string
}

// content are the objects in a container.
type content struct {
	first object.ID
	unit  config.UnitPath // of first
	count int             // of objects, first among them
}

// contents are the objects in containers once a commit is carried out.
type contents map[container]content

// contentsBetween are the objects that head leaves in each container that it changes. All of them depend
// on who brings it, so the units with something there differ from those of base.
func contentsBetween(base, head *render.Snapshot) (contents, error) {
	found := contents{}
	for path := range base.Units.Differing(head.Units) {
		after, err := head.BundlesByTarget(path)
		if err != nil {
			return nil, err
		}
		before, err := base.BundlesByTarget(path)
		if err != nil {
			return nil, err
		}
		for target, b := range after {
			for _, o := range b.Objects {
				found.add(object.UnitTarget{Unit: path, Target: target}, o.ID)
			}
		}
		for target, b := range before {
			unitTarget := object.UnitTarget{Unit: path, Target: target}
			for _, o := range b.Objects { // those that are kept when they leave Git
				isLeft := after[target] == nil || after[target].Find(o.ID) == nil
				if isLeft && ownership.Orphaned(head, path, entryOf(unitTarget, o)) {
					found.add(unitTarget, o.ID)
				}
			}
		}
	}
	return found, nil
}

// add counts an object in its namespace, and with those of its kind.
func (c contents) add(unitTarget object.UnitTarget, id object.ID) {
	cluster := unitTarget.Target.Cluster()
	c.count(container{cluster: cluster, namespace: id.Namespace}, unitTarget.Unit, id)
	c.count(container{cluster: cluster, group: id.Group, kind: id.Kind}, unitTarget.Unit, id)
}

// count counts an object. The first one is that of the first unit, by their names.
func (c contents) count(in container, unit config.UnitPath, id object.ID) {
	known := c[in]
	if known.count++; known.count == 1 || cmp.Or(cmp.Compare(unit, known.unit), id.Compare(known.first)) < 0 {
		known.first, known.unit = id, unit
	}
	c[in] = known
}

// along says what happens to the objects in a Namespace, or of a definition, that is to be deleted. The
// daemon does not delete it while objects of units are there. Those of others go with it.
func (p *preview) along(unitTarget object.UnitTarget, o *object.Object) string {
	if p.contents == nil && p.unread == nil {
		p.contents, p.unread = contentsBetween(p.base, p.snapshot)
	}
	if p.unread != nil {
		return fmt.Sprintf("it is not known what is in it: %s", p.unread)
	}
	in, where := container{cluster: unitTarget.Target.Cluster(), namespace: o.ID.Name}, "is in it"
	if o.ID.IsDefinition() {
		in, where = containerOf(unitTarget.Target.Cluster(), o), "is one of its objects"
	}
	c := p.contents[in]
	switch {
	case c.count == 0:
		return "what others have in it goes along: swell approve counts it"
	case c.count == 1:
		return fmt.Sprintf("it stays as long as %s of unit %s %s", c.first, c.unit, where)
	}
	return fmt.Sprintf("it stays as long as %s of unit %s %s, and %s more", c.first, c.unit, where, document.Count(c.count-1, "object"))
}

// containerOf is the kind that a definition defines.
func containerOf(cluster string, definition *object.Object) container {
	var d struct {
		Spec struct {
			Group string
			Names struct{ Kind string }
		}
	}
	_ = json.Unmarshal(definition.JSON, &d) // it was rendered, and judged
	return container{cluster: cluster, group: d.Spec.Group, kind: d.Spec.Names.Kind}
}
