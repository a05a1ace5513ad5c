// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path"
)

// gitlabIssue is one problem in a report of GitLab's Code Quality, with the fields that
// GitLab reads.
type gitlabIssue struct {
	Description string `json:"description"`
	CheckName   string `json:"check_name"`
	// Fingerprint tells problems apart, and stays the same when lines move.
	Fingerprint string         `json:"fingerprint"`
	Severity    string         `json:"severity"`
	Location    gitlabLocation `json:"location"`
}

type gitlabLocation struct {
	Path  string      `json:"path"`
	Lines gitlabLines `json:"lines"`
}

type gitlabLines struct {
	Begin int `json:"begin"` // from 1
}

// writeGitLab writes the problems as a report of GitLab's Code Quality. One of a whole
// file is at its first line, because GitLab takes none without.
func writeGitLab(w io.Writer, c *checked) error {
	issues := []gitlabIssue{} // an empty list says that nothing was found
	seen := map[string]int{}
	for _, p := range c.Problems {
		fingerprint := problemFingerprint(p)
		seen[fingerprint]++
		issues = append(issues, gitlabIssue{
			Description: p.Text() + viaText(p), CheckName: string(p.Code), Severity: "critical",
			Fingerprint: fmt.Sprintf("%s:%d", fingerprint, seen[fingerprint]),
			Location:    gitlabLocation{path.Join(c.folder, p.File), gitlabLines{max(p.Line, 1)}},
		})
	}
	return writeIndented(w, issues)
}
