// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
)

func (r *reader) noFlux() error {
	if len(r.left) > 0 {
		return r.nothing()
	}
	return fmt.Errorf("no Kustomization of Flux (%s) is in the repository", fluxKustomize)
}

// fluxEntries are what Flux begins at, by cluster: the Kustomizations whose own file is in
// their folder, else the folders clusters/NAME, else all Kustomizations that no other one
// leads to.
func (r *reader) fluxEntries(all []*object) (map[string][]*fluxFolder, error) {
	entries := map[string][]*fluxFolder{}
	var odd []*fluxFolder // whose cluster the repository does not name
	add := func(f *fluxFolder) {
		name, certain := clusterOf(f.folder)
		if !certain {
			odd = append(odd, f)
			return
		}
		entries[name] = append(entries[name], f)
	}
	covered := map[string]bool{}
	for _, o := range all {
		folder, ok := cleanPath(o.text("spec", "path"))
		if ok && folder != "." && config.Within(path.Dir(o.doc.File), folder) && !covered[folder] {
			covered[folder] = true
			add(&fluxFolder{of: o, folder: folder, entry: true})
		}
	}
	for _, o := range all {
		if folder := clusterFolder(o.doc.File); folder != "" && !slices.ContainsFunc(sortedKeys(covered), func(known string) bool { return config.Within(folder, known) || config.Within(known, folder) }) {
			covered[folder] = true
			add(&fluxFolder{of: o, folder: folder, entry: true})
		}
	}
	if len(covered) == 0 {
		for _, o := range all {
			if !r.inBase(o) && !slices.ContainsFunc(all, func(other *object) bool { return leadsTo(other, o) }) {
				odd = append(odd, &fluxFolder{of: o})
			}
		}
	}
	return entries, r.nameOdd(odd, entries)
}

// leadsTo says whether the folder of a Kustomization holds the file of another one.
func leadsTo(o, other *object) bool {
	folder, ok := cleanPath(o.text("spec", "path"))
	return ok && o != other && config.Within(path.Dir(other.doc.File), folder)
}

// nameOdd gives entries a cluster that the repository does not name.
func (r *reader) nameOdd(odd []*fluxFolder, entries map[string][]*fluxFolder) error {
	if len(odd) == 0 {
		return nil
	}
	for _, f := range odd {
		name := ""
		for _, given := range r.options.Clusters {
			if slices.Contains(strings.Split(f.folder+"/"+path.Dir(f.of.doc.File), "/"), given) || len(r.options.Clusters) == 1 {
				name = given
			}
		}
		if name == "" {
			return fmt.Errorf("--cluster: which cluster is %s for (%s)? The repository does not say: give --cluster NAME", f.of.position(""), f.of.what())
		}
		entries[name] = append(entries[name], f)
	}
	return nil
}

// clusterFolder is the folder clusters/NAME that a file is in; empty when it is in none.
func clusterFolder(file string) string {
	parts := strings.Split(path.Dir(file), "/")
	for i := 0; i+1 < len(parts); i++ {
		if parts[i] == "clusters" {
			return path.Join(parts[:i+2]...)
		}
	}
	return ""
}

// clusterOf is the cluster that a folder is named for.
func clusterOf(folder string) (name string, certain bool) {
	if at := clusterFolder(folder + "/x"); at != "" {
		return asLabel(path.Base(at)), true
	}
	name = asLabel(path.Base(folder))
	return name, isStage(name)
}
