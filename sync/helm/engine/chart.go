// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/ignore"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/render/helm"
)

// loaded is a chart as it was read. It is not changed.
type loaded struct {
	chart *chart.Chart
	// folders are where the charts of the tree stand, by the names that their templates
	// have: app/charts/db is charts/db-1.2.3.tgz.
	folders map[string]string
	sources map[string]string // the texts of templates, by those names
	err     error
}

// load reads the files of a chart as Helm does.
func load(c helm.Chart) *loaded {
	files, err := unpacked(c)
	if err != nil {
		return &loaded{err: err}
	}
	read, err := loader.LoadFiles(files)
	if err != nil {
		return &loaded{err: plain(err)}
	}
	l := &loaded{chart: read, folders: map[string]string{}, sources: map[string]string{}}
	sortDependencies(read)
	l.place(read, read.Name(), "")
	return l
}

// unpacked are the files that Helm would read of the chart.
func unpacked(c helm.Chart) ([]*archive.BufferedFile, error) {
	budget := newBudget()
	if c.Archive {
		if err := budget.check(c.Files[0].Content, "", 1); err != nil {
			return nil, err
		}
		return archive.LoadArchiveFiles(bytes.NewReader(c.Files[0].Content))
	}
	rules := ignore.Empty()
	for _, f := range c.Files {
		if f.Name == ignore.HelmIgnore {
			read, err := ignore.Parse(bytes.NewReader(f.Content))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			rules = read
		}
	}
	rules.AddDefaults()
	var files []*archive.BufferedFile
	for _, f := range c.Files {
		if !ignored(rules, f.Name) {
			if isCharts(f.Name) {
				if err := budget.check(f.Content, f.Name, 1); err != nil {
					return nil, err
				}
			}
			content := bytes.TrimPrefix(f.Content, []byte("\xEF\xBB\xBF"))
			files = append(files, &archive.BufferedFile{Name: f.Name, Data: content})
		}
	}
	return files, nil
}

// ignored says whether a file, or a folder that it stands in, is to be passed over.
func ignored(rules *ignore.Rules, name string) bool {
	for i, c := range name {
		if c == '/' && rules.Ignore(name[:i], entry{path.Base(name[:i]), true}) {
			return true
		}
	}
	return rules.Ignore(name, entry{path.Base(name), false})
}

// entry is as much of a file as rules look at.
type entry struct {
	name   string
	folder bool
}

func (e entry) Name() string { return e.name }
func (e entry) Size() int64  { return 0 }
func (e entry) Mode() fs.FileMode {
	if e.folder {
		return fs.ModeDir
	}
	return 0
}
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.folder }
func (e entry) Sys() any           { return nil }

// sortDependencies gives charts an order: Helm's is that of a Go map.
func sortDependencies(c *chart.Chart) {
	list := slices.Clone(c.Dependencies())
	slices.SortStableFunc(list, func(a, b *chart.Chart) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Metadata.Version, b.Metadata.Version))
	})
	c.SetDependencies(list...)
	for _, below := range list {
		sortDependencies(below)
	}
}

// place notes where the files of a chart and of those in it stand. full is what its
// templates are called.
func (l *loaded) place(c *chart.Chart, full, folder string) {
	l.folders[full] = folder
	for _, t := range c.Templates {
		l.sources[path.Join(full, t.Name)] = string(t.Data)
	}
	for _, below := range c.Dependencies() {
		at := path.Join(folder, "charts", standsIn(c, below))
		l.place(below, full+"/charts/"+below.Name(), at)
		for _, d := range c.Metadata.Dependencies {
			if d != nil && d.Alias != "" && d.Name == below.Name() {
				l.place(below, full+"/charts/"+d.Alias, at)
			}
		}
	}
}

// standsIn is the folder or the archive in charts that a chart was read from.
func standsIn(c, below *chart.Chart) string {
	named := ""
	for _, f := range c.Raw {
		inside, ok := strings.CutPrefix(f.Name, "charts/")
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(inside, "/")
		if name == below.Name()+"-"+below.Metadata.Version+".tgz" {
			return name
		}
		if strings.HasSuffix(name, ".tgz") && strings.HasPrefix(name, below.Name()) && len(name) > len(named) {
			named = name // by another version, or none
		}
		var metadata chart.Metadata
		if rest == "Chart.yaml" && yaml.Unmarshal(f.Data, &metadata) == nil && metadata.Name == below.Name() && metadata.Version == below.Metadata.Version {
			return name
		}
	}
	return cmp.Or(named, below.Name())
}

// fileOf is where a template stands in the chart, from what Helm calls it; empty for
// none of the chart's.
func (l *loaded) fileOf(template string) string {
	if _, known := l.sources[template]; !known {
		return ""
	}
	chart, name, _ := cutLast(template, "/templates/")
	for { // templates may be in a folder named templates
		if folder, ok := l.folders[chart]; ok {
			return path.Join(folder, "templates", name)
		}
		outer, inner, found := cutLast(chart, "/templates/")
		if !found {
			return ""
		}
		chart, name = outer, inner+"/templates/"+name
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// copied is the chart for one rendering, which changes it.
func copied(c *chart.Chart) *chart.Chart {
	out := *c
	metadata := *c.Metadata
	metadata.Dependencies = nil
	for _, d := range c.Metadata.Dependencies {
		if d != nil {
			dependency := *d
			metadata.Dependencies = append(metadata.Dependencies, &dependency)
		}
	}
	out.Metadata = &metadata
	out.Values, _ = copyValue(c.Values).(map[string]any)
	var below []*chart.Chart
	for _, d := range c.Dependencies() {
		below = append(below, copied(d))
	}
	out.SetDependencies(below...)
	return &out
}

func copyValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			return value
		}
		m := make(map[string]any, len(value))
		for key, v := range value {
			m[key] = copyValue(v)
		}
		return m
	case []any:
		l := make([]any, len(value))
		for i, v := range value {
			l[i] = copyValue(v)
		}
		return l
	}
	return value
}

// check finds why the chart cannot be rendered at all.
func (l *loaded) check(kubernetes string) []helm.Finding {
	c := l.chart
	finding := func(format string, args ...any) []helm.Finding {
		return []helm.Finding{{File: "Chart.yaml", Line: 1, Text: fmt.Sprintf(format, args...)}}
	}
	if v := c.Metadata.APIVersion; v != chart.APIVersionV1 && v != chart.APIVersionV2 {
		return finding("apiVersion %q: want %s or %s", v, chart.APIVersionV1, chart.APIVersionV2)
	}
	if c.Metadata.Type == "library" {
		return finding("chart %s is a library: it has no objects of its own, other charts use it", c.Name())
	}
	if c.Metadata.KubeVersion != "" && !chartutil.IsCompatibleRange(c.Metadata.KubeVersion, kubernetes) {
		return finding("chart %s wants Kubernetes %s, and the cluster has %s", c.Name(), c.Metadata.KubeVersion, kubernetes)
	}
	var missing []string
	for _, d := range c.Metadata.Dependencies {
		if d != nil && !slices.ContainsFunc(c.Dependencies(), func(have *chart.Chart) bool { return have.Name() == d.Name }) {
			missing = append(missing, strings.TrimSpace(d.Name+" "+d.Version))
		}
	}
	slices.Sort(missing)
	if missing = slices.Compact(missing); len(missing) > 0 {
		return finding("chart %s depends on %s, which is not in its folder charts: run `helm dependency build` there, and commit what it brings", c.Name(), strings.Join(missing, ", "))
	}
	return nil
}
