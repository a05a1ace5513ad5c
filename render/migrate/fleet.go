// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/sops"
)

// root writes the Repository.
func (w *writer) root() {
	units := w.unitFolders()
	var b strings.Builder
	b.WriteString("# The name is on everything that swell applies. It cannot change later.\n")
	fmt.Fprintf(&b, "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: %s}\nspec:\n", scalar(w.options.Name))
	if w.fleet != "fleet" {
		fmt.Fprintf(&b, "  fleet: %s\n", scalar(w.fleet))
	}
	for _, folder := range sortedKeys(w.renamed) {
		fmt.Fprintf(&b, "  %s: %s\n", folder, scalar(w.renamed[folder]))
		if folder == "kinds" { // it has to be there
			w.files[path.Join(w.renamed[folder], ".gitkeep")] = nil
		}
	}
	b.WriteString("  units:\n")
	for _, folder := range units {
		fmt.Fprintf(&b, "  - %s\n", scalar(folder))
	}
	b.WriteString("  checks:\n    unknownKinds: warn                 # until swell facts pull, or schemas/, has the definitions\n")
	if w.plainSecrets() {
		b.WriteString("    plainSecrets: warn                 # there are some: encrypt them with sops\n")
	}
	w.files[config.SettingsFile] = []byte(b.String())
}

// many folders beside each other are written as one pattern, where all beside them are
// units.
const many = 20

// unitFolders are the patterns of the folders of units, sorted.
func (w *writer) unitFolders() []string {
	folders, beside := map[string]bool{}, map[string]int{}
	for _, g := range w.groups {
		switch {
		case g.generated:
			folders[w.units] = true
		default:
			folders[g.unit] = true
			beside[path.Dir(g.unit)]++
		}
	}
	patterns := map[string]bool{}
	for folder := range folders {
		dir := path.Dir(folder)
		all := slices.DeleteFunc(slices.Clone(w.below[dir]), func(name string) bool { return !strings.HasSuffix(name, "/") })
		if dir != "." && beside[dir] >= many && beside[dir] == len(all) {
			patterns[escapePattern(dir)+"/*"] = true
			continue
		}
		patterns[escapePattern(folder)] = true
	}
	return sortedKeys(patterns)
}

// scalar is a text as a value of YAML, in a line, that reads as that text again.
func scalar(text string) string {
	var read any
	plain := strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") == "" && !strings.HasPrefix(text, "-")
	if plain && yaml.Unmarshal([]byte(text), &read) == nil && read == text {
		return text
	}
	return fmt.Sprintf("%q", text)
}

// comment is a text as a part of a comment of YAML.
func comment(text string) string { return strings.Join(strings.Fields(text), " ") }

// plainSecrets says whether a unit has a Secret that anybody with the repository can read.
func (w *writer) plainSecrets() bool {
	found := false
	for _, g := range w.groups {
		for _, o := range g.objects {
			if o.kind() == "Secret" && o.group() == "" && o.value[sops.Field] == nil && len(mapAt(o.value, "data"))+len(mapAt(o.value, "stringData")) > 0 {
				found = true
			}
		}
	}
	return found
}

// fleetFiles writes the clusters and the default rollout.
func (w *writer) fleetFiles() {
	for _, name := range w.clusters {
		w.files[path.Join(w.fleet, name+".yaml")] = fmt.Appendf(nil, "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: %s, labels: {cluster: %s}}\nspec: {tenants: [\"*\"]}\n", scalar(name), scalar(name))
	}
	text := "# A change goes to one cluster first. The others follow once that has been healthy for the\n# time of its soak. A release that fails is put back.\n"
	if len(w.clusters) == 1 {
		text = "# A release that fails is put back.\n"
	}
	w.files[path.Join(w.fleet, "rollout.yaml")] = []byte(text + w.rolloutFile("default", nil))
}

// rolloutFile is a Rollout whose waves wait for units.
func (w *writer) rolloutFile(name string, after []string) string {
	gates := ""
	if len(after) > 0 {
		var list []string
		for _, unit := range after {
			list = append(list, fmt.Sprintf("{after: {unit: %s}}", scalar(unit)))
		}
		gates = ", gates: [" + strings.Join(list, ", ") + "]"
	}
	waves := fmt.Sprintf("  - {name: all, timeout: 10m%s}\n", gates)
	if len(w.clusters) > 1 {
		waves = fmt.Sprintf("  - {name: canary, targets: [%s], soak: 5m, timeout: 10m%s}\n  - {name: rest, timeout: 10m%s}\n", scalar(w.clusters[0]), gates, gates)
	}
	return fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: %s}\nspec:\n  waves:\n%s  onFailure: rollback\n", scalar(name), waves)
}

// rollouts gives units that come after others a Rollout of their own.
func (w *writer) rollouts() {
	units := map[string][]*group{} // of the releases of a cluster, by cluster and key
	for _, g := range w.groups {
		for _, one := range g.members {
			for _, key := range one.keys {
				units[one.cluster+" "+key] = append(units[one.cluster+" "+key], g)
			}
		}
	}
	before := map[*group][]*group{}
	for _, g := range w.groups {
		for _, one := range g.members {
			for _, need := range one.needs {
				for _, other := range units[one.cluster+" "+need] {
					if other != g && other.settings.Off == "" && !slices.Contains(before[g], other) {
						before[g] = append(before[g], other)
					}
				}
			}
		}
	}
	names := map[string]string{} // by what comes before
	taken := map[string]bool{"default": true}
	var text []string
	for _, g := range w.groups {
		var after []string
		for _, other := range before[g] {
			if leads(before, other, g, map[*group]bool{}) {
				w.leave(g.of, "spec.dependsOn", "it leads back to itself, through "+other.of.what(), "mend the circle")
				continue
			}
			after = append(after, other.unit)
		}
		if len(after) == 0 || g.settings.Off != "" {
			continue
		}
		slices.Sort(after)
		key := strings.Join(after, " ")
		if names[key] == "" {
			names[key] = rolloutName(after, taken)
			text = append(text, w.rolloutFile(names[key], after))
		}
		g.rollout = names[key]
	}
	if len(text) > 0 {
		w.files[path.Join(w.fleet, "order.yaml")] = []byte("# What comes after what. swell waits for namespaces and definitions without these.\n" + strings.Join(text, "---\n"))
	}
}

// leads says whether a group waits for another one, whatever the number of steps.
func leads(before map[*group][]*group, from, to *group, seen map[*group]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	return slices.ContainsFunc(before[from], func(next *group) bool { return !seen[next] && leads(before, next, to, seen) })
}

func rolloutName(after []string, taken map[string]bool) string {
	name := "after-" + asLabel(path.Base(after[0]))
	if isStage(path.Base(after[0])) {
		name = "after-" + asLabel(after[0])
	}
	if len(after) > 1 {
		name = fmt.Sprintf("%.45s-and-%d", name, len(after)-1)
	}
	name = fmt.Sprintf("%.58s", name)
	unique := name
	for i := 2; taken[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", name, i)
	}
	taken[unique] = true
	return unique
}
