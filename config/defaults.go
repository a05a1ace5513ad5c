// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
)

// loadDefaults lays the Defaults in file, which has that mode, over the
// inherited ones. Problems go into the result, so that they freeze the units
// below and no others.
func (l *loader) loadDefaults(file string, mode fs.FileMode, inherited *Defaults) *Defaults {
	merged := *inherited
	content, err := l.readDefaults(file, mode)
	what := "content " + string(content)
	if err != nil {
		what = "error " + err.Error()
	}
	sum := sha256.Sum256([]byte(inherited.Hash + "\x00" + file + "\x00" + what))
	merged.Hash = hex.EncodeToString(sum[:])
	var problems Problems
	if err != nil {
		problems = Problems{FileProblem(file, err)}
	} else {
		problems = merged.mergeFile(file, content)
	}
	merged.Problems = slices.Concat(merged.Problems, problems)
	return &merged
}

func (l *loader) readDefaults(file string, mode fs.FileMode) ([]byte, error) {
	if !mode.IsRegular() {
		return nil, Refusal("a " + irregular(mode) + ": want a plain file")
	}
	return l.tree.ReadFile(file)
}

func (d *Defaults) mergeFile(file string, content []byte) Problems {
	docs, problems := ReadDocuments(file, content)
	if len(problems) > 0 {
		return problems
	}
	if p := WantOne(file, docs, "Defaults", "; Repository stands at the root only"); p != nil {
		return Problems{*p}
	}
	doc := docs[0]
	var spec struct {
		Tenant, Rollout string
		Placement       *struct {
			Topology string
			Match    matchSpec
		}
		Labels    map[string]string
		Overrides []overrideSpec
		policySpec
	}
	if problems := DecodeOwn(doc, &spec); len(problems) > 0 {
		return problems
	}
	if spec.Tenant != "" {
		if !IsLabel(spec.Tenant) {
			return Problems{doc.at("spec.tenant: want a DNS label, got %q", CodeType, "spec", "tenant")(spec.Tenant)}
		}
		d.Tenant, d.TenantAt = spec.Tenant, doc.positionOf("spec", "tenant")
	}
	if spec.Rollout != "" {
		d.Rollout, d.RolloutAt = spec.Rollout, doc.positionOf("spec", "rollout")
	}
	d.Labels = overlay(d.Labels, spec.Labels)
	problems = slices.Concat(d.addOverrides(doc, spec.Overrides), d.addPolicy(doc, spec.policySpec))
	if p := spec.Placement; p != nil {
		match, found := p.Match.match(doc, "spec", "placement", "match", "labels")
		problems = append(problems, found...)
		if p.Topology != "" && p.Topology != "cell" && p.Topology != "cluster" {
			problems = append(problems, doc.at("spec.placement.topology: want cell or cluster, got %q", CodeType, "spec", "placement", "topology")(p.Topology))
		}
		d.Placement = &Placement{WholeClusters: p.Topology == "cluster", Match: match}
		d.PlacementAt = doc.positionOf("spec", "placement")
	}
	return problems
}

// overrideSpec is the part of an Override that says what it holds for; the
// operations are read where they are applied.
type overrideSpec struct {
	Match        matchSpec
	Kind, Object string
}

// addOverrides adds the overrides of a document behind the inherited ones.
func (d *Defaults) addOverrides(doc *Document, specs []overrideSpec) Problems {
	var problems Problems
	var own []*Override
	if len(specs) > 0 {
		sum := sha256.Sum256([]byte(d.OverridesHash + "\x00" + d.Hash))
		d.OverridesHash = hex.EncodeToString(sum[:])
	}
	for i, spec := range specs {
		place := fmt.Sprintf("spec.overrides[%d]", i)
		match, found := spec.Match.match(doc, "spec", "overrides", i, "match", "labels")
		problems = append(problems, found...)
		if spec.Kind == "" {
			problems = append(problems, doc.at("%s.kind: missing, want the kind of the documents that it holds for", CodeReference, "spec", "overrides", i)(place))
		}
		d.refer(doc, spec.Match, "spec", "overrides", i)
		d.referObject(doc, spec.Kind, spec.Object, "spec", "overrides", i)
		own = append(own, &Override{Doc: doc, Node: doc.node("spec", "overrides", i), Place: place, Match: match, Kind: spec.Kind, Object: spec.Object})
	}
	d.Overrides = slices.Concat(d.Overrides, own) // never into the inherited array
	return problems
}
