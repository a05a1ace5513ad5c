// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/helm"
)

// redacted are findings with the values of the chart hidden. A template may repeat any of them
// when it fails, and which of them end in a Secret is not known before it went through. Words
// that the chart's own templates and schemas hold are no secrets.
func (c *chart) redacted(values []byte, findings []helm.Finding) []helm.Finding {
	if len(findings) == 0 {
		return nil
	}
	findings = slices.Clone(findings)
	var texts []*string
	for i := range findings {
		texts = append(texts, &findings[i].Text)
	}
	var r config.Redactor
	add := func(text []byte) {
		roots, _ := config.DecodeAll(text) // what stands before a mistake
		for _, root := range roots {
			addTexts(&r, root)
		}
	}
	add(values)
	for _, file := range c.valuesFiles {
		add(file.Content)
	}
	for name, text := range c.texts() {
		switch {
		case path.Base(name) == "values.yaml":
			add([]byte(text))
		case slices.Contains([]string{"Chart.yaml", "values.schema.json"}, path.Base(name)) || strings.Contains("/"+name, "/templates/"):
			r.Know(text)
		}
	}
	r.RedactAll(texts)
	return findings
}

// shortestNumber is how many digits a number has that may be a password.
const shortestNumber = 8

// addTexts adds the texts below a value, and numbers that may be meant as such.
func addTexts(r *config.Redactor, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == yaml.NodeTagString || len(n.Value) >= shortestNumber) {
		r.Add(n.Value)
		if number, err := strconv.ParseFloat(n.Value, 64); err == nil { // Helm takes all numbers for floats
			r.Add(strconv.FormatFloat(number, 'g', -1, 64))
		}
	}
	for i, below := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			addTexts(r, below)
		}
	}
}
