// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

const generatedMark = "<!-- Written by go test ./cmd/swell -run TestReference -update. Change %s instead. -->\n"

// TestReference compares docs/reference, and the codes in docs/troubleshooting.md, with
// what the schemas, the commands and the codes say of themselves; -update writes them.
func TestReference(t *testing.T) {
	pages := referencePages(t)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		compareOrUpdate(t, filepath.Join("../../docs/reference", name), pages[name])
	}
	for _, name := range filesIn(t, "../../docs/reference") {
		if _, wanted := pages[name]; !wanted && name != "annotations.md" {
			t.Errorf("docs/reference/%s: nothing generates it: remove it", name)
		}
	}
	file := "../../docs/troubleshooting.md"
	compareOrUpdate(t, file, withSection(t, readFile(t, file), "codes", codeTable()))
}

// compareOrUpdate holds a file against what it has to be.
func compareOrUpdate(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%s is stale, go test ./cmd/swell -run TestReference -update writes it: %v\n%s", file, err, diff)
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// withSection replaces what stands in a page between the two comments of a section.
func withSection(t *testing.T, page, name, text string) string {
	t.Helper()
	begin, end := fmt.Sprintf("<!-- generated: %s -->\n", name), "<!-- end -->\n"
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("want %q and %q after it", begin, end)
	}
	return before + begin + "\n" + text + "\n" + end + after
}

// referencePages are the pages of docs/reference, by their names.
func referencePages(t *testing.T) map[string]string {
	pages := map[string]string{"commands.md": commandsPage(), "problems.md": problemsPage(), "matches.md": matchesPage()}
	examples := examplesOf(t)
	var index strings.Builder
	fmt.Fprintf(&index, generatedMark, "config/documents.proto and the commands")
	index.WriteString("# Reference\n\nWhat there is, from the program itself. `swell explain` shows the same on a terminal.\n\n" +
		"- [Commands](commands.md): each verb with its flags and exit codes\n" +
		"- [Problems](problems.md): each code, its cause, an example and the way out\n" +
		"- [Names that match something](matches.md): in documents that protect\n" +
		"- [Annotations and labels](annotations.md)\n\nDocuments:\n\n| kind | |\n|---|---|\n")
	for _, m := range config.OwnDocuments() {
		if m.Fields().ByName("spec") == nil { // a part of a document
			continue
		}
		name := string(m.Name())
		file := strings.ToLower(name) + ".md"
		pages[file] = documentPage(m, examples[name])
		fmt.Fprintf(&index, "| [%s](%s) | %s |\n", name, file, cell(firstSentence(comment(m))))
		if examples[name] == "" {
			t.Errorf("testdata/reference.txtar: want an example of %s", name)
		}
	}
	pages["README.md"] = index.String()
	return pages
}

// matchesPage lists the fields of documents that protect in which a name has to match something.
func matchesPage() string {
	var b strings.Builder
	fmt.Fprintf(&b, generatedMark, "config/documents.proto")
	b.WriteString("# Names that match something\n\n" +
		"A name or a selector that matches nothing voids a document that protects. So it is a problem of the change that writes or " +
		"edits the document. Where another change takes away what it matched, it is a note of `swell check`, a line of the preview and a " +
		"condition of `swell status`. `optional: true` in the document, or the annotation `swell.sh/optional` on a policy or its " +
		"binding, " +
		"says that it may come later.\n\nA gate for a Job that no unit of its Rollout has is a note of `swell check` alone, " +
		"whatever the change edits: " +
		"it lets all through.\n\n| field | has to match |\n|---|---|\n")
	for _, field := range config.ProtectiveFields() {
		if matches := config.MatchesOf(field); matches != "" && matches != config.MatchesNothing {
			fmt.Fprintf(&b, "| `%s` of %s | %s |\n", field.Name(), field.Parent().Name(), cell(matches))
		}
	}
	b.WriteString("| `spec.policyName`, `spec.paramRef.name` of a policy's binding | a policy, and a parameter |\n" +
		"| `spec.matchConstraints`, `spec.matchResources` of a policy or its binding " +
		"| groups, versions and resources that a cluster has |\n" +
		"| `metadata.name` of a policy | a binding that names it |\n")
	return b.String()
}

// examplesOf are the examples of documents, by kind.
func examplesOf(t *testing.T) map[string]string {
	t.Helper()
	examples := map[string]string{}
	for _, f := range txtar.Parse([]byte(readFile(t, "testdata/reference.txtar"))).Files {
		examples[f.Name] = string(f.Data)
	}
	return examples
}

// documentPage is the reference of one of swell's own documents.
func documentPage(m protoreflect.MessageDescriptor, example string) string {
	var b strings.Builder
	fmt.Fprintf(&b, generatedMark, "config/documents.proto or cmd/swell/testdata/reference.txtar")
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", m.Name(), comment(m))
	if example != "" {
		fmt.Fprintf(&b, "```yaml\n%s```\n\n", example)
	}
	w := messageTables{out: &b, seen: map[protoreflect.FullName]bool{}}
	w.add("spec", m.Fields().ByName("spec").Message())
	for len(w.queue) > 0 {
		next := w.queue[0]
		w.queue = w.queue[1:]
		w.table(next.path, next.message)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// messageTables writes one table for each message that a document is made of.
type messageTables struct {
	out   *strings.Builder
	seen  map[protoreflect.FullName]bool
	queue []messageAt
}

type messageAt struct {
	path    string
	message protoreflect.MessageDescriptor
}

// add has a message written, at the first place where it is met.
func (w *messageTables) add(path string, m protoreflect.MessageDescriptor) {
	if !w.seen[m.FullName()] {
		w.seen[m.FullName()] = true
		w.queue = append(w.queue, messageAt{path, m})
	}
}

func (w *messageTables) table(path string, m protoreflect.MessageDescriptor) {
	fmt.Fprintf(w.out, "## %s\n\n", m.Name())
	if path != "spec" {
		fmt.Fprintf(w.out, "At `%s`. %s\n\n", path, comment(m))
	}
	w.out.WriteString("| field | type | meaning |\n|---|---|---|\n")
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		fmt.Fprintf(w.out, "| `%s` | %s | %s |\n", f.Name(), w.typeOf(path, f), cell(fieldDoc(f)))
	}
	w.out.WriteString("\n")
}

// typeOf is the type of a field, with a link to its fields.
func (w *messageTables) typeOf(path string, f protoreflect.FieldDescriptor) string {
	typ := fieldShape(f).typ
	m := f.Message()
	if f.IsMap() {
		m = f.MapValue().Message()
	}
	if m == nil || wellKnownShapes[m.FullName()] != "" {
		return typ
	}
	at := path + "." + string(f.Name())
	switch {
	case f.IsMap():
		at += ".*"
	case f.IsList():
		at += "[]"
	}
	w.add(at, m)
	return strings.Replace(typ, string(m.Name()), fmt.Sprintf("[%s](#%s)", m.Name(), strings.ToLower(string(m.Name()))), 1)
}

// cell is a text in a table.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(text)
}

// commandsPage is the help of each verb.
func commandsPage() string {
	root := rootCommand(ofProcess())
	root.InitDefaultHelpFlag()
	var index, b strings.Builder
	fmt.Fprintf(&index, generatedMark, "the command's help")
	index.WriteString("# Commands\n\nAs `swell VERB --help` shows them.\n\n| command | |\n|---|---|\n")
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
				continue
			}
			anchor := strings.ReplaceAll(sub.CommandPath(), " ", "-")
			fmt.Fprintf(&index, "| [%s](#%s) | %s |\n", sub.CommandPath(), anchor, cell(sub.Short))
			commandSection(&b, sub)
			walk(sub)
		}
	}
	walk(root)
	return index.String() + b.String()
}

func commandSection(b *strings.Builder, cmd *cobra.Command) {
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	fmt.Fprintf(b, "\n## %s\n\n```text\n%s\n\n%s\n", cmd.CommandPath(), cmd.UseLine(), strings.TrimSpace(long))
	if cmd.HasExample() {
		fmt.Fprintf(b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(b, "\nFlags:\n%s\n", strings.TrimRight(flagsOf(cmd.LocalFlags()), "\n"))
	}
	b.WriteString("```\n")
}

func flagsOf(flags *pflag.FlagSet) string {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			shown.AddFlag(f)
		}
	})
	return shown.FlagUsages()
}

// problemsPage is what swell explain says of each code.
func problemsPage() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, generatedMark, "config/document/explain.go")
	b.WriteString("# Problems\n\nEvery problem that `swell check` finds ends with a code. `swell explain CODE` shows the same as this page.\n")
	for _, code := range slices.Sorted(maps.Keys(document.Codes)) {
		e := document.Explanations[code]
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n%s\n", code, capital(document.Codes[code]), e.Cause)
		if e.Example.File != "" {
			fmt.Fprintf(&b, "\nExample, `%s`:\n\n```text\n%s```\n\nThe message has:\n\n```text\n%s\n```\n", e.Example.File, e.Example.Text, e.Example.Message)
		}
		fmt.Fprintf(&b, "\nWay out: %s\n", e.WayOut)
	}
	return b.String()
}

// codeTable is a line for each code.
func codeTable() string {
	var b strings.Builder
	b.WriteString("| code | what it says |\n|---|---|\n")
	for _, code := range slices.Sorted(maps.Keys(document.Codes)) {
		fmt.Fprintf(&b, "| [%s](reference/problems.md#%s) | %s |\n", code, strings.ToLower(string(code)), cell(document.Codes[code]))
	}
	return b.String()
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
