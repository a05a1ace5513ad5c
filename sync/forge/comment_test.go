// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"strings"
	"testing"
)

// TestEditedComment: a comment of ours that somebody edited, its marker kept, is written again; one
// that the forge stores with other ends of lines is not.
func TestEditedComment(t *testing.T) {
	f := newFakeGitHub(t)
	bot := onGitHub(t, f, nil)
	preview := Comment{Subject: "preview of shop", Text: "one\n\ntwo\n", Digest: "d"}
	id, err := bot.Comment(t.Context(), 7, preview)
	if err != nil {
		t.Fatal(err)
	}
	wrote := f.comments[0]["body"].(string)
	for name, test := range map[string]struct {
		stored string
		edits  int
	}{
		"as it was":                {wrote, 0},
		"other ends of lines":      {strings.ReplaceAll(wrote, "\n", "\r\n"), 0},
		"no empty line at the end": {strings.TrimSpace(wrote), 0},
		"edited":                   {strings.Replace(wrote, "one", "all is well", 1), 1},
		"the marker alone":         {strings.SplitAfter(wrote, "\n")[0], 1},
		"without a sum":            {strings.Replace(wrote, " "+sumOf(preview.Text), "", 1), 1},
	} {
		for _, known := range []int64{id, 0} {
			preview.ID = known
			f.comments[0]["body"] = test.stored
			f.seen()
			if _, err := bot.Comment(t.Context(), 7, preview); err != nil {
				t.Fatal(err)
			}
			want := test.stored
			if test.edits > 0 {
				want = wrote
			}
			if got := strings.Count(f.seen(), "PATCH"); got != test.edits || f.comments[0]["body"] != want {
				t.Errorf("%s: %d edits, want %d: %q", name, got, test.edits, f.comments[0]["body"])
			}
		}
	}
}

// TestCommentBelowAnother: the text below a comment changes, and the comment stays, also where it has
// a line like a marker, and where somebody edited it.
func TestCommentBelowAnother(t *testing.T) {
	above := Comment{Subject: "preview of shop", Text: "reviewed\n```text\n<!-- swell: release of shop: 1 -->\nmore\n```\n"}
	below := func(text string) Comment {
		return Comment{Subject: "release of shop", Below: above.Subject, Text: text}
	}
	f := newFakeGitHub(t)
	bot := onGitHub(t, f, nil)
	write := func(c Comment, edits int, want string) int64 {
		t.Helper()
		f.seen()
		id, err := bot.Comment(t.Context(), 7, c)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(f.seen(), "PATCH"); got != edits {
			t.Errorf("%q: %d edits, want %d", c.Text, got, edits)
		}
		if len(f.comments) == 0 {
			return id
		}
		var shown []string
		for line := range strings.Lines(f.comments[0]["body"].(string)) {
			if !strings.HasPrefix(line, "<!-- swell: ") || strings.HasSuffix(line, ": 1 -->\n") {
				shown = append(shown, strings.TrimSpace(line))
			}
		}
		if got := strings.Join(shown, " "); got != want || len(f.comments) != 1 {
			t.Errorf("shown %q, want %q; %d comments", got, want, len(f.comments))
		}
		return id
	}
	if id := write(below("canary: under way"), 0, ""); id != 0 || len(f.comments) != 0 {
		t.Errorf("it is comment %d, of %d: there is none to stand below", id, len(f.comments))
	}
	const shown = "reviewed ```text <!-- swell: release of shop: 1 --> more ```"
	id := write(above, 0, shown)
	write(above, 0, shown)
	if got := write(below("canary: under way"), 1, shown+"  canary: under way"); got != id {
		t.Errorf("it is below comment %d, want %d", got, id)
	}
	write(below("canary: under way"), 0, shown+"  canary: under way")
	write(below("canary: passed"), 1, shown+"  canary: passed")
	write(above, 0, shown+"  canary: passed")
	f.comments[0]["body"] = strings.Replace(f.comments[0]["body"].(string), "canary: passed", "all is well", 1)
	write(below("canary: passed"), 1, shown+"  canary: passed")
	f.comments[0]["body"] = strings.Replace(f.comments[0]["body"].(string), "reviewed", "seen", 1)
	write(below("sas: passed"), 1, strings.Replace(shown, "reviewed", "seen", 1)+"  sas: passed")
	write(above, 1, shown)
}
