// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swell-sh/swell/config/document"
)

// HelmChartKind is the kind of documents that stand for the objects of a Helm chart.
const HelmChartKind = "HelmChart"

// IsHelmChart says whether a document of a unit is one.
func IsHelmChart(doc *document.Document) bool {
	return doc.Kind == HelmChartKind && doc.APIVersion == APIVersion
}

// HelmChart is a Helm chart of the tree and how it is rendered. Release, namespace and
// values are as they are written: they may have expressions.
type HelmChart struct {
	Doc *document.Document
	// Chart is the path in the tree of a folder or an archive.
	Chart string
	// Release is never nil. Namespace is nil where the unit's Defaults are to give it.
	Release, Namespace *yaml.Node
	// ValuesFrom are the paths of files in the tree.
	ValuesFrom []string
	// Values is nil where there are none.
	Values *yaml.Node
}

// ReadHelmChart reads a HelmChart.
func ReadHelmChart(doc *document.Document) (*HelmChart, document.Problems) {
	var spec struct {
		Chart, Release, Namespace string
		ValuesFrom                []string
		Values                    map[string]any
	}
	if problems := DecodeOwn(doc, &spec); len(problems) > 0 {
		return nil, problems
	}
	written := document.Lookup(doc.Node, "spec")
	metadata := document.Lookup(doc.Node, "metadata")
	c := &HelmChart{Doc: doc, Release: cmp.Or(document.Lookup(written, "release"), document.Lookup(metadata, "name")),
		Namespace: document.Lookup(written, "namespace"), Values: document.Lookup(written, "values")}
	var problems document.Problems
	problem := func(code document.Code, path []any, format string, args ...any) {
		problems = append(problems, doc.Problem(document.NodeAt(doc.Node, path), code, document.PathOf(path...)+": "+format, args...))
	}
	if doc.Name == "" {
		problems = append(problems, doc.Problem(doc.Node, document.CodeDocument, "metadata.name: missing"))
	}
	if spec.Chart == "" {
		problem(document.CodeReference, []any{"spec", "chart"}, "missing: name a folder with a Chart.yaml, or a .tgz, of this tree")
	} else if c.Chart = inTree(doc.File, spec.Chart); c.Chart == "" {
		problem(document.CodeReference, []any{"spec", "chart"}, "%q: %s", document.Shorten(spec.Chart), outOfTree(spec.Chart))
	}
	for i, name := range spec.ValuesFrom {
		file := inTree(doc.File, name)
		if file == "" {
			problem(document.CodeReference, []any{"spec", "valuesFrom", i}, "%q: %s", document.Shorten(name), outOfTree(name))
		}
		c.ValuesFrom = append(c.ValuesFrom, file)
	}
	return c, problems
}

// inTree is the path of a file or folder that a document names; empty where it is not in
// the tree.
func inTree(file, name string) string {
	full := path.Join(path.Dir(file), name)
	if rooted, ok := strings.CutPrefix(name, "/"); ok {
		full = path.Clean(rooted)
	}
	if name == "" || strings.Contains(name, "://") || full == ".." || strings.HasPrefix(full, "../") || strings.HasPrefix(full, "/") || strings.IndexByte(name, 0) >= 0 {
		return ""
	}
	return full
}

func outOfTree(name string) string {
	if strings.Contains(name, "://") {
		return "swell fetches nothing: `swell vendor chart` says how to bring the chart into the tree"
	}
	return "leads out of the tree"
}
