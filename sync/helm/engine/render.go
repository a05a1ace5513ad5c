// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/render/helm"
)

// render renders a chart for one request. The same chart and request give the same answer.
func (l *loaded) render(request *helm.Request) (answer helm.Answer) {
	if l.err != nil {
		return problem(l.err)
	}
	kubernetes, err := common.ParseKubeVersion(request.Kubernetes + ".0")
	if err != nil {
		return problem(err)
	}
	if found := l.check(kubernetes.String()); len(found) > 0 {
		return helm.Answer{Problems: found}
	}
	if err := chartutil.ValidateReleaseName(request.Release); err != nil {
		return problem(fmt.Errorf("release %q: %w", request.Release, err))
	}
	if _, answer := values(request); len(answer.Problems) > 0 {
		return answer
	}
	capabilities := &common.Capabilities{KubeVersion: *kubernetes, APIVersions: request.APIVersions, HelmVersion: common.DefaultCapabilities.HelmVersion}
	r := renderings{loaded: l, request: request, capabilities: capabilities, kept: map[callSide][]reflect.Value{}}
	c, top, err := r.prepare()
	if err != nil {
		return problem(err)
	}
	all, _ := top["Values"].(common.Values)
	if found := l.checkValues(c, all, c.ChartFullPath(), nil); len(found) > 0 {
		return helm.Answer{Problems: found}
	}
	if found := l.outside(c); len(found) > 0 {
		return helm.Answer{Problems: found}
	}
	first := r.chance(allAlike(0), -1)
	rendered, err := first.render(c, top)
	if err != nil {
		return helm.Answer{Problems: []helm.Finding{l.explain(err)}}
	}
	if found := r.differs(first, rendered); found != nil {
		return helm.Answer{Problems: []helm.Finding{*found}}
	}
	if first.looked {
		answer.Notes = append(answer.Notes, helm.Finding{Text: "the chart looks for objects of the cluster: it is rendered as on a first install, where there are none"})
	}
	l.collect(c, rendered, &answer)
	return answer
}

func problem(err error) helm.Answer {
	return helm.Answer{Problems: []helm.Finding{{Text: plain(err).Error()}}}
}

// plain is an error in one line.
func plain(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return errors.New(strings.TrimSuffix(text, "."))
}

// values are those of the request, without those of the chart.
func values(request *helm.Request) (all map[string]any, answer helm.Answer) {
	all = map[string]any{}
	for _, f := range request.Files {
		read, err := loader.LoadValues(bytes.NewReader(f.Content))
		if err != nil {
			answer.Problems = append(answer.Problems, helm.Finding{ValuesFile: f.Name, Text: plain(err).Error()})
			continue
		}
		all = loader.MergeMaps(all, read)
	}
	own := map[string]any{}
	if len(request.Values) > 0 {
		if err := json.Unmarshal(request.Values, &own); err != nil {
			return nil, problem(fmt.Errorf("values: %w", err))
		}
	}
	return loader.MergeMaps(all, own), answer
}

// collect takes the objects out of what the templates gave, and those of the folders crds.
func (l *loaded) collect(c *chart.Chart, rendered map[string]string, answer *helm.Answer) {
	for _, crd := range c.CRDObjects() {
		folder := strings.TrimSuffix(crd.Filename, "/"+crd.Name)
		l.documents(path.Join(l.folders[folder], crd.Name), string(crd.File.Data), answer)
	}
	for i := range answer.Objects {
		answer.Objects[i].OfCRDs = true
	}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasPrefix(path.Base(name), "_") || strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		l.documents(l.fileOf(name), rendered[name], answer)
	}
}

// documents takes up the objects of a file of output.
func (l *loaded) documents(file, output string, answer *helm.Answer) {
	for _, d := range split(output) {
		text, err := yaml.YAMLToJSON([]byte(d.text))
		if err == nil && string(text) != "null" && text[0] != '{' {
			err = errors.New("want an object with apiVersion and kind")
		}
		if err != nil {
			answer.Problems = append(answer.Problems, helm.Finding{File: file, Text: "what it renders to is no YAML of an object: " + plain(err).Error()})
			return
		}
		if string(text) == "null" {
			continue
		}
		l.object(helm.Object{File: file, JSON: text, Text: d.text, Line: d.line}, answer)
	}
}

// object takes up an object, or the items of a List, a RoleList or another list.
func (l *loaded) object(o helm.Object, answer *helm.Answer) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(o.JSON, &list) != nil || !strings.HasSuffix(list.Kind, "List") || list.Kind != "List" && list.Items == nil {
		answer.Objects = append(answer.Objects, o)
		return
	}
	for i, item := range list.Items {
		o.JSON, o.Item = item, i+1
		answer.Objects = append(answer.Objects, o)
	}
}

// document is a part of a file of output, and the line that it begins at.
type document struct {
	text string
	line int
}

// split takes output apart where Helm does: at lines that begin with three dashes. Each
// document gets one more newline at its end, as Helm gives it, which block scalars may keep.
func split(output string) (documents []document) {
	var lines []string
	begin := 1
	end := func(next int) {
		whole := strings.Join(lines, "\n")
		if next > 0 && len(lines) > 0 {
			whole += "\n" // before the dashes
		}
		if text := strings.TrimLeftFunc(whole, unicode.IsSpace); text != "" {
			blank := strings.Count(whole[:len(whole)-len(text)], "\n")
			documents = append(documents, document{text + "\n", begin + blank})
		}
		lines, begin = nil, next
	}
	for i, line := range strings.Split(output, "\n") {
		if !strings.HasPrefix(line, "---") {
			lines = append(lines, line)
			continue
		}
		end(i + 1)
		lines = append(lines, strings.TrimLeft(line[3:], " \t")) // what follows is of the document
	}
	end(0)
	return documents
}
