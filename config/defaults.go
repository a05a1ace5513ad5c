// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// loadDefaults lays the Defaults in file, which has that mode, over the
// inherited ones. Problems go into the result, so that they freeze the units
// below and no others.
func (l *loader) loadDefaults(file string, mode fs.FileMode, inherited *Defaults) *Defaults {
	merged := *inherited
	merged.Unit = nil
	content, err := l.readDefaults(file, mode)
	what := "content " + string(content)
	if err != nil {
		what = "error " + err.Error()
	}
	sum := sha256.Sum256([]byte(inherited.Hash + "\x00" + file + "\x00" + what))
	merged.Hash = hex.EncodeToString(sum[:])
	var problems document.Problems
	if err != nil {
		problems, merged.Tenant = document.Problems{document.FileProblem(file, err)}, ""
	} else {
		problems = merged.mergeFile(file, content)
	}
	merged.Problems = slices.Concat(merged.Problems, problems)
	return &merged
}

func (l *loader) readDefaults(file string, mode fs.FileMode) ([]byte, error) {
	if !mode.IsRegular() {
		return nil, document.Refusal("a " + irregular(mode) + ": want a plain file")
	}
	return l.tree.ReadFile(file)
}

// mergeFile lays a file over the inherited Defaults. Where it cannot be read what the
// file says of the tenant, the tenant is not known, and empty.
func (d *Defaults) mergeFile(file string, content []byte) document.Problems {
	inherited := d.Tenant
	d.Tenant = ""
	docs, problems := document.ReadDocuments(file, content)
	if len(problems) > 0 {
		return problems
	}
	if p := WantOne(file, docs, "Defaults", "; Repository stands at the root only"); p != nil {
		return document.Problems{*p}
	}
	doc := docs[0]
	var spec struct {
		Tenant, Rollout string
		Namespace       string
		Prune           string
		Placement       *struct {
			Topology string
			Match    matchSpec
		}
		Labels       map[string]string
		Overrides    []overrideSpec
		AllOrNothing *bool
		Unit         *bool
		policySpec
	}
	in := readOwn(doc, &spec)
	switch {
	case in.follows("spec", "tenant"):
	case spec.Tenant == "":
		d.Tenant = inherited
	case !document.IsLabel(spec.Tenant):
		in.at("spec", "tenant").problem(document.CodeType, "want a DNS label, got %q", document.Shorten(spec.Tenant))
	default:
		d.Tenant, d.TenantAt = spec.Tenant, doc.PositionOf("spec", "tenant")
	}
	if spec.Rollout != "" {
		d.Rollout, d.RolloutAt = spec.Rollout, doc.PositionOf("spec", "rollout")
	}
	switch {
	case spec.Namespace == "":
	case !strings.Contains(spec.Namespace, "${") && !document.IsLabel(spec.Namespace):
		in.at("spec", "namespace").problem(document.CodeType, "want a namespace, or a text with expressions like ${target.cell} that gives one, got %q", document.Shorten(spec.Namespace))
	default:
		d.Namespace, d.NamespaceAt = spec.Namespace, doc.PositionOf("spec", "namespace")
	}
	switch spec.Prune {
	case "":
	case pruneDelete, pruneKeep:
		d.Keeps = spec.Prune == pruneKeep
	default:
		in.at("spec", "prune").problem(document.CodeType, "want delete or keep, got %q", document.Shorten(spec.Prune))
	}
	d.Labels, d.Unit = overlay(d.Labels, spec.Labels), spec.Unit
	d.addOverrides(in, spec.Overrides)
	d.addPolicy(in, spec.policySpec)
	switch all := spec.AllOrNothing; {
	case all == nil:
	case *all:
		d.Together = append(slices.Clip(d.Together), doc.PositionOf("spec", "allOrNothing"))
	default:
		d.Together = nil
	}
	if p := spec.Placement; p != nil {
		match := in.match(p.Match, "spec", "placement", "match")
		if p.Topology != "" && p.Topology != "cell" && p.Topology != "cluster" {
			in.at("spec", "placement", "topology").problem(document.CodeType, "want cell or cluster, got %q", p.Topology)
		}
		d.Placement = &Placement{WholeClusters: p.Topology == "cluster", Match: match}
		d.PlacementAt = doc.PositionOf("spec", "placement")
	}
	return in.problems()
}

// What Defaults say in spec.prune.
const (
	pruneDelete = "delete"
	pruneKeep   = "keep"
)

// overrideSpec is the part of an Override that says what it holds for; the
// operations are read where they are applied.
type overrideSpec struct {
	Match        matchSpec
	Kind, Object string
}

// addOverrides adds the overrides of a document behind the inherited ones, but for
// those with a mistake of the decoder.
func (d *Defaults) addOverrides(in *reading, specs []overrideSpec) {
	var own []*Override
	if len(specs) > 0 {
		sum := sha256.Sum256([]byte(d.OverridesHash + "\x00" + d.Hash))
		d.OverridesHash = hex.EncodeToString(sum[:])
	}
	for i, spec := range specs {
		place := fmt.Sprintf("spec.overrides[%d]", i)
		match := in.match(spec.Match, "spec", "overrides", i, "match")
		if spec.Kind == "" {
			in.at("spec", "overrides", i, "kind").problem(document.CodeReference, "missing, want the kind of the documents that it holds for")
		}
		if in.incomplete("spec", "overrides", i) {
			continue
		}
		d.refer(in.Document, spec.Match, "spec", "overrides", i)
		d.referObject(in.Document, spec.Kind, spec.Object, "spec", "overrides", i)
		own = append(own, &Override{Doc: in.Document, Node: in.Deepest("spec", "overrides", i), Place: place, Match: match, Kind: spec.Kind, Object: spec.Object})
	}
	d.Overrides = slices.Concat(d.Overrides, own) // never into the inherited array
}
