// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
)

// makesNamespace notes that the other tool makes a namespace that no file has.
func (r *reader) makesNamespace(of *object, cluster, name string) {
	if name == "" || name == "default" || strings.HasPrefix(name, "kube-") {
		return
	}
	if r.spaces[cluster] == nil {
		r.spaces[cluster] = map[string]*object{}
	}
	if r.spaces[cluster][name] == nil {
		r.spaces[cluster][name] = of
	}
}

// namespaces adds a release for the namespaces that no other release of a cluster brings.
func (r *reader) namespaces() {
	for _, cluster := range sortedKeys(r.spaces) {
		missing, used := r.spaces[cluster], map[string]bool{}
		for _, one := range r.releases {
			if one.cluster != cluster {
				continue
			}
			used[one.settings.Namespace] = true
			if one.chart != nil {
				used[one.chart.Namespace] = true
			}
			for _, o := range one.objects {
				if o.kind() == "Namespace" && o.group() == "" {
					delete(missing, o.name())
				}
			}
		}
		names := slices.DeleteFunc(sortedKeys(missing), func(name string) bool { return !used[name] })
		if len(names) == 0 {
			continue
		}
		for _, name := range names {
			r.note(missing[name], "", "it makes its namespace; now the unit namespaces brings that", "")
		}
		r.releases = append(r.releases, &release{of: missing[names[0]], name: "namespaces", cluster: cluster, namespaces: names})
	}
}

// namespaceFiles writes the namespaces of a unit. They stay when their documents go: no
// file had them before.
func (w *writer) namespaceFiles(g *group) {
	for _, name := range g.namespaces {
		w.files[path.Join(g.unit, name+".yaml")] = []byte(yamlText(map[string]any{"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": name, "annotations": map[string]any{config.AnnotationPrune: config.PruneDisabled}}}))
	}
}
