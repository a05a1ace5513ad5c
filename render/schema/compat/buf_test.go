// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package compat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/compat"
	"github.com/swell-sh/swell/render/schema/easy"
	"github.com/swell-sh/swell/testdata/built"
)

// bufTable says what buf makes of the cases for easy kinds, and why, where it is not what
// swell makes of them.
const bufTable = "testdata/buf.txt"

const bufTableHead = `# What "buf breaking" says of the cases in rules/ and good/, by its categories WIRE_JSON and
# FILE, beside what swell finds. Where one refuses what the other one takes, there is the
# reason. Warnings of swell are in brackets: they refuse nothing.
`

// TestBuf holds each case for easy kinds against buf breaking, whose verdicts and the
// reasons for each difference stand in a table.
func TestBuf(t *testing.T) {
	buf := built.Program(t, "buf")
	reasons := bufReasons(t)
	cases := slices.DeleteFunc(append(casesIn(t, rulesFolder), casesIn(t, goodFolder)...), func(c ruleCase) bool {
		return c.file("was/app.proto") == "" // a definition
	})
	dir := t.TempDir()
	image(t, filepath.Join(dir, "was.binpb"), cases, "was/app.proto")
	image(t, filepath.Join(dir, "is.binpb"), cases, "is/app.proto")
	byWire, byFile := breaking(t, buf, dir, "WIRE_JSON"), breaking(t, buf, dir, "FILE")
	var got bytes.Buffer
	got.WriteString(bufTableHead)
	for i, c := range cases {
		wire, file := verdict(byWire[caseFile(i)]), verdict(byFile[caseFile(i)])
		found, _ := c.run(t)
		reason := reasons[c.name]
		if differs := refused(found) != (wire != "-") || refused(found) != (file != "-"); differs != (reason != "") {
			t.Errorf("%s: swell %s, WIRE_JSON %s, FILE %s: differs: %v, and the reason is %q", c.name, ruleText(found), wire, file, differs, reason)
		}
		fmt.Fprintf(&got, "\n%s\n  swell: %s\n  WIRE_JSON: %s\n  FILE: %s\n", c.name, ruleText(found), wire, file)
		if reason != "" {
			fmt.Fprintf(&got, "  because %s\n", reason)
		}
	}
	if *update {
		if err := os.WriteFile(bufTable, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(bufTable)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// ruleText is what swell finds.
func ruleText(found []compat.Finding) string {
	var rules []string
	for _, f := range found {
		rule := string(f.Rule)
		if f.Severity == compat.Warning {
			rule = "(" + rule + ")"
		}
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	if len(rules) == 0 {
		return "-"
	}
	return strings.Join(rules, ", ")
}

// bufReasons are those in the table.
func bufReasons(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(bufTable)
	if err != nil && !(*update && errors.Is(err, fs.ErrNotExist)) {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	name := ""
	for line := range strings.Lines(string(text)) {
		reason, ok := strings.CutPrefix(line, "  because ")
		switch {
		case ok:
			reasons[name] = strings.TrimSpace(reason)
		case line[0] != ' ':
			name = strings.TrimSpace(line)
		}
	}
	return reasons
}

// caseFile is the path of a case's .proto in the images, where each has a package of its own.
func caseFile(i int) string { return fmt.Sprintf("case%d/app.proto", i) }

// image writes a .proto of each case, and all that they import, as one set of descriptors, which
// buf reads. A case without the .proto has none in the set.
func image(t *testing.T, name string, cases []ruleCase, state string) {
	t.Helper()
	var set descriptorpb.FileDescriptorSet
	seen := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	for i, c := range cases {
		if text := c.file(state); text != "" {
			add(compiled(t, i, text))
		}
	}
	content, err := proto.Marshal(&set)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// compiled is the .proto of a case, in the case's package.
func compiled(t *testing.T, i int, text string) protoreflect.FileDescriptor {
	t.Helper()
	file := caseFile(i)
	text = strings.Replace(text, "\npackage ", fmt.Sprintf("\npackage case%d.", i), 1)
	compiled, problems := document.CompileProto(file, func(path string) ([]byte, error) {
		if content, ok := easy.ProtoFile(path); ok {
			return content, nil
		}
		if path == file {
			return []byte(text), nil
		}
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return compiled
}

// breaking are the rules of buf that a change breaks, by the files of the cases.
func breaking(t *testing.T, buf, dir, category string) map[string][]string {
	t.Helper()
	cmd := exec.Command(buf, "breaking", "is.binpb", "--against", "was.binpb", "--error-format", "json",
		"--config", fmt.Sprintf(`{"version": "v2", "breaking": {"use": [%q]}}`, category))
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "BUF_CACHE_DIR=" + dir, "PATH=" + os.Getenv("PATH")}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	const found = 100 // buf's exit code when something breaks
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == found) {
		t.Fatalf("buf breaking: %v\n%s%s", err, &stdout, &stderr)
	}
	rules := map[string][]string{}
	for decoder := json.NewDecoder(&stdout); decoder.More(); {
		var line struct{ Path, Type, Message string }
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.Path == "" { // a file that is gone is in the message alone
			_, line.Path, _ = strings.Cut(line.Message, `"`)
			line.Path, _, _ = strings.Cut(line.Path, `"`)
		}
		if !strings.HasPrefix(line.Path, "case") {
			t.Errorf("buf breaking: of which case is %+v?", line)
		}
		rules[line.Path] = append(rules[line.Path], line.Type)
	}
	return rules
}

// verdict are the rules, each once; "-" for none.
func verdict(rules []string) string {
	slices.Sort(rules)
	if rules = slices.Compact(rules); len(rules) == 0 {
		return "-"
	}
	return strings.Join(rules, ", ")
}
