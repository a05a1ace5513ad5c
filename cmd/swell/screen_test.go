// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"unicode"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/render/report/reporttest"
)

// unseen are the characters that a terminal or a reader takes for something
// else: C0 but for tab and line break, DEL, C1, line separators, marks of
// direction, spaces of no width, the byte order mark, tags.
func unseen() []rune {
	var all []rune
	for _, span := range [][2]rune{{0x01, 0x08}, {0x0b, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x061c, 0x061c}, {0x180e, 0x180e}, {0x200b, 0x200f},
		{0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xfffe, 0xfffe}, {0xe0001, 0xe0001}, {0xe0020, 0xe007f}} {
		for r := span[0]; r <= span[1]; r++ {
			all = append(all, r)
		}
	}
	return all
}

// oddText is a text with all of them, and sequences that terminals obey.
func oddText() string {
	text := "start\x1b[45mred\x1b]0;title\x07\x1b[2J\x1b[1A\r"
	for _, r := range unseen() {
		text += string(r) + "x"
	}
	return text + "@everyone end"
}

// quotedYAML is a text in YAML's double quotes.
func quotedYAML(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return `"` + b.String() + `"`
}

// oddMonorepo is a planted one with odd texts wherever an author may write one.
func oddMonorepo(value string) map[string]string {
	odd := quotedYAML(value)
	config := func(name, key, value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop, annotations: {a: " + value + "}}\ndata: {" + key + ": " + value + "}\n"
	}
	fence := quotedYAML("```\n" + value + "\n~~~~\n````\n\n@everyone\n<img>\n| a | b |\n")
	return map[string]string{
		"swell.yaml": "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: odd}\nspec: {units: [services]}\n",
		"fleet/c.yaml": "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: c-1, labels: {ring: canary}}\nspec: {kubernetes: \"1.36\", tenants: [\"*\"], variables: {v: " + odd + "}}\n" +
			"---\napiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n",
		"services/a/swell.yaml":              "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec:\n  tenant: shop\n  placement: {topology: cluster, match: {labels: {ring: canary}}}\n",
		"services/a/space/x.yaml":            "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, annotations: {" + quotedYAML("example.com/"+value[:5]) + ": " + odd + "}}\n",
		"services/a/good/x.yaml":             config("good", "plain", odd) + "---\n" + config("fence", "text", fence) + "---\n" + config("good2", "b", odd+" # \u202e comment"),
		"services/a/key/x.yaml":              config("key", odd, "x"),
		"services/a/name/x.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + odd + ", namespace: shop}\n",
		"services/a/kind/x.yaml":             "apiVersion: v1\nkind: " + odd + "\nmetadata: {name: x, namespace: shop}\n",
		"services/a/type/x.yaml":             "apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: shop}\nspec: {type: " + odd + ", " + odd + ": 1}\n",
		"services/a/none/x.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shop}\n" + odd + ": {a: " + odd + "}\n",
		"services/a/broken/x.yaml":           "apiVersion: v1\nkind: ConfigMap\ndata: {a: " + odd + "\n",
		"services/a/raw/x.yaml":              "apiVersion: v1\nkind: ConfigMap\ndata: {a: '\u202e\u200b'}\nmetadata: {name: \u202ea}\n",
		"services/a/\u202eodd/x.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shop}\n",
		"services/a/kust/kustomization.yaml": "resources: [" + odd + "]\n",
	}
}

// own are the colours that verbs write.
var own = regexp.MustCompile("\x1b\\[(0|1|2|1;31)?m")

// TestNothingUnseen: whatever authors write into files, names and commits, no
// verb writes a character that nobody sees, in any format, and JSON, YAML and
// XML stay what they are.
func TestNothingUnseen(t *testing.T) {
	t.Chdir(t.TempDir())
	base := &planter{files: oddMonorepo("begin" + oddText() + "b")}
	base.write(t, "base")
	head := &planter{files: oddMonorepo("begin" + oddText() + "h")}
	head.write(t, "head")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = "head"
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		for _, who := range []string{"AUTHOR", "COMMITTER"} {
			cmd.Env = append(cmd.Env, "GIT_"+who+"_NAME=A\x1b[45m\u202e\u009bB", "GIT_"+who+"_EMAIL=a\u200b\x07@b")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-q", "-m", "one "+strings.ReplaceAll(oddText(), "\r", ""))
	if err := os.WriteFile("daemon.yaml", []byte("apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: x}\nspec: {repository: {url: ./head, branch: main}, state: state, clusters: [{name: c-1, kubeconfig: kubeconfig}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: \"a\x1b[45m\u202e\"\n" + quotedYAML(oddText()) + ": 1\n"
	if err := os.WriteFile("kubeconfig", []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	outputs, odd := 0, 0
	swell := func(args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		execute(t.Context(), writingTo(&stdout, &stderr), args)
		what := strings.Join(args, " ")
		outputs++
		for _, out := range []string{stdout.String(), stderr.String()} {
			if strings.Contains(out, "\x1b[45m") {
				t.Errorf("%q writes an author's colour", what)
			}
			if strings.Contains(what, "--color") {
				out = own.ReplaceAllString(out, "")
			}
			odd += strings.Count(out, `[45m`)
			if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%q writes %q", what, out[max(0, i-60):min(len(out), i+20)])
			}
		}
		if err := valid(what, stdout.Bytes()); err != nil {
			t.Errorf("%q: %v", what, err)
		}
	}
	none := "--cache=none"
	for _, format := range []string{"text", "json", "yaml", "sarif", "github", "gitlab", "junit", "markdown"} {
		swell("check", "head", none, "-o", format)
	}
	swell("check", "head", none, "--excerpt")
	swell("check", "head", none, "--color")
	for _, format := range []string{"yaml", "json", "name"} {
		swell("render", "head", none, "-o", format)
	}
	for _, unit := range []string{"good", "space", "type"} {
		swell("render", "head", none, "--explain", "--unit", "services/a/"+unit)
	}
	for _, format := range []string{"text", "name", "json", "yaml", "markdown"} {
		swell("diff", "base", "head", none, "-o", format)
	}
	for _, object := range []string{"ConfigMap/good", "ConfigMap/fence", "Namespace/shop"} {
		for _, format := range []string{"text", "json", "yaml"} {
			swell("blame", object, "head", none, "-o", format)
			swell("blame", object, "main", none, "-o", format, "--repo", "head")
		}
		swell("blame", object, "data.plain", "main", none, "--repo", "head")
	}
	swell("blame", "ConfigMap/"+oddText(), "head", none)
	swell("explain", oddText(), "head")
	swell("check", oddText())
	swell(oddText())
	swell("run", "--once", "-c", "daemon.yaml")
	for _, verb := range []string{"status", "history", "approve", "get units", "get objects", "get drift", "get targets"} {
		for _, format := range []string{"table", "wide", "json", "yaml", "name"} {
			swell(append(strings.Fields(verb), "-c", "daemon.yaml", "-o", format)...)
		}
	}
	swell("tree", "services/a/good", "-c", "daemon.yaml")
	swell("diff", "--live", "-c", "daemon.yaml", "head", none)
	t.Logf("%d runs; %d times a text that a terminal would obey was written as an escape", outputs, odd)
	if odd < 50 {
		t.Error("the odd texts are hardly in any output")
	}
}

// valid reads an output as what its format is.
func valid(what string, out []byte) error {
	switch {
	case len(out) == 0:
	case strings.Contains(what, "render") && strings.Contains(what, "-o json"): // a line for each object
		for line := range bytes.Lines(out) {
			if !json.Valid(line) {
				return fmt.Errorf("no JSON: %.200s", line)
			}
		}
	case strings.Contains(what, "-o json"), strings.Contains(what, "-o sarif"), strings.Contains(what, "-o gitlab"):
		if !json.Valid(out) {
			return fmt.Errorf("no JSON: %.200s", out)
		}
	case strings.Contains(what, "-o yaml"), strings.Contains(what, "--explain"):
		decoder := kyaml.NewDecoder(bytes.NewReader(out))
		for {
			var value any
			if err := decoder.Decode(&value); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
		}
	case strings.Contains(what, "-o junit"):
		return xml.Unmarshal(out, new(struct{}))
	case strings.Contains(what, "-o markdown"):
		if why := reporttest.Objection(string(out), func(text string) bool { return strings.ContainsAny(text, "<|`") }); why != "" {
			return errors.New(why)
		}
	}
	return nil
}

// TestScreenInPieces: characters that are cut in two are put together, and what
// is no text is shown as such.
func TestScreenInPieces(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out}
	text := "日本\u202e\x1b[1m\u009b\U000e0041😀\tx\r\n\xff\xe6\x97"
	if _, err := io.Copy(struct{ io.Writer }{s}, iotest.OneByteReader(strings.NewReader(text))); err != nil {
		t.Fatal(err)
	}
	s.end()
	if want := `日本\u202e\x1b[1m\u009b\udb40\udc41😀` + "\tx" + `\r` + "\n\uFFFD\uFFFD\uFFFD"; out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

// TestRawOutputs: only what makes texts fit to be shown itself goes past the
// screen.
func TestRawOutputs(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]int{"screen.go": 2, "check.go": 1, "checkers.go": 2, "demo.go": 1, "watch.go": 1} // the sizes and the kind of a terminal, colours, the live picture
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if got := len(regexp.MustCompile(`\braw\(`).FindAll(content, -1)); got != uses[file] {
			t.Errorf("%s: %d uses of raw, want %d", file, got, uses[file])
		}
		if file != "main.go" && file != "invocation.go" && file != "screen.go" && regexp.MustCompile(`os\.Std(out|err)\b|fmt\.Print`).Match(content) {
			t.Errorf("%s writes past the screen", file)
		}
	}
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestWhatCannotBeWrittenIsNoResult: a verb whose output is lost does not exit 0, whichever it is.
func TestWhatCannotBeWrittenIsNoResult(t *testing.T) {
	lines := []string{"version", "help", "explain Cluster", "explain SW1003", "schema --help", "completion bash", "check --help"}
	for _, line := range lines {
		var stderr strings.Builder
		in := &invocation{getenv: func(string) string { return "" }, stdin: strings.NewReader(""), dir: t.TempDir()}
		in.stdout, in.stderr = fullDisk{}, &stderr
		code := execute(t.Context(), in, strings.Fields(line))
		if text := stderr.String(); code != exitError || !strings.Contains(text, "no space left") {
			t.Errorf("swell %s: exit code %d, %q", line, code, text)
		}
	}
}
