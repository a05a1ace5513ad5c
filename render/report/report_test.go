// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/render/impact"
	"github.com/swell-sh/swell/render/report/reporttest"
)

// authored marks all that an author of a change may choose.
const authored = "AUTHOR"

// hostile are texts that an author may put into a name, a value or a message.
var hostile = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", " ", "\n", "\r\n", "`", "```", "`````", "~~~", "<!--", "-->", "</details>", "</summary>", "<details>", "<img src=x>", "</code></pre>", "@everyone",
		"[a](https://example.com)", "![a](b)", "**", "#", "- ", "> ", "|", "\\", "&lt;", "\x00", "\x1b[2J", "\u202e", "\u2028", "http://example.com", "<script>", "\t", "$(x)", "é", "\xff"}), 1, 12).Draw(t, "parts")
	text := authored + strings.Join(parts, "") + authored
	if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
		text += strings.Repeat(rapid.SampledFrom([]string{"`", "x", "<", "\x00"}).Draw(t, "of"), rapid.IntRange(50, 500).Draw(t, "length"))
	}
	return text
})

// drawChange is a change of hostile texts.
func drawChange(t *rapid.T) *Change {
	text := func() string { return hostile.Draw(t, "text") }
	texts := func(most int) []string { return rapid.SliceOfN(hostile, 0, most).Draw(t, "texts") }
	c := &Change{Base: text(), Head: text(), Rules: texts(8), Both: texts(8), Releases: strings.Join(texts(30), "\n"), More: text(), Report: &diff.Report{}}
	for range rapid.IntRange(0, 20).Draw(t, "problems") {
		c.Problems = append(c.Problems, document.Problem{Position: document.Position{File: text(), Line: 1}, Code: "SW1001", Message: text()})
	}
	for range rapid.IntRange(0, 30).Draw(t, "units") {
		unit := config.UnitPath(text())
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			change := diff.Change{Unit: unit, Action: rapid.SampledFrom([]diff.Action{diff.Created, diff.Configured, diff.Refused, diff.Replaced, diff.Deleted, diff.Held, diff.Forgotten}).Draw(t, "action"), Object: text(), Reason: text()}
			for _, target := range rapid.SliceOfN(hostile, 1, 12).Draw(t, "targets") {
				change.Targets = append(change.Targets, config.TargetName(target))
			}
			for range rapid.IntRange(0, 3).Draw(t, "fields") {
				change.Fields = append(change.Fields, diff.Field{Path: text(), From: text(), To: text()})
			}
			if rapid.Bool().Draw(t, "created") {
				change.Content = map[string]any{text(): text(), "list": []any{text()}}
				change.Variants = []diff.Variant{{Targets: change.Targets, Fields: change.Fields}}
				change.Risks = []diff.Risk{{Text: text(), Targets: change.Targets}}
			}
			c.Report.Changes = append(c.Report.Changes, change)
		}
	}
	for _, kept := range texts(3) {
		c.Report.Kept = append(c.Report.Kept, diff.Kept{Unit: config.UnitPath(kept), Reason: text()})
	}
	for _, unit := range texts(3) {
		c.Report.Now = append(c.Report.Now, diff.Now{Unit: config.UnitPath(unit), Status: "held", Text: text()})
	}
	if rapid.Bool().Draw(t, "kinds") {
		c.Impact = &impact.Report{Broken: []impact.Broken{{Code: "SW1001", Message: text(), Units: []config.UnitPath{config.UnitPath(text())}}}}
	}
	return c
}

// objection says what is wrong with a comment as a forge shows it; empty for nothing.
func objection(markdown string) string {
	return reporttest.Objection(markdown, func(text string) bool { return strings.Contains(text, authored) })
}

// TestHostileTexts: whatever authors write, and wherever it is cut, a comment has the shape
// that we gave it, and is no longer than it may be.
func TestHostileTexts(t *testing.T) {
	rapidtest.Check(t, 100, 300*time.Millisecond, func(t *rapid.T) {
		c := drawChange(t)
		limit := rapid.SampledFrom([]int{MinBytes, 5_000, 8_000, 20_000, MaxBytes}).Draw(t, "limit")
		text := c.Markdown(limit)
		if len(text) > limit {
			t.Errorf("%d bytes, want at most %d", len(text), limit)
		}
		if why := objection(text); why != "" {
			t.Errorf("%s in\n%s", why, text)
		}
	})
}

// TestObjection: the judge of comments finds what it is for.
func TestObjection(t *testing.T) {
	for _, text := range []string{"@everyone", "AUTHOR", "<details>\n\nx\n", "a\n\n</details>", "![a](b)", "<img src=x>", "[a](https://example.com)", "<!-- x -->", "* a"} {
		if objection(text) == "" {
			t.Errorf("nothing against %q", text)
		}
	}
}

// many is a change of one field in very many units, one of which goes another way.
func many(units int) *Change {
	c := &Change{Base: "main 1234abcd", Head: "kind 5678abcd", Report: &diff.Report{}, More: "swell diff main kind"}
	for i := range units {
		name := fmt.Sprintf("s%04d", i)
		from := any(2.0)
		if i == 7 {
			from = 3.0
		}
		c.Report.Changes = append(c.Report.Changes, diff.Change{Unit: config.UnitPath("services/" + name), Action: diff.Configured, Object: "Deployment/" + name + "/" + name,
			Targets: []config.TargetName{"a/1", "b/1"}, Fields: []diff.Field{{Path: "spec.replicas", From: from, To: 1.0}}})
	}
	return c
}

// TestAlikeOnce: what changes alike in many units is shown once, and who goes another way is
// named.
func TestAlikeOnce(t *testing.T) {
	c := many(10_000)
	text := c.Markdown(MaxBytes)
	for _, want := range []string{
		"### swell: 20000 objects in 10000 units on 2 targets: 20000 configured\n",
		"<code>services/s0000</code> and 9998 units like it: 19998 objects on 2 targets",
		"<code>services/s0007</code>: 2 objects on 2 targets",
		"the same, but for names and targets, in\n  services/s0001\n",
		"    - spec.replicas: 3\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "<details"); n != 2 {
		t.Errorf("%d groups", n)
	}
}

// TestRiskFirst: one unit of many that is not like the others is not hidden among them, and its risk
// stands before all changes.
func TestRiskFirst(t *testing.T) {
	c := &Change{Report: &diff.Report{}}
	for i := range 50 {
		name := fmt.Sprintf("u%02d", i)
		change := diff.Change{Unit: config.UnitPath("services/" + name), Action: diff.Created, Object: "Pod/ns/" + name,
			Targets: []config.TargetName{"one"}, Content: map[string]any{"spec": map[string]any{"image": "r.example.com/" + name}}}
		if i == 30 {
			change.Content["spec"].(map[string]any)["privileged"] = true
			change.Risks = []diff.Risk{{Text: "container c is privileged", Targets: change.Targets}}
		}
		c.Report.Changes = append(c.Report.Changes, change)
	}
	text := c.Markdown(MaxBytes)
	risk := strings.Index(text, "services/u30: Pod/ns/u30 on target one: container c is privileged")
	changes := strings.Index(text, "**Changes**")
	if risk < 0 || changes < risk || !strings.Contains(text, "<code>services/u00</code> and 48 units like it") ||
		!strings.Contains(text, "<code>services/u30</code>:") {
		t.Errorf("got\n%s", text)
	}
}

// TestHowUnitsAre: how units are stands before the way of the release, and at the unit in a text.
func TestHowUnitsAre(t *testing.T) {
	now := []diff.Now{{Unit: "services/a", Status: "held", Text: "no such image. A merge begins a release of it"},
		{Unit: "services/b", Status: "quarantined", Text: "why"}}
	for _, unit := range []config.UnitPath{"services/x", "services/y"} { // of which the same is said
		now = append(now, diff.Now{Unit: unit, Status: "frozen", Text: "by ada"})
	}
	created := diff.Change{Unit: "services/a", Action: diff.Created, Object: "Pod/ns/a", Targets: []config.TargetName{"one"}}
	c := &Change{Releases: "services/a: starts", Report: &diff.Report{Now: now, Changes: []diff.Change{created}}}
	text := c.Markdown(MaxBytes)
	line := strings.Index(text, "services/a: now held: no such image. A merge begins a release of it\nservices/b: now quarantined: why\n"+
		"services/x, services/y: now frozen: by ada\n")
	if line < 0 || line > strings.Index(text, "services/a: starts") ||
		!strings.Contains(c.Page("t", ""), "services/b: now quarantined: why") {
		t.Errorf("got\n%s", text)
	}
	want := "services/a\n  now held: no such image. A merge begins a release of it\n  created Pod/ns/a on target one\n\n" +
		"services/b\n  now quarantined: why\nservices/x\n  now frozen: by ada\nservices/y\n  now frozen: by ada"
	if got := strings.Join(textOf(c.Report.Write), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLeftOut: a file of a unit that nothing comes of stands in the comment, with the reason and
// apart from what changes, also where that is all.
func TestLeftOut(t *testing.T) {
	left := []config.LeftOut{{Path: "services/a/values.yaml", Why: "no document of Kubernetes"}}
	change := diff.Change{Unit: "services/a", Action: diff.Deleted, Object: "Pod/ns/a", Targets: []config.TargetName{"one"}}
	for name, report := range map[string]*diff.Report{
		"alone":           {LeftOut: left},
		"beside a change": {LeftOut: left, Changes: []diff.Change{change}},
	} {
		text := (&Change{Report: report}).Markdown(MaxBytes)
		const want = "**What stays as it is**\n\n```text\nservices/a/values.yaml\n  left out: no document of Kubernetes\n```\n"
		if strings.Count(text, want) != 1 || strings.Count(text, "left out: ") != 1 {
			t.Errorf("%s: got\n%s", name, text)
		}
	}
}

// TestGoneOnce: units that lose alike are shown once, and a cluster that leaves takes three lines,
// however many units it has.
func TestGoneOnce(t *testing.T) {
	c := &Change{Report: &diff.Report{}}
	for i := range 60 {
		name := fmt.Sprintf("u%02d", i)
		for _, kind := range []string{"ConfigMap", "Deployment"} {
			change := diff.Change{Unit: config.UnitPath("services/" + name), Object: kind + "/ns/" + name, Action: diff.Forgotten,
				Targets: []config.TargetName{"two/a", "two/b"}}
			if i >= 30 {
				change.Action, change.Targets = diff.Deleted, []config.TargetName{"one"}
			}
			c.Report.Changes = append(c.Report.Changes, change)
		}
	}
	want := `cluster two leaves the fleet: 120 objects of 30 units stay there, and are forgotten after approval
  60 ConfigMap, 60 Deployment
  of services/u00, services/u01, services/u02, services/u03, services/u04 and 25 more

services/u30
  deleted ConfigMap/ns/u30 on target one
  deleted Deployment/ns/u30 on target one

the same, but for names and targets, in
  services/u31
  services/u32
  services/u33
  services/u34
  services/u35
  and 24 more`
	if got := strings.Join(c.goneLines(), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestUnlike: units that change to other values, to other objects, or wait for an approval are
// shown apart, whatever they are called.
func TestUnlike(t *testing.T) {
	change := func(unit, object string, to any) diff.Change {
		return diff.Change{Unit: config.UnitPath(unit), Action: diff.Configured, Object: object, Targets: []config.TargetName{"a"}, Fields: []diff.Field{{Path: "spec.replicas", From: 1.0, To: to}}}
	}
	created := func(unit, last string) diff.Change {
		const lines = 100 // more than are shown
		data := map[string]any{"z": last}
		for i := range lines {
			data[fmt.Sprintf("k%d", i)] = "v"
		}
		c := change(unit, "ConfigMap/ns/c", nil)
		c.Action, c.Fields, c.Content = diff.Created, nil, map[string]any{"data": data}
		return c
	}
	for name, test := range map[string]struct {
		a, b     diff.Change
		withheld []diff.Kept
		blocks   int
	}{
		"content":       {created("services/a", "x a"), created("services/b", "x b"), nil, 1},
		"other content": {created("services/a", "x"), created("services/b", "y"), nil, 2},
		"alike":         {change("services/a", "Deployment/a/a", 10.0), change("services/b", "Deployment/b/b-1", 10.0), nil, 2},
		"but for names": {change("services/a", "Deployment/a/web-a", 10.0), change("services/b", "Deployment/b/web-b", 10.0), nil, 1},
		"other values":  {change("services/1", "Deployment/*/web", 10.0), change("services/5", "Deployment/*/web", 50.0), nil, 2},
		"other objects": {change("services/a", "ClusterRoleBinding/harmless", 10.0), change("services/b", "ClusterRoleBinding/admin", 10.0), nil, 2},
		"one waits":     {change("services/a", "Deployment/*/web", 10.0), change("services/b", "Deployment/*/web", 10.0), []diff.Kept{{Unit: "services/b", Reason: "it would lose all"}}, 2},
	} {
		c := &Change{Report: &diff.Report{Changes: []diff.Change{test.a, test.b}, Withheld: test.withheld}}
		text := c.Markdown(MaxBytes)
		if n := strings.Count(text, "<details"); n != test.blocks || len(test.withheld) > 0 && !strings.Contains(text, "it would lose all") {
			t.Errorf("%s: %d blocks, want %d\n%s", name, n, test.blocks, text)
		}
	}
}

// wide is a change of so many units, with so many fields in each that no two are alike.
func wide(units, fields int) *Change {
	c := many(units)
	for i := range c.Report.Changes {
		for n := range fields {
			c.Report.Changes[i].Fields = append(c.Report.Changes[i].Fields, diff.Field{Path: fmt.Sprintf("spec.field%d%d", i, n), To: strings.Repeat("x", 50)})
		}
	}
	return c
}

// TestCut: what there is no room for is left out and counted. Blocks that fit go before the
// begin of others, wherever they stand.
func TestCut(t *testing.T) {
	large := wide(3, 20)
	large.Report.Changes[0].Fields = wide(1, 1000).Report.Changes[0].Fields
	for name, test := range map[string]struct {
		change *Change
		limit  int
		blocks int
		want   []string
	}{
		"all fit":          {wide(2, 20), 6_000, 2, []string{"spec.field019", "spec.field119", "</details>\n"}},
		"the begin of one": {wide(1, 1000), 6_000, 1, []string{"+ spec.field00:", "more lines\n\n</details>\n\nAll of it: `swell diff main kind`\n"}},
		"the first is cut": {large, 6_000, 3, []string{"+ spec.field00:", "more lines", "spec.field119", "spec.field219", "All of it"}},
		"no room for one":  {wide(4, 20), 5_200, 3, []string{"spec.field019", "spec.field119", "\nThe changes of 1 unit are not shown.\n\nAll of it: `swell diff main kind`\n"}},
	} {
		text := test.change.Markdown(test.limit)
		if n := strings.Count(text, "<details"); n != test.blocks {
			t.Errorf("%s: %d blocks, want %d in\n%s", name, n, test.blocks, text)
		}
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
	}
}

// TestCutCounts: the lines that are shown and those that are counted are all lines.
func TestCutCounts(t *testing.T) {
	c := wide(1, 1000)
	_, block, _ := strings.Cut(c.Markdown(6_000), "```diff\n")
	shown, rest, _ := strings.Cut(block, "```")
	var left int
	if _, err := fmt.Sscanf(strings.TrimSpace(rest), "and %d more lines", &left); err != nil {
		t.Fatalf("%v: %s", err, rest)
	}
	if all := len(c.groups()[0].lines()); strings.Count(shown, "\n")+left != all || left == 0 {
		t.Errorf("%d lines are left, want %d in all of\n%s", left, all, shown)
	}
}

// A page names what it is about, and links to it where that is a link.
func TestPageTitle(t *testing.T) {
	for link, want := range map[string]string{
		"https://git.example.com/a/b/pulls/7?x=1&y=\"": `<p><a href="https://git.example.com/a/b/pulls/7?x=1&amp;y=&#34;">Pull &lt;7&gt;</a></p>`,
		"javascript:alert(1)":                          "<p>Pull &lt;7&gt;</p>",
		"":                                             "<p>Pull &lt;7&gt;</p>",
	} {
		page := (&Change{Aside: "It is a&b."}).Page("Pull <7>", link)
		for _, part := range []string{"<title>Pull &lt;7&gt;: swell</title>", want, "<p><strong>It is a&amp;b.</strong></p>"} {
			if !strings.Contains(page, part) {
				t.Errorf("%q: no %s in\n%s", link, part, page)
			}
		}
	}
}

func TestVerdict(t *testing.T) {
	held := &diff.Report{Changes: []diff.Change{{Unit: "services/a", Action: diff.Held, Object: "Namespace/a", Targets: []config.TargetName{"a", "b"}}}}
	problem := document.Problems{{Message: "x"}}
	for _, test := range []struct {
		change Change
		want   Verdict
		text   string
	}{
		{Change{Report: &diff.Report{}}, Good, "no changes"},
		{Change{Report: held}, Good, "2 objects in 1 unit on 2 targets: 2 deleted after approval"},
		{Change{Report: held, Problems: problem}, Bad, "1 problem"},
		{Change{Report: &diff.Report{Changes: []diff.Change{{Unit: "a", Action: diff.Refused, Object: "Deployment/a/a", Targets: []config.TargetName{"a"}}}}}, Bad, "1 object in 1 unit on 1 target: 1 refused"},
		{Change{Problems: problem}, Bad, "1 problem in the fleet's documents: nothing would be taken from it"},
		{Change{Report: &diff.Report{Refused: "no units"}}, Bad, "nothing would be taken from it"},
		{Change{Report: &diff.Report{Unknown: []config.UnitPath{"a"}}, Before: problem}, Good, "no changes; 1 unit not compared"},
		{Change{Report: &diff.Report{Mended: []config.UnitPath{"a"}}}, Good, "no changes; 1 unit mended"},
		{Change{Before: problem}, Bad, "the fleet's documents have problems already: nothing would be taken from it"},
		{Change{BaseHeld: true, Problems: problem}, Good, "mends the fleet's documents: there is nothing to compare it with; 1 problem in units may be older"},
		{Change{BaseHeld: true}, Good, "mends the fleet's documents: there is nothing to compare it with"},
		{Change{Report: &diff.Report{Kept: []diff.Kept{{Unit: "a", Reason: "it is a base now"}}}}, Bad, "no changes; 1 unit kept as it is"},
		{Change{Report: &diff.Report{}, Rules: []string{"budget", "Mask night"}}, Good, "2 rules edited, no objects change"},
		{Change{Report: &diff.Report{Changes: []diff.Change{{Unit: "a", Action: diff.Created, Targets: []config.TargetName{"b"}}}},
			Rules: []string{"budget"}}, Good, "1 object in 1 unit on 1 target: 1 created"},
		{Change{Report: &diff.Report{Now: []diff.Now{
			{Unit: "a", Status: "held"}, {Unit: "b", Status: "masked"}, {Unit: "c", Status: "held"}}}}, Good,
			"no changes; 2 units held now; 1 unit masked now"},
		{Change{Report: &diff.Report{Joining: []diff.Joining{{Cluster: "three", Units: 1}}}}, Good, "no changes"},
		{Change{Report: &diff.Report{Joining: []diff.Joining{{Cluster: "three", Units: 1, Unreached: true}}}}, Bad,
			"no changes; 1 cluster without a kubeconfig"},
	} {
		if got, text := test.change.Verdict(); got != test.want || text != test.text {
			t.Errorf("%s %q, want %s %q", got, text, test.want, test.text)
		}
	}
}

// TestIsNothing: what there is to tell of a change beside its objects is told.
func TestIsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		change Change
		want   bool
	}{
		"nothing":               {Change{Report: &diff.Report{}}, true},
		"edits rules":           {Change{Report: &diff.Report{}, Rules: []string{"tenants/shop.yaml: Tenant shop"}}, false},
		"mends what was held":   {Change{BaseHeld: true}, false},
		"mends a unit":          {Change{Report: &diff.Report{Mended: []config.UnitPath{"a"}}}, false},
		"withholds a unit":      {Change{Report: &diff.Report{Withheld: []diff.Kept{{}}}}, false},
		"changes an object":     {Change{Report: &diff.Report{Changes: []diff.Change{{Unit: "a"}}}}, false},
		"knows how a unit is":   {Change{Report: &diff.Report{Now: []diff.Now{{Unit: "a"}}}}, false},
		"keeps a unit as it is": {Change{Report: &diff.Report{Kept: []diff.Kept{{Unit: "a"}}}}, false},
	} {
		if got := test.change.IsNothing(); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
