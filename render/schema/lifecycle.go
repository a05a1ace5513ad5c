// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/swell-sh/swell/config/document"
)

// lifecycle is when API servers serve one of Kubernetes' own kinds in a version: minor
// versions of 1, 0 where nothing is planned.
type lifecycle struct {
	introduced, deprecated, removed int
	replacement                     string // apiVersion and kind; empty for none
}

//go:generate go run genlifecycle.go

// minorOf is the minor version of "1.36".
func minorOf(version string) int {
	_, minor, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(minor)
	if err != nil {
		panic(err) // it is one of [Versions]
	}
	return n
}

// Unserved says why API servers of the set's Kubernetes version do not serve a kind that
// those of another one do, and what to write; empty for others.
func (s *Set) Unserved(apiVersion, kind string) string {
	name := apiVersion + " " + kind
	l, known := lifecycles[name]
	switch minor := minorOf(s.minor); {
	case s.Kind(apiVersion, kind) != nil:
		return ""
	case removed[name] != "":
		return removed[name]
	case !known:
		return ""
	case l.removed != 0 && l.removed <= minor:
		return fmt.Sprintf("removed in Kubernetes 1.%d%s", l.removed, l.instead())
	case l.introduced > minor:
		return fmt.Sprintf("new in Kubernetes 1.%d, and this cluster has %s", l.introduced, s.minor)
	}
	return ""
}

func (l lifecycle) instead() string {
	if l.replacement == "" {
		return ""
	}
	return fmt.Sprintf(", write %s", l.replacement)
}

// deprecation says that a kind of Kubernetes' own is deprecated; empty when it is not.
func deprecation(name string, minor int) string {
	l := lifecycles[name]
	if l.deprecated == 0 || l.deprecated > minor {
		return ""
	}
	text := fmt.Sprintf("deprecated since Kubernetes 1.%d", l.deprecated)
	if l.removed != 0 {
		text += fmt.Sprintf(", removed in 1.%d", l.removed)
	}
	return text + l.instead()
}

// Deprecation says since when the kind is deprecated and what to write, or, for a custom
// resource, what its definition says of that; empty when it is not.
func (k *Kind) Deprecation() string { return k.deprecation }

// deprecated is what an API server warns of when a version of a definition is used.
func deprecatedBy(group, kind string, this servedVersion, all []any) string {
	if !this.deprecated {
		return ""
	}
	if this.warning != "" {
		return this.warning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", group, this.name, kind)
	better := ""
	for _, item := range all {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		if m["served"] == true && m["deprecated"] != true && version.CompareKubeAwareVersionStrings(this.name, name) < 0 &&
			(better == "" || version.CompareKubeAwareVersionStrings(name, better) > 0) {
			better = name
		}
	}
	if better != "" {
		text += fmt.Sprintf("; use %s/%s %s", group, better, kind)
	}
	return text
}

// Nowhere says whether a kind is a custom resource whose definition is nowhere: its group
// is that of none of the set's kinds, nor of the others named as "apiVersion kind", and
// is no misspelling of one.
func (s *Set) Nowhere(apiVersion, kind string, others []string) bool {
	group, of, grouped := strings.Cut(apiVersion, "/")
	if !grouped || !strings.Contains(group, ".") || !document.IsName(group) || !document.IsDNS1035(of) || !document.IsDNS1035(strings.ToLower(kind)) {
		return false
	}
	groups := map[string]bool{}
	add := func(name string) {
		if known, _, ok := strings.Cut(name, "/"); ok {
			groups[known] = true
		}
	}
	for name := range s.kinds {
		add(name)
	}
	for name := range s.hidden {
		add(name)
	}
	for name := range lifecycles {
		add(name)
	}
	for _, name := range others {
		add(name)
	}
	if groups[group] {
		return false
	}
	known := make([]string, 0, len(groups))
	for group := range groups {
		known = append(known, group)
	}
	slices.SortFunc(known, cmp.Compare)
	return document.Misspelt(group, known) == ""
}

// Any is a kind of which nothing is known but what the metadata of all objects is.
func (s *Set) Any(kind string, namespaced bool) *Kind {
	text := &Type{Form: String}
	return &Kind{Namespaced: namespaced, name: kind, typ: &Type{Form: Map, Elem: &Type{},
		Fields: map[string]*Type{"apiVersion": text, "kind": text, "metadata": s.objectMeta()}}}
}
