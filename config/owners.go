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
	for _, rules := range o.sections {
		rule, err := rules.Match(file)
		if err != nil || rule == nil {
			continue
		}
		for _, owner := range rule.Owners {
			owners = append(owners, owner.String())
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners)
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
	var rules codeowners.Ruleset
	number := 0
	for line := range strings.Lines(content) {
		number++
		line = strings.TrimSpace(line)
		if owners, ok := sectionOf(line); ok {
			sections, rules, defaults = append(sections, rules), nil, owners
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
			problems.Add(document.Problem{Position: document.Position{File: file, Line: number}, Code: document.CodeFleet, Message: fmt.Sprintf("%+q: %s", document.Shorten(line), document.Printable(err.Error()))})
			continue
		}
		rules = append(rules, rule)
	}
	return append(sections, rules), problems
}

// oneRule reads a line that is neither empty nor a comment.
func oneRule(line string) (codeowners.Rule, error) {
	rules, err := codeowners.ParseFile(strings.NewReader(line))
	if err != nil {
		return codeowners.Rule{}, err
	}
	if len(rules) != 1 {
		return codeowners.Rule{}, fmt.Errorf("want a path and its owners")
	}
	return rules[0], nil
}

// sectionOf is the default owners that the head of a section names; ok is false for
// another line.
func sectionOf(line string) (owners string, ok bool) {
	line = strings.TrimPrefix(line, "^") // an optional section
	if !strings.HasPrefix(line, "[") {
		return "", false
	}
	_, rest, closed := strings.Cut(line, "]")
	if strings.HasPrefix(rest, "[") { // how many have to approve
		_, rest, closed = strings.Cut(rest, "]")
	}
	return strings.TrimSpace(rest), closed
}
