// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hmarr/codeowners"

	"github.com/swell-sh/swell/config/document"
)

// Owners says who owns a file by CODEOWNERS. The zero value has no owner of anything.
type Owners struct {
	File     string // as a path from the root; empty when there is none
	hash     string // of the file
	sections []codeowners.Ruleset
}

// Of are the owners of a file, sorted, as they are written there. In each section the
// last rule that matches decides; a file of GitHub is one section.
func (o *Owners) Of(file string) (owners []string) {
	for _, rule := range o.deciding(file) {
		for _, owner := range rule.Owners {
			owners = append(owners, owner.String())
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// deciding are the rules that decide who owns a file, one of each section that has one.
func (o *Owners) deciding(file string) (rules []codeowners.Rule) {
	for _, section := range o.sections {
		if rule, err := section.Match(file); err == nil && rule != nil {
			rules = append(rules, *rule)
		}
	}
	return rules
}

// ownersFiles are where forges look for the file.
var ownersFiles = []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"}

// loadOwners reads CODEOWNERS, where a tenant asks for owners.
func (l *loader) loadOwners() {
	asked := slices.ContainsFunc(l.tenantsRead, func(doc *document.Document) bool { return len(l.repository.Tenants[doc.Name].Owners) > 0 })
	if !asked {
		return
	}
	owners := &l.repository.Owners
	for _, name := range ownersFiles {
		hash, err := l.tree.Hash(name)
		if err != nil {
			continue
		}
		if owners.File != "" { // forges differ in which one they take
			l.problem(document.Problem{Position: document.Position{File: name}, Code: document.CodeFleet, Message: fmt.Sprintf("there is %s too: keep one of them", owners.File)})
			return
		}
		owners.File, owners.hash = name, hash
		l.repository.FleetHash += " " + hash
	}
	if owners.File == "" {
		for _, doc := range l.tenantsRead {
			if len(l.repository.Tenants[doc.Name].Owners) > 0 {
				l.problem(doc.Problem(doc.Deepest("spec", "owners"), document.CodeReference, "spec.owners: there is no CODEOWNERS in the monorepo's folder: want one of %s", strings.Join(ownersFiles, ", ")))
			}
		}
		return
	}
	content, err := l.tree.ReadFile(owners.File)
	if err != nil {
		l.problem(document.FileProblem(owners.File, err))
		return
	}
	var problems document.Problems
	owners.sections, problems = readOwners(owners.File, string(content))
	l.problem(problems...)
}

// readOwners reads the sections of CODEOWNERS. The library reads lines of GitHub's
// form; GitLab has sections, [name][approvals] @default, on top.
func readOwners(file, content string) (sections []codeowners.Ruleset, problems document.Problems) {
	var defaults string
	sections = []codeowners.Ruleset{nil} // at first what stands in none
	at, named := 0, map[string]int{}     // sections of the same name are one
	number := 0
	for line := range strings.Lines(content) {
		number++
		line = strings.TrimSpace(line)
		if name, owners, ok := sectionOf(line); ok {
			if _, known := named[name]; !known {
				named[name] = len(sections)
				sections = append(sections, nil)
			}
			at, defaults = named[name], owners
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		rule, err := oneRule(line)
		if err == nil && len(rule.Owners) == 0 && defaults != "" {
			rule, err = oneRule(line + " " + defaults)
		}
		if err != nil {
			problems.Add(document.Problem{Position: document.Position{File: file, Line: number}, Code: document.CodeFleet, Message: fmt.Sprintf("%+q: %s", document.Shorten(line), document.Printable(strings.TrimPrefix(err.Error(), "line 1: ")))}) // it was given one line
			continue
		}
		rule.LineNumber = number
		sections[at] = append(sections[at], rule)
	}
	return sections, problems
}

// oneRule reads a line that is neither empty nor a comment.
func oneRule(line string) (codeowners.Rule, error) {
	rules, err := codeowners.ParseFile(strings.NewReader(line))
	if err != nil {
		return codeowners.Rule{}, err
	}
	if len(rules) != 1 || strings.Trim(rules[0].RawPattern(), "/") == "" { // the library cannot match / either
		return codeowners.Rule{}, fmt.Errorf("want a path and its owners; * is every file")
	}
	return rules[0], nil
}

// sectionOf is the name of a section and the default owners that its head names; ok is
// false for another line. Capitals in names do not count.
func sectionOf(line string) (name, owners string, ok bool) {
	line = strings.TrimPrefix(line, "^") // an optional section
	if !strings.HasPrefix(line, "[") {
		return "", "", false
	}
	name, rest, closed := strings.Cut(line[1:], "]")
	if strings.HasPrefix(rest, "[") { // how many have to approve
		_, rest, closed = strings.Cut(rest, "]")
	}
	return strings.ToLower(name), strings.TrimSpace(rest), closed
}
