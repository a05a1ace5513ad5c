// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// helmRelease makes a HelmRelease of Flux a HelmChart.
func (c *fluxCluster) helmRelease(o *object) {
	chart, off, ok := c.chartOf(o)
	if !ok {
		return
	}
	one := &release{of: o, name: o.name(), cluster: c.name, keys: []string{o.id()}, chart: chart, needs: c.needs(o)}
	one.settings.Off = off
	if owner := c.owners[o.id()]; owner != nil {
		one.needs, one.keys = append(one.needs, owner.needs...), append(one.keys, owner.of.id())
		if why := owner.whyOff(); why != "" {
			one.settings.Off = owner.of.what() + ": " + why
		}
	}
	if suspended, _ := o.at("spec", "suspend").(bool); suspended {
		one.settings.Off = "it is suspended"
		c.note(o, "spec.suspend", "the unit is off", "take `unit: false` away to release it")
	}
	if why := c.releaseValues(o, chart); why != "" {
		one.settings.Off = "its values are not all in the repository"
		c.leave(o, "spec.valuesFrom", why, "write the values into values.yaml beside the unit's chart.yaml, then take `unit: false` away; secrets belong into a Secret that sops encrypted")
	}
	target := o.text("spec", "targetNamespace")
	chart.Namespace = cmp.Or(target, o.namespace(), "default")
	chart.Release = o.text("spec", "releaseName")
	if chart.Release == "" {
		chart.Release = o.name()
		if target != "" {
			chart.Release = target + "-" + o.name()
		}
	}
	if len(listAt(o.value, "spec", "postRenderers")) > 0 {
		one.settings.Off = "its postRenderers cannot be carried over"
		c.leave(o, "spec.postRenderers", "a HelmChart has none", "write them as overrides into the unit's Defaults, then take `unit: false` away")
	}
	if create, _ := o.at("spec", "install", "createNamespace").(bool); create {
		c.makesNamespace(o, c.name, chart.Namespace)
	}
	c.releaseSettings(o)
	c.releases = append(c.releases, one)
}

// releaseSettings says what else a HelmRelease says.
func (c *fluxCluster) releaseSettings(o *object) {
	if o.at("spec", "kubeConfig") != nil {
		c.leave(o, "spec.kubeConfig", "it is for the cluster that a kubeconfig in the cluster names", "place the unit on that Cluster of the fleet")
	}
	c.account(o)
	for _, field := range []string{"spec.install.crds", "spec.upgrade.crds"} {
		if policy := o.text(strings.Split(field, ".")...); policy == "Skip" {
			c.leave(o, field, "swell applies the definitions of a chart with its other objects", "take them out of the chart's folder crds, if they are not wanted")
		}
	}
	if enabled, _ := o.at("spec", "test", "enable").(bool); enabled {
		c.leave(o, "spec.test", "swell does not run the tests of a chart", "a Job with swell.sh/hook: gate is run by a gate of a wave")
	}
	if len(listAt(o.value, "spec", "driftDetection", "ignore")) > 0 {
		c.leave(o, "spec.driftDetection.ignore", "is for objects that the chart makes", "write it as ignore into the unit's Defaults")
	}
	if o.text("spec", "storageNamespace") != "" {
		c.note(o, "spec.storageNamespace", "swell stores no release of Helm", "")
	}
}

// chartOf finds the chart of a HelmRelease; off says why it cannot be rendered yet.
func (c *fluxCluster) chartOf(o *object) (chart *helmChart, off string, ok bool) {
	ref, isRef := o.at("spec", "chartRef").(map[string]any)
	if isRef {
		return c.chartOfRef(o, textAt(ref, "kind"), cmp.Or(textAt(ref, "namespace"), o.namespace()), textAt(ref, "name"))
	}
	return c.chartOfSpec(o, "spec.chart.spec", mapAt(o.value, "spec", "chart", "spec"), o.namespace())
}

func (c *fluxCluster) chartOfRef(o *object, kind, namespace, name string) (chart *helmChart, off string, ok bool) {
	source := c.object(fluxSource, kind, namespace, name)
	switch {
	case source == nil:
		c.leave(o, "spec.chartRef", fmt.Sprintf("%s %s is not in the repository", kind, quoted(name)), "bring the chart into the tree, and write a HelmChart for it")
		return nil, "", false
	case kind == "HelmChart":
		return c.chartOfSpec(o, "spec.chartRef", mapAt(source.value, "spec"), namespace)
	}
	url := source.text("spec", "url")
	version := cmp.Or(source.text("spec", "ref", "tag"), source.text("spec", "ref", "semver"))
	if digest := source.text("spec", "ref", "digest"); digest != "" {
		url, version = url+"@"+digest, cmp.Or(version, "")
	}
	chart, off = c.vendored(path.Base(source.text("spec", "url")), version, url, "")
	return chart, off, true
}

// chartOfSpec is the chart that a HelmChart of Flux names.
func (c *fluxCluster) chartOfSpec(o *object, field string, spec map[string]any, namespace string) (chart *helmChart, off string, ok bool) {
	kind, name := textAt(spec, "sourceRef", "kind"), textAt(spec, "sourceRef", "name")
	namespace = cmp.Or(textAt(spec, "sourceRef", "namespace"), namespace)
	source, of := c.object(fluxSource, kind, namespace, name), textAt(spec, "chart")
	version := textAt(spec, "version")
	switch kind {
	case "HelmRepository":
		if source == nil {
			c.leave(o, field, fmt.Sprintf("HelmRepository %s is not in the repository", quoted(name)), "bring the chart into the tree, and write a HelmChart for it")
			return nil, "", false
		}
		url := source.text("spec", "url")
		if strings.HasPrefix(url, "oci://") {
			chart, off = c.vendored(of, version, strings.TrimSuffix(url, "/")+"/"+of, "")
		} else {
			chart, off = c.vendored(of, version, of, url)
		}
		if len(listAt(spec, "valuesFiles")) > 0 {
			off = "the values of files in its chart are missing"
			c.leave(o, field, "valuesFiles are in the chart, which is not in the repository", "name the files in valuesFrom of the unit's chart.yaml once the chart is there, then take `unit: false` away")
		}
		return chart, off, true
	case "GitRepository":
		at, ok := cleanPath(of)
		if !ok || !c.isOwn(source, at) || !c.charts[at] {
			c.leave(o, field, fmt.Sprintf("its chart %s of GitRepository %s is not in this repository", quoted(of), quoted(name)), "bring the chart into the tree, and write a HelmChart for it")
			return nil, "", false
		}
		chart = &helmChart{Chart: at}
		for _, file := range textsAt(spec, "valuesFiles") {
			if name, ok := cleanPath(file); ok {
				chart.ValuesFrom = append(chart.ValuesFrom, name)
			}
		}
		return chart, c.whyChartOff(o, field, at), true
	}
	c.leave(o, field, fmt.Sprintf("its chart is in the %s %s", kind, quoted(name)), "bring the chart into the tree, and write a HelmChart for it")
	return nil, "", false
}

// whyChartOff says why a chart of the tree cannot be rendered yet.
func (r *reader) whyChartOff(o *object, field, chart string) string {
	about := r.aboutChart(chart)
	if about.broken {
		r.leave(o, field, fmt.Sprintf("the Chart.yaml of %s cannot be read", quoted(chart)), "mend it")
		return "its chart cannot be read"
	}
	for _, d := range about.Dependencies {
		there := slices.ContainsFunc(r.below[path.Join(chart, "charts")], func(name string) bool {
			return name == d.Name+"/" || strings.HasPrefix(name, d.Name+"-") && strings.HasSuffix(name, ".tgz")
		})
		if !there {
			r.wanted = append(r.wanted, Chart{Path: path.Join(chart, "charts"), Command: "helm dependency update " + chart})
			r.leave(o, field, fmt.Sprintf("the chart %s depends on %s, which is not in its folder charts", quoted(chart), quoted(d.Name)), fmt.Sprintf("run `helm dependency update %s`, commit what it brings, then take `unit: false` away", chart))
			return "its chart lacks a dependency"
		}
	}
	return ""
}

// chartsFolder is where charts are brought to.
const chartsFolder = "charts"

// vendored is a chart that is to stand in the tree. It is off until it does.
func (r *reader) vendored(name, version, ref, repository string) (chart *helmChart, off string) {
	if exactVersion.MatchString(version) {
		file := path.Join(chartsFolder, name+"-"+version+".tgz")
		chart = &helmChart{Chart: file}
		if r.isThere(file) {
			return chart, ""
		}
	}
	folder := path.Join(chartsFolder, cmp.Or(asLabel(name+"-"+version), "chart"), name)
	if r.charts[folder] {
		return &helmChart{Chart: folder}, ""
	}
	command := "helm pull " + ref
	if repository != "" {
		command += " --repo " + repository
	}
	if version != "" && version != "*" {
		command += " --version " + shellWord(version)
	}
	if chart == nil {
		chart = &helmChart{Chart: folder}
		command += " --untar --untardir " + path.Dir(folder)
	} else {
		command += " --destination " + chartsFolder
	}
	r.wanted = append(r.wanted, Chart{Path: chart.Chart, Command: command})
	return chart, "its chart is not in the tree yet"
}

var exactVersion = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]*)?$`)

func shellWord(text string) string {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// releaseValues gives a chart the values of a HelmRelease. why is empty when these are all.
func (c *fluxCluster) releaseValues(o *object, chart *helmChart) (why string) {
	merged := map[string]any{}
	for _, from := range listAt(o.value, "spec", "valuesFrom") {
		kind, name := textAt(from, "kind"), textAt(from, "name")
		optional, _ := valueAt(from, "optional").(bool)
		found := c.object("", kind, o.namespace(), name)
		key := cmp.Or(textAt(from, "valuesKey"), "values.yaml")
		text, there := valueAt(found.values(), "data", key).(string)
		switch {
		case kind != "ConfigMap":
			why = fmt.Sprintf("values of the %s %s are not carried over", kind, quoted(name))
		case !there && optional:
		case !there:
			why = fmt.Sprintf("values are in the ConfigMap %s, key %s, which is not in the repository", quoted(name), quoted(key))
		case textAt(from, "targetPath") != "":
			why = fmt.Sprintf("the value of the ConfigMap %s goes to targetPath %s", quoted(name), quoted(textAt(from, "targetPath")))
		default:
			var values map[string]any
			if err := yaml.Unmarshal([]byte(text), &values); err != nil {
				why = fmt.Sprintf("key %s of the ConfigMap %s is no YAML", quoted(key), quoted(name))
				continue
			}
			merged = mergeValues(merged, values)
			c.note(o, "spec.valuesFrom", fmt.Sprintf("the values of the ConfigMap %s are copied into values.yaml", quoted(name)), "change them there")
		}
	}
	chart.Values = mergeValues(merged, mapAt(o.value, "spec", "values"))
	return why
}

// values are those of an object, which may be nil.
func (o *object) values() map[string]any {
	if o == nil {
		return nil
	}
	return o.value
}

// mergeValues lays values over others as Helm does: maps are merged, all else replaced.
func mergeValues(under, over map[string]any) map[string]any {
	merged := maps.Clone(under)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range over {
		below, isMap := value.(map[string]any)
		was, wasMap := merged[key].(map[string]any)
		if isMap && wasMap {
			merged[key] = mergeValues(was, below)
			continue
		}
		merged[key] = value
	}
	return merged
}
