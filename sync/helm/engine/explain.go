// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/swell-sh/swell/render/helm"
)

// place is a line of a template.
type place struct {
	template string // as Helm calls it
	line     int
}

var (
	// lineOf is how text/template names a line: file:line:column.
	lineOf = regexp.MustCompile(`([^\s:()"<>]+):(\d+)(?::\d+)?`)
	// called is how the error of a function ends up in one of text/template.
	called = regexp.MustCompile(`error calling ([A-Za-z0-9_]+): `)
	// shownText is the text of a template, as tpl quotes it in its errors.
	shownText = regexp.MustCompile(`(?s)error during tpl function execution for "(?:[^"\\]|\\.)*"`)
)

// explain makes a finding of an error of the engine: at the line of the chart's own
// template that led to it.
func (l *loaded) explain(err error) helm.Finding {
	text := shownText.ReplaceAllString(err.Error(), "in a text that tpl was given")
	places := l.places(text)
	f := helm.Finding{Text: innermost(text)}
	if len(places) > 0 {
		f.File, f.Line = l.fileOf(places[0].template), places[0].line
		if last := places[len(places)-1]; last != places[0] {
			f.Text += fmt.Sprintf(", in %s:%d", l.fileOf(last.template), last.line)
		}
	}
	var cause *unsteady
	if name, ok := unsteadyIn(err, text, &cause); ok {
		f.Text = name.Error()
		f.Values = l.valuesNear(places)
		if last := len(places) - 1; last > 0 && places[last] != places[0] {
			f.Text += fmt.Sprintf(" in %s:%d", l.fileOf(places[last].template), places[last].line)
		}
	}
	return f
}

// unsteadyIn finds that a function was refused. Helm does not keep the error.
func unsteadyIn(err error, text string, cause **unsteady) (*unsteady, bool) {
	if errors.As(err, cause) {
		return *cause, true
	}
	for _, m := range called.FindAllStringSubmatch(text, -1) {
		switch {
		case slices.Contains(random, m[1]):
			return &unsteady{m[1], isRandom}, true
		case slices.Contains(clock, m[1]):
			return &unsteady{m[1], isClock}, true
		}
	}
	return nil, false
}

// places are the lines of templates that an error names, the outermost first.
func (l *loaded) places(text string) (places []place) {
	for _, m := range lineOf.FindAllStringSubmatch(text, -1) {
		line, _ := strconv.Atoi(m[2]) // digits
		p := place{m[1], line}
		if _, known := l.sources[p.template]; known && !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	return places
}

// innermost is the cause, in its own words.
func innermost(text string) string {
	if _, after, ok := strings.Cut(text, "execution error at ("); ok { // of required and fail
		if _, said, ok := strings.Cut(after, "): "); ok {
			return plain(errors.New(said)).Error()
		}
	}
	if _, after, ok := strings.Cut(text, "parse error at ("); ok {
		if _, said, ok := strings.Cut(after, "): "); ok {
			return "the template has a mistake: " + plain(errors.New(said)).Error()
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	said := strings.TrimSpace(lines[len(lines)-1])
	if all := called.FindAllStringIndex(said, -1); len(all) > 0 {
		last := all[len(all)-1]
		said = said[last[0]:]
	}
	return plain(errors.New(said)).Error()
}

var (
	valueRead = regexp.MustCompile(`\.Values\.([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)`)
	// provided is how charts tell their library which values hold a password.
	provided = regexp.MustCompile(`"providedValues"\s*\(list((?:\s+"[^"]+")+)\s*\)`)
	quoted   = regexp.MustCompile(`"([^"]+)"`)
)

// near is how many lines before a call are looked at for values.
const near = 4

// valuesNear are the values that the lines of places, or those just before, ask for: one of
// them is likely to make the call unneeded.
func (l *loaded) valuesNear(places []place) []string {
	var found []string
	add := func(p place, name string) {
		if chart, _, ok := cutLast(p.template, "/templates/"); ok && !strings.HasPrefix(name, "global.") {
			parts := strings.Split(chart, "/charts/")
			name = strings.Join(append(slices.Clone(parts[1:]), name), ".")
		}
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	for _, p := range slices.Backward(places) {
		lines := strings.Split(l.sources[p.template], "\n")
		if p.line > len(lines) {
			continue
		}
		for _, m := range provided.FindAllStringSubmatch(lines[p.line-1], -1) {
			for _, name := range quoted.FindAllStringSubmatch(m[1], -1) {
				add(p, name[1])
			}
		}
		if len(found) > 0 {
			return found
		}
		for at := p.line - 1; at >= max(0, p.line-1-near) && len(found) == 0; at-- {
			for _, m := range valueRead.FindAllStringSubmatch(lines[at], -1) {
				add(p, m[1])
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// fileRead is how templates read files of the chart.
var fileRead = regexp.MustCompile(`\.Files\.(Get|GetBytes|Lines|Glob)\s+"([^"]*)"`)

// outside finds templates that read files which are not in the chart: Helm gives nothing
// for them.
func (l *loaded) outside(c *chart.Chart) (found []helm.Finding) {
	for _, t := range c.Templates {
		for i, line := range strings.Split(string(t.Data), "\n") {
			for _, m := range fileRead.FindAllStringSubmatch(line, -1) {
				if clean := path.Clean(m[2]); clean == ".." || strings.HasPrefix(clean, "../") || path.IsAbs(clean) {
					found = append(found, helm.Finding{File: l.fileOf(path.Join(c.ChartFullPath(), t.Name)), Line: i + 1, Text: fmt.Sprintf(".Files.%s %q: leads out of the chart, where Helm finds nothing", m[1], m[2])})
				}
			}
		}
	}
	for _, below := range c.Dependencies() {
		found = append(found, l.outside(below)...)
	}
	return found
}
