// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

var (
	valueRead = regexp.MustCompile(`\.Values\.([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)`)
	included  = regexp.MustCompile(`(?:include|template)\s+"([^"]+)"`)
	defined   = regexp.MustCompile(`\{\{-?\s*define\s+"([^"]+)"`)
	// opened and closed are where blocks begin and end.
	opened = regexp.MustCompile(`\{\{-?\s*(?:with|range|if|define|block)\b`)
	closed = regexp.MustCompile(`\{\{-?\s*end\b`)
)

// linesBefore is how many lines before one are looked at for the block that it is in.
const linesBefore = 12

// Reads are the values that a line of a template asks for, the likeliest first: those of
// the line, of the definitions that it includes, and of the block around it. Templates do
// not say that: the texts are looked at. They are paths in the values of the chart itself:
// db.image.tag is image.tag of the chart db in it.
func Reads(texts map[string]string, file string, line int) (names []string) {
	lines := strings.Split(texts[file], "\n")
	if line < 1 || line > len(lines) {
		return nil
	}
	r := reading{texts: texts, definitions: definitions(texts), seen: map[string]bool{}}
	r.text(lines[line-1], 0)
	if len(r.names) == 0 && strings.Contains(lines[line-1], "{{") {
		r.around(lines, line-1)
	}
	for _, name := range r.names {
		for _, full := range r.within(file, name) {
			if !slices.Contains(names, full) {
				names = append(names, full)
			}
		}
	}
	return names
}

type reading struct {
	texts       map[string]string
	definitions map[string]string
	seen        map[string]bool // definitions
	names       []string
}

// around reads what the blocks around a line ask for, the innermost that does.
func (r *reading) around(lines []string, line int) {
	depth := 0
	for at := line - 1; at >= max(0, line-linesBefore) && len(r.names) == 0; at-- {
		depth += len(closed.FindAllString(lines[at], -1)) - len(opened.FindAllString(lines[at], -1))
		if depth < 0 {
			r.text(lines[at], 0)
			depth = 0
		}
	}
}

// deepestInclude is how far definitions that include each other are followed.
const deepestInclude = 4

func (r *reading) text(text string, depth int) {
	for _, m := range valueRead.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(r.names, m[1]) {
			r.names = append(r.names, m[1])
		}
	}
	for _, m := range included.FindAllStringSubmatch(text, -1) {
		if body, ok := r.definitions[m[1]]; ok && !r.seen[m[1]] && depth < deepestInclude {
			r.seen[m[1]] = true
			r.text(body, depth+1)
		}
	}
}

// definitions are the texts of what templates define, by name. They reach to the next one.
func definitions(texts map[string]string) map[string]string {
	all := map[string]string{}
	for file, text := range texts {
		if !strings.Contains(file, "templates/") {
			continue
		}
		found := defined.FindAllStringSubmatchIndex(text, -1)
		for i, at := range found {
			end := len(text)
			if i+1 < len(found) {
				end = found[i+1][0]
			}
			name, body := text[at[2]:at[3]], text[at[0]:end]
			if known, twice := all[name]; !twice || body < known { // any, but always the same
				all[name] = body
			}
		}
	}
	return all
}

// within are the paths that a value of the chart of a file may have in those of the
// outermost chart: under the name of the inner chart, or under those that the outer one
// gives it. Global ones are the same in all.
func (r *reading) within(file, name string) []string {
	if strings.HasPrefix(name, "global.") {
		return []string{name}
	}
	prefixes, outer := []string{""}, ""
	for _, chart := range chartsAbove(file) {
		var longer []string
		for _, prefix := range prefixes {
			for _, called := range r.called(outer, chart) {
				longer = append(longer, prefix+called+".")
			}
		}
		prefixes, outer = longer, chart
	}
	var names []string
	for _, prefix := range prefixes {
		names = append(names, prefix+name)
	}
	return names
}

// chartsAbove are the folders and archives that a file of a chart in a chart stands in,
// outermost first, without the outermost chart itself.
func chartsAbove(file string) (folders []string) {
	parts := strings.Split(file, "/")
	for i := 0; i+1 < len(parts) && parts[i] == "charts"; i += 2 {
		folders = append(folders, strings.Join(parts[:i+2], "/"))
	}
	return folders
}

// called are the names by which the outer chart knows the one in a folder or archive of its
// charts.
func (r *reading) called(outer, chart string) []string {
	own := struct{ Name string }{path.Base(chart)}
	_ = yaml.Unmarshal([]byte(r.texts[path.Join(chart, "Chart.yaml")]), &own) // rendering tells
	var named struct {
		Dependencies []struct{ Name, Alias string }
	}
	_ = yaml.Unmarshal([]byte(r.texts[path.Join(outer, "Chart.yaml")]), &named)
	var all []string
	for _, d := range named.Dependencies {
		if d.Name == own.Name && d.Alias != "" {
			all = append(all, d.Alias)
		}
	}
	return append(all, own.Name)
}

// Owner is a chart by its folder or archive in the outermost one, and the path of a value
// in its own values.yaml.
type Owner struct{ Folder, Name string }

// Owners are the charts in whose values.yaml a value that a template asks for may stand,
// the outermost first, which has the last word.
func Owners(file, name string) []Owner {
	owners := []Owner{{"", name}}
	for _, folder := range chartsAbove(file) {
		if !strings.HasPrefix(name, "global.") {
			_, name, _ = strings.Cut(name, ".")
		}
		owners = append(owners, Owner{folder, name})
	}
	return owners
}
