// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
)

// mergePatch is a strategic merge patch.
type mergePatch struct {
	doc    *document.Document
	target *yaml.Node // nil: the object that the patch itself names
}

// addMergePatches notes the patches among documents; JSON patches are lists.
func (c *closure) addMergePatches(docs []*document.Document, target *yaml.Node) {
	for _, doc := range docs {
		if doc.Node.Kind == yaml.MappingNode {
			c.merges = append(c.merges, mergePatch{doc, target})
		}
	}
}

// checkMergePatches finds items of patches that lack the key by which their list
// merges. Kustomize silently drops such an item, and the whole list when all items of
// the patch are like that. It needs the schemas of the build, see
// [install].
func (c *closure) checkMergePatches() {
	before := len(c.problems)
	for _, patch := range c.merges {
		for _, kind := range c.patchedKinds(patch) {
			if s := openapi.SchemaForResourceType(kind); s != nil {
				c.checkItems(patch.doc, patch.doc.Node, s, "", kind.Kind)
			}
			if len(c.problems) > before {
				break // the same again for other kinds
			}
		}
		before = len(c.problems)
	}
}

// patchedKinds are the kinds of the documents that a patch may change.
func (c *closure) patchedKinds(patch mergePatch) []yaml.TypeMeta {
	text := func(n *yaml.Node, key string) string {
		if value := document.Lookup(n, key); value != nil {
			return value.Value
		}
		return ""
	}
	var kinds, named []yaml.TypeMeta
	own := yaml.TypeMeta{APIVersion: patch.doc.APIVersion, Kind: patch.doc.Kind}
	selector, err := types.NewSelectorRegex(&types.Selector{ResId: resid.ResId{
		Gvk:  resid.Gvk{Group: text(patch.target, "group"), Version: text(patch.target, "version"), Kind: text(patch.target, "kind")},
		Name: text(patch.target, "name"),
	}})
	if err != nil {
		return nil // see checkTarget
	}
	for _, doc := range c.origins {
		kind := yaml.TypeMeta{APIVersion: doc.APIVersion, Kind: doc.Kind}
		group, version := resid.ParseGroupVersion(kind.APIVersion)
		switch {
		case patch.target == nil && kind != own, patch.target != nil && !selector.MatchGvk(resid.Gvk{Group: group, Version: version, Kind: kind.Kind}):
			continue
		case selector.MatchName(doc.Name) && !slices.Contains(named, kind):
			named = append(named, kind)
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(named) > 0 {
		return named
	}
	return kinds // a prefix may have changed the names
}

// checkItems looks at and below a part of a patch; path is from its root.
func (c *closure) checkItems(doc *document.Document, n *yaml.Node, s *openapi.ResourceSchema, path, kind string) {
	switch {
	case s == nil || replaces(n):
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			c.checkItems(doc, n.Content[i+1], s.Field(key), strings.TrimPrefix(path+"."+key, "."), kind)
		}
	case n.Kind == yaml.SequenceNode:
		strategy, keys := s.PatchStrategyAndKeyList()
		if !slices.Contains(strings.Split(strategy, ","), "merge") || len(keys) == 0 {
			return
		}
		for i, item := range n.Content {
			if key := document.Lookup(item, keys[0]); key == nil || key.Tag == "!!null" {
				at := item
				if at.Line == 0 {
					at = n
				}
				c.problems = append(c.problems, doc.Problem(at, document.CodeType, "patch of %s: item %d of %s has no %s, which tells the items of this list apart: kustomize drops it, and all others with it if no item of the patch has one; write it, or `$patch: replace` as an item of its own to replace the list",
					document.Shorten(kind), i, document.Shorten(path), keys[0]))
				continue
			}
			c.checkItems(doc, item, s.Elements(), path+"[]", kind)
		}
	}
}

// replaces says whether a part of a patch replaces or deletes what is there
// instead of merging with it.
func replaces(n *yaml.Node) bool {
	directive := func(n *yaml.Node) bool {
		value := document.Lookup(n, "$patch")
		return value != nil && (value.Value == "replace" || value.Value == "delete")
	}
	if n.Kind == yaml.SequenceNode {
		return slices.ContainsFunc(n.Content, func(item *yaml.Node) bool { return len(item.Content) == 2 && directive(item) })
	}
	return directive(n)
}
