// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// writer makes the files of a proposal.
type writer struct {
	*reader
	layout
	groups []*group
	files  map[string][]byte
}

// propose is the proposal for what was read.
func (r *reader) propose() (*Proposal, error) {
	l, err := r.layout()
	if err != nil {
		return nil, err
	}
	if len(r.clusters) == 0 {
		return nil, errors.New("--cluster: which clusters? The repository names none")
	}
	r.order()
	r.namespaces()
	w := &writer{reader: r, layout: l, groups: r.grouped(), files: map[string][]byte{}}
	r.place(w.groups, l)
	w.groups = slices.DeleteFunc(w.groups, func(g *group) bool { return g.unit == "" })
	if len(w.groups) == 0 {
		return nil, r.nothing()
	}
	w.rollouts()
	for _, g := range w.groups {
		w.unit(g)
	}
	w.scopes()
	w.hide()
	w.root()
	w.fleetFiles()
	return w.proposal(), nil
}

// nothing is the error of a repository without anything that can be a unit.
func (r *reader) nothing() error {
	if len(r.left) == 0 {
		return errors.New("nothing found that could be a unit")
	}
	first := sortNotes(r.left)[0]
	return fmt.Errorf("nothing can be carried over: %s: %s: %s", first.At, first.What, first.Why)
}

func (w *writer) proposal() *Proposal {
	p := &Proposal{Clusters: w.clusters, Notes: sortNotes(w.notes), NotCarried: sortNotes(w.left), Charts: w.wanted}
	slices.SortFunc(p.Charts, func(a, b Chart) int { return strings.Compare(a.Path, b.Path) })
	p.Charts = slices.Compact(p.Charts)
	for _, name := range sortedKeys(w.files) {
		p.Files = append(p.Files, txtar.File{Name: name, Data: w.files[name]})
	}
	for _, g := range w.groups {
		u := Unit{Path: g.unit, Clusters: g.clusters, At: g.of.position(""), Off: g.settings.Off}
		u.At.Column = 0
		for _, of := range g.from {
			if !slices.Contains(u.From, of.what()) {
				u.From = append(u.From, of.what())
			}
		}
		p.Units = append(p.Units, u)
	}
	slices.SortFunc(p.Units, func(a, b Unit) int { return strings.Compare(a.Path, b.Path) })
	return p
}

// unit writes the files of a unit.
func (w *writer) unit(g *group) {
	switch {
	case g.chart != nil:
		w.chart(g)
	case len(g.namespaces) > 0:
		w.namespaceFiles(g)
	case g.generated:
		w.overlay(g)
	case w.kustomizations[g.folder] == "":
		w.ignore(g)
	}
	spec := w.defaults(g)
	if len(spec) == 0 && g.generated {
		return // its folder says all
	}
	w.files[path.Join(g.unit, config.SettingsFile)] = []byte(w.header(g) + w.settingsFile(path.Base(g.unit), spec))
}

// header says where a unit comes from.
func (w *writer) header(g *group) string {
	var b strings.Builder
	if w.kustomizations[g.unit] == "" && !g.generated {
		b.WriteString(skipMark)
	}
	var from []string
	for _, of := range g.from {
		at := of.position("")
		at.Column = 0
		from = append(from, fmt.Sprintf("# %s, %s\n", comment(of.what()), at))
	}
	slices.Sort(from)
	if more := len(from) - 3; more > 0 {
		from = append(from[:3], fmt.Sprintf("# and %d more\n", more))
	}
	b.WriteString(strings.Join(from, ""))
	if g.settings.Off != "" {
		fmt.Fprintf(&b, "# Off: %s.\n", comment(g.settings.Off))
	}
	return b.String()
}

// skipMark keeps Argo CD from applying a file in a folder of plain YAML.
const skipMark = "# +argocd:skip-file-rendering\n"

// sourceIgnore says which files Flux does not read.
const sourceIgnore = ".sourceignore"

// hide keeps Flux from applying swell's own files in folders of plain YAML.
func (w *writer) hide() {
	at := slices.IndexFunc(w.groups, func(g *group) bool { return !g.generated && w.kustomizations[g.unit] == "" })
	if w.tool != "flux" || at < 0 {
		return
	}
	text, err := w.tree.ReadFile(sourceIgnore)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.files[sourceIgnore] = []byte("# These are for swell. Flux would apply them, in folders without a kustomization.\n" + config.SettingsFile + "\n")
	case !slices.Contains(strings.Fields(string(text)), config.SettingsFile):
		w.left = append(w.left, Note{At: document.Position{File: sourceIgnore}, What: "file", Why: "Flux would apply swell.yaml in folders without a kustomization, such as " + w.groups[at].unit,
			Do: "add a line " + config.SettingsFile + " before you commit"})
	}
}

// defaults is the spec of a unit's own Defaults.
func (w *writer) defaults(g *group) (spec []string) {
	say := func(format string, args ...any) { spec = append(spec, fmt.Sprintf(format, args...)) }
	if !g.generated {
		say("placement: %s", w.placement(g.clusters))
	}
	s := g.settings
	if s.Namespace != "" && g.chart == nil {
		say("namespace: %s", scalar(s.Namespace))
	}
	if g.rollout != "" {
		say("rollout: %s", scalar(g.rollout))
	}
	if s.Keep {
		say("prune: keep")
	}
	if s.Drift != "" {
		say("drift: [{mode: %s}]", s.Drift)
	}
	if len(s.Ignore) > 0 {
		text, _ := yaml.Marshal(s.Ignore)
		say("ignore:\n  %s", strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n  "))
	}
	switch {
	case s.Off != "":
		say("unit: false")
	case !g.generated && len(w.named[g.folder]) > 0:
		say("unit: true                           # also a base of others")
	}
	return spec
}

// placement is on some clusters, or on all.
func (w *writer) placement(clusters []string) string {
	if len(clusters) == len(w.clusters) {
		return "{topology: cluster}"
	}
	var names []string
	for _, name := range clusters {
		names = append(names, scalar(name))
	}
	return fmt.Sprintf("{topology: cluster, match: {labels: {cluster: [%s]}}}", strings.Join(names, ", "))
}

func (w *writer) settingsFile(name string, spec []string) string {
	return fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: %s}\nspec:\n  %s\n", scalar(cmp.Or(asLabel(name), "unit")), strings.Join(spec, "\n  "))
}

// overlay writes the kustomizations of a generated unit.
func (w *writer) overlay(g *group) {
	w.base(g)
	changes := g.changes
	if len(changes) == 0 {
		changes = []change{{}}
	}
	over := g.folder
	for i, c := range changes {
		at := path.Join(g.unit, strings.Repeat("base/", len(changes)-1-i))
		w.files[path.Join(at, config.KustomizationFiles[0])] = c.file(at, relative(at, over))
		over = at
	}
}

// base makes sure that the folder of a generated unit has a kustomization.
func (w *writer) base(g *group) {
	if w.kustomizations[g.folder] != "" {
		return
	}
	file := path.Join(g.folder, config.KustomizationFiles[0])
	if w.files[file] == nil {
		w.note(g.of, "", "its folder has a kustomization.yaml now, which names what the other tool finds there by itself", "name new files in it")
	}
	resources := slices.DeleteFunc(slices.Clone(w.content(g.folder, g.deep).resources), func(name string) bool { return slices.Contains(g.leaves, name) })
	w.files[file] = (&change{}).file(g.folder, resources...)
}

// ignore leaves files and folders out of a unit that stands where its release does.
func (w *writer) ignore(g *group) {
	leaves := slices.Clone(g.leaves)
	if !g.deep {
		for _, name := range w.below[g.folder] {
			if strings.HasSuffix(name, "/") && w.hasYAML(path.Join(g.folder, name)) {
				leaves = append(leaves, name)
			}
		}
	}
	if len(leaves) == 0 {
		return
	}
	slices.Sort(leaves)
	var b strings.Builder
	fmt.Fprintf(&b, "# What %s does not bring, or what is of no use to swell.\n", comment(g.of.what()))
	for _, name := range leaves {
		fmt.Fprintf(&b, "/%s\n", escapePattern(name))
	}
	w.files[path.Join(g.folder, config.IgnoreFile)] = []byte(b.String())
}

// escapePattern is a path as a pattern of itself alone.
func escapePattern(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`).Replace(name)
}

func (r *reader) hasYAML(folder string) bool {
	return slices.ContainsFunc(r.below[folder], func(name string) bool {
		return config.IsYAML(name) || strings.HasSuffix(name, "/") && r.hasYAML(path.Join(folder, name))
	})
}

// chart writes a HelmChart and its values.
func (w *writer) chart(g *group) {
	c := g.chart
	spec := map[string]any{"chart": relative(g.unit, c.Chart), "namespace": c.Namespace}
	if c.Release != g.name {
		spec["release"] = c.Release
	}
	var from []string
	for _, file := range c.ValuesFrom {
		from = append(from, relative(g.unit, file))
	}
	if len(c.Values) > 0 {
		text, _ := yaml.Marshal(c.Values)
		w.files[path.Join(g.unit, "values.yaml")] = text
		from = append(from, "values.yaml")
	}
	if len(from) > 0 {
		spec["valuesFrom"] = from
	}
	text, _ := yaml.Marshal(map[string]any{"apiVersion": config.APIVersion, "kind": config.HelmChartKind, "metadata": map[string]any{"name": cmp.Or(asLabel(g.name), "chart")}, "spec": spec})
	w.files[path.Join(g.unit, "chart.yaml")] = text
}

// scopes writes the placement of the generated units.
func (w *writer) scopes() {
	found := scopes(w.groups)
	for _, folder := range sortedKeys(found) {
		w.files[path.Join(folder, config.SettingsFile)] = []byte(w.settingsFile(path.Base(folder), []string{"placement: " + w.placement(found[folder])}))
	}
}
