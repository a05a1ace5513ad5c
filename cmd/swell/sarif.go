// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// The parts of SARIF 2.1.0 (OASIS, errata 01) that are written. Names are
// those of the standard.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool sarifTool `json:"tool"`
		// Columns are counted in code points, see runeColumn.
		ColumnKind         string                   `json:"columnKind"`
		OriginalURIBaseIDs map[string]sarifArtifact `json:"originalUriBaseIds"`
		Results            []sarifResult            `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string             `json:"id"`
		ShortDescription     sarifText          `json:"shortDescription"`
		FullDescription      sarifText          `json:"fullDescription"`
		Help                 sarifText          `json:"help"`
		DefaultConfiguration sarifConfiguration `json:"defaultConfiguration"`
	}
	sarifConfiguration struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID              string            `json:"ruleId"`
		RuleIndex           int               `json:"ruleIndex"`
		Level               string            `json:"level"`
		Message             sarifText         `json:"message"`
		Locations           []sarifLocation   `json:"locations"`
		RelatedLocations    []sarifLocation   `json:"relatedLocations,omitempty"`
		PartialFingerprints map[string]string `json:"partialFingerprints"`
		Properties          *sarifProperties  `json:"properties,omitempty"`
	}
	sarifProperties struct {
		Unit    string   `json:"unit,omitempty"`
		Targets []string `json:"targets,omitempty"`
	}
	sarifLocation struct {
		ID               *int          `json:"id,omitempty"`
		PhysicalLocation sarifPhysical `json:"physicalLocation"`
		Message          *sarifText    `json:"message,omitempty"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI         string     `json:"uri,omitempty"`
		URIBaseID   string     `json:"uriBaseId,omitempty"`
		Description *sarifText `json:"description,omitempty"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
)

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	sarifRoot   = "ROOT" // the root of the Git repository
	// fingerprintName has a version: how fingerprints are made may change
	// only together with it.
	fingerprintName = "swellProblem/v1"
)

// writeSARIF writes the problems as a SARIF log with one run.
func writeSARIF(w io.Writer, c *checked) error {
	codes := slices.Sorted(maps.Keys(document.Codes))
	run := sarifRun{
		Tool:               sarifTool{sarifDriver{Name: "swell", Version: versionText(), InformationURI: "https://github.com/swell-sh/swell"}},
		ColumnKind:         "unicodeCodePoints",
		OriginalURIBaseIDs: map[string]sarifArtifact{sarifRoot: {Description: &sarifText{"The root of the Git repository."}}},
		Results:            []sarifResult{}, // an empty list says that nothing was found, none that nothing was looked for
	}
	for _, code := range codes {
		text := sarifMessage(document.Codes[code])
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: string(code),
			ShortDescription: text, FullDescription: text, Help: text, DefaultConfiguration: sarifConfiguration{"error"}})
	}
	seen := map[string]int{}
	for _, p := range c.Problems {
		fingerprint := problemFingerprint(p)
		seen[fingerprint]++
		run.Results = append(run.Results, c.sarifResult(p, slices.Index(codes, p.Code), fmt.Sprintf("%s:%d", fingerprint, seen[fingerprint])))
	}
	return writeIndented(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

func (c *checked) sarifResult(p document.Problem, rule int, fingerprint string) sarifResult {
	result := sarifResult{
		RuleID: string(p.Code), RuleIndex: rule, Level: "error", Message: sarifMessage(p.Text()),
		Locations:           []sarifLocation{{PhysicalLocation: c.sarifPlace(p.Position)}},
		PartialFingerprints: map[string]string{fingerprintName: fingerprint},
	}
	for i, via := range p.Via {
		id := i + 1
		result.RelatedLocations = append(result.RelatedLocations, sarifLocation{ID: &id,
			PhysicalLocation: c.sarifPlace(via), Message: &sarifText{"from here"}})
	}
	if p.Unit != "" || len(p.Targets) > 0 {
		result.Properties = &sarifProperties{p.Unit, p.Targets}
	}
	return result
}

func (c *checked) sarifPlace(at document.Position) sarifPhysical {
	uri := (&url.URL{Path: path.Join(c.folder, at.File)}).String()
	place := sarifPhysical{ArtifactLocation: sarifArtifact{URI: uri, URIBaseID: sarifRoot}}
	if at.Line > 0 {
		place.Region = &sarifRegion{StartLine: at.Line, StartColumn: c.column(at)}
	}
	return place
}

// column counts a place's column in runes; zero where none is known.
func (c *checked) column(at document.Position) int {
	if _, column, ok := c.sources.line(at); ok {
		return column
	}
	return at.Column
}

// sarifMessage escapes what is a placeholder or a link in a message (sections
// 3.11.5 and 3.11.6).
func sarifMessage(text string) sarifText {
	return sarifText{strings.NewReplacer("{", "{{", "}", "}}", `\`, `\\`, "[", `\[`, "]", `\]`).Replace(text)}
}

// placeInText is a line, with or without a column, inside a message.
var placeInText = regexp.MustCompile(`:\d+(:\d+)?\b|\bline \d+\b`)

// problemFingerprint is the same for a problem as long as its file and text
// are, wherever the line moves to.
func problemFingerprint(p document.Problem) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", p.Code, p.File, placeInText.ReplaceAllString(p.Message, "")))
	return hex.EncodeToString(sum[:])
}
