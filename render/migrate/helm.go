// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
)

// readHelm takes each chart of the tree for a release, or for one in each environment that
// it has values for.
func (r *reader) readHelm() error {
	r.noteHelmfiles()
	var charts []string
	for _, folder := range sortedKeys(r.charts) {
		if folder != "." && r.inChart(path.Dir(folder)) {
			continue // of another chart
		}
		charts = append(charts, folder)
	}
	if len(charts) == 0 {
		return errors.New("no chart (Chart.yaml) is in the repository")
	}
	values := map[string]map[string][]string{} // by chart and environment
	for _, chart := range charts {
		values[chart] = r.valuesFiles(chart)
		if len(r.options.Clusters) == 0 {
			for _, stage := range sortedKeys(values[chart]) {
				r.addCluster(asLabel(stage))
			}
		}
	}
	names := map[string]int{}
	for _, chart := range charts {
		names[r.aboutChart(chart).Name]++
	}
	for _, chart := range charts {
		r.helmChart(chart, values[chart], names)
	}
	return nil
}

// chartAbout is what is read of a Chart.yaml.
type chartAbout struct {
	Name, Type   string
	Dependencies []struct{ Name string }
	broken       bool
}

func (r *reader) aboutChart(folder string) (about chartAbout) {
	text, err := r.tree.ReadFile(path.Join(folder, "Chart.yaml"))
	about.broken = err != nil || yaml.Unmarshal(text, &about) != nil || about.Name == ""
	return about
}

func (r *reader) noteHelmfiles() {
	for _, name := range r.files {
		if base := path.Base(name); base == "helmfile.yaml" || base == "helmfile.yml" {
			r.leave(stand(name, "file", base), "", "helmfile is not read", "`helmfile template` writes out what it makes; or write a HelmChart for each of its releases")
		}
	}
}

// valuesFiles are the files of values of a chart, by the environment that they are named
// for: values-ENV.yaml, values.ENV.yaml, ENV.yaml, and the same in values/, env/ and so on.
func (r *reader) valuesFiles(chart string) map[string][]string {
	found := map[string][]string{}
	for _, folder := range []string{"", "values", "env", "envs", "environments"} {
		for _, name := range r.below[path.Join(chart, folder)] {
			stem := strings.TrimSuffix(strings.TrimSuffix(name, ".yaml"), ".yml")
			if below, isFolder := strings.CutSuffix(name, "/"); isFolder && folder != "" {
				if file := path.Join(chart, folder, below, "values.yaml"); r.isThere(file) {
					found[below] = append(found[below], file)
				}
				continue
			}
			stage := ""
			for _, prefix := range []string{"values-", "values.", "values_"} {
				if rest, ok := strings.CutPrefix(stem, prefix); ok {
					stage = rest
				}
			}
			if stage == "" && (folder != "" || isStage(stem)) && stem != "values" {
				stage = stem
			}
			if stage != "" && config.IsYAML(name) && asLabel(stage) != "" && (isStage(stage) || slices.Contains(r.options.Clusters, stage) || stageOf(stage) != stageOf("")) {
				found[stage] = append(found[stage], path.Join(chart, folder, name))
			}
		}
	}
	return found
}

// helmChart adds the releases of a chart. names are how many charts have which name.
func (r *reader) helmChart(folder string, values map[string][]string, names map[string]int) {
	of, about := stand(path.Join(folder, "Chart.yaml"), "chart", folder), r.aboutChart(folder)
	switch {
	case about.broken:
		r.leave(of, "", "its Chart.yaml cannot be read, or has no name", "mend it")
		return
	case about.Type == "library":
		return
	case folder == ".":
		r.leave(of, "", "the chart is the root of the repository, where swell's own files stand", "move it into a folder, like charts/"+about.Name)
		return
	}
	name := asLabel(about.Name)
	if names[about.Name] > 1 {
		name = asLabel(folder)
	}
	r.note(of, "", "the release is named for its chart, and so is its namespace", "release and namespace in the unit's chart.yaml, if Helm has it under others")
	off := r.whyChartOff(of, "", folder)
	add := func(cluster string, files []string) {
		one := &release{of: of, name: name, cluster: cluster, chart: &helmChart{Chart: folder, Release: name, Namespace: name, ValuesFrom: files}}
		one.settings.Off = off
		r.makesNamespace(of, cluster, name)
		r.releases = append(r.releases, one)
	}
	on := map[string]bool{}
	for _, stage := range sortedKeys(values) {
		at := r.clustersFor("", stage)
		if len(at) == 0 {
			r.leave(stand(values[stage][0], "file", path.Base(values[stage][0])), "", fmt.Sprintf("no cluster has a name like %s", quoted(stage)), fmt.Sprintf("--cluster %s, or one with that word in its name", asLabel(stage)))
		}
		for _, cluster := range at {
			if !on[cluster] {
				add(cluster, values[stage])
			}
			on[cluster] = true
		}
	}
	for _, cluster := range r.clusters {
		if !on[cluster] {
			add(cluster, nil)
		}
	}
}
