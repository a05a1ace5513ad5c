// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/checker"
	"github.com/swell-sh/swell/sync/checker/sandbox"
)

const (
	maxFindings = 20   // of one text
	maxText     = 1000 // bytes of one finding
)

// colours are escape sequences that programs write for terminals.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// said are the findings in what a program wrote: one for each line of it that names a
// line of a file, with the lines after it; or else all of it as one.
func said(result sandbox.Result, request checker.Request, recipe *Recipe) []checker.Finding {
	text := colours.ReplaceAllString(string(result.Output), "")
	text = strings.ReplaceAll(text, result.Folder+"/", "")
	names := []string{request.File.Name}
	for _, f := range request.Beside {
		names = append(names, f.Name)
	}
	if recipe.FileName != "" {
		names = append(names, recipe.FileName)
	}
	for _, name := range names {
		text = strings.ReplaceAll(text, "./"+name, name)
	}
	var found []checker.Finding
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || recipe.Noise != nil && recipe.Noise.MatchString(line) {
			continue
		}
		if recipe.Stamp != nil {
			line = recipe.Stamp.ReplaceAllString(line, "")
		}
		finding := placed(line, names)
		if finding.Line > linesOf(request, finding.File)+1 { // a line of something else, such as the program's own source; an end may be one further
			finding.File, finding.Line, finding.Column = "", 0, 0
		}
		if finding.File == recipe.FileName || finding.File == request.File.Name {
			finding.File = ""
		}
		if found = with(found, finding); len(found) > maxFindings {
			found = found[:maxFindings]
			break
		}
	}
	for i := range found {
		found[i].Text = document.Printable(shortened(found[i].Text))
	}
	return found
}

// linesOf is how many lines a file of the request has; the text itself stands for a name
// that none of the others has.
func linesOf(request checker.Request, name string) int {
	content := request.File.Content
	for _, f := range request.Beside {
		if f.Name == name {
			content = f.Content
		}
	}
	return strings.Count(content, "\n") + 1
}

// with adds a line of output. One without a place belongs to the one before it, and one
// with a place to a headline.
func with(found []checker.Finding, next checker.Finding) []checker.Finding {
	if len(found) == 0 || next.Line > 0 && found[len(found)-1].Line > 0 {
		return append(found, next)
	}
	last := &found[len(found)-1]
	if next.Line > 0 {
		last.File, last.Line, last.Column = next.File, next.Line, next.Column
	}
	last.Text = shortened(last.Text + "; " + next.Text)
	return found
}

func shortened(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}

// inWords is a line that is named without a file.
var inWords = regexp.MustCompile(`(?i)\bline[: ]+(\d+)(?:[,:]? ?(?:col(?:umn)?[: ]+)?(\d+))?`)

// placed is a line of output with the place that it names.
func placed(line string, names []string) checker.Finding {
	f := checker.Finding{Text: line}
	for _, name := range names {
		at := regexp.MustCompile(`(?:^|[^A-Za-z0-9_.-])` + regexp.QuoteMeta(name) + `["']?(?:[:,]| at)? ?(?:line )?\(?(\d+)(?::(\d+))?`).FindStringSubmatch(line)
		if at == nil {
			continue
		}
		f.File = name
		f.Line, f.Column = number(at[1]), number(at[2])
		return f
	}
	if at := inWords.FindStringSubmatch(line); at != nil {
		f.Line, f.Column = number(at[1]), number(at[2])
	}
	return f
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n > 1<<30 {
		return 0
	}
	return n
}
