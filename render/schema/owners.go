// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

// Claim is the names that no two kinds of a server may share. Version does not
// matter.
type Claim struct{ Group, Kind, Plural string }

// BuiltInNames says which names are those of Kubernetes' own kinds. The keys are
// those of [Claim.Names]. Definitions in the tree give way to easy kinds: they are
// one unit's, and a kind is everybody's.
func (s *Set) BuiltInNames() map[string]bool {
	if s == nil {
		return nil
	}
	names := make(map[string]bool, len(s.kinds))
	for name, k := range s.kinds {
		if k.of == nil {
			names[groupKind(name)] = true
		}
	}
	return names
}

// Defines says whether the set has a kind in any version, be its definition good or not.
func (s *Set) Defines(group, kind string) bool {
	is := func(name string) bool { return groupKind(name) == group+" "+kind }
	for name := range s.kinds {
		if is(name) {
			return true
		}
	}
	for name := range s.hidden {
		if is(name) {
			return true
		}
	}
	return false
}

// Names are the keys of what is claimed: the kind in its group, and the name of
// its definition.
func (c Claim) Names() []string { return []string{c.Group + " " + c.Kind, c.Plural + "." + c.Group} }

// ClaimOf is the names that a CustomResourceDefinition takes.
func ClaimOf(object map[string]any) Claim {
	spec, _ := object["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	var c Claim
	c.Group, _ = spec["group"].(string)
	c.Kind, _ = names["kind"].(string)
	c.Plural, _ = names["plural"].(string)
	return c
}
