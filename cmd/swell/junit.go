// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// The JUnit report as CI systems read it: a suite per folder of units, a case
// per unit.
type (
	junitReport struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Failure *junitFailure `xml:"failure"`
		Skipped *junitSkipped `xml:"skipped"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// sharedSuite holds the problems of more than one unit: the fleet's documents,
// kinds, Defaults.
const sharedSuite = "monorepo"

// writeJUnit writes a report with a test case for every unit, failed when the
// unit has a problem or waits for a kind that has, and one for every file or
// kind with a problem that holds more than one unit.
func writeJUnit(w io.Writer, c *checked) error {
	report := junitReport{Name: "swell check", Suites: append([]junitSuite{c.sharedCases()}, c.unitCases()...)}
	for i := range report.Suites {
		suite := &report.Suites[i]
		for _, test := range suite.Cases {
			suite.Tests++
			if test.Failure != nil {
				suite.Failures++
			}
			if test.Skipped != nil {
				suite.Skipped++
			}
		}
		report.Tests += suite.Tests
		report.Failures += suite.Failures
	}
	text, err := xml.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

func (c *checked) sharedCases() junitSuite {
	suite := junitSuite{Name: sharedSuite}
	byFile := map[string]document.Problems{}
	for _, p := range c.Problems {
		if p.Unit == "" {
			byFile[p.File] = append(byFile[p.File], p)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		suite.Cases = append(suite.Cases, junitCase{Name: file, Class: sharedSuite, Failure: junitFailureOf(byFile[file])})
	}
	if len(suite.Cases) == 0 {
		suite.Cases = []junitCase{{Name: "fleet and kinds", Class: sharedSuite}}
	}
	return suite
}

func (c *checked) unitCases() []junitSuite {
	var suites []junitSuite
	byFolder := map[string]int{}
	for unit := range c.Repository.Units() {
		rendered := c.Units.Get(unit.Path)
		if rendered != nil && c.Units.StandIn(rendered) || !config.Within(string(unit.Path), c.below) {
			continue
		}
		folder := path.Dir(string(unit.Path))
		i, ok := byFolder[folder]
		if !ok {
			i = len(suites)
			byFolder[folder] = i
			suites = append(suites, junitSuite{Name: folder})
		}
		test := junitCase{Name: unit.Name(), Class: folder}
		switch {
		case rendered == nil:
			test.Skipped = &junitSkipped{"the fleet's documents have problems, so no unit was rendered"}
		case len(rendered.Problems) > 0:
			test.Failure = junitFailureOf(rendered.Problems)
		}
		suites[i].Cases = append(suites[i].Cases, test)
	}
	slices.SortFunc(suites, func(a, b junitSuite) int { return strings.Compare(a.Name, b.Name) })
	return suites
}

func junitFailureOf(problems document.Problems) *junitFailure {
	var text strings.Builder
	printProblems(&text, problems)
	message := problems[0].Text()
	if len(problems) > 1 {
		message = document.Count(len(problems), "problem")
	}
	return &junitFailure{Message: message, Type: string(problems[0].Code), Text: text.String()}
}
