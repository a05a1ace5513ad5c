// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/sync/sops/sopstest"
)

// generator writes files at random.
type generator struct{ *rand.Rand }

func (g generator) pick(options ...string) string { return options[g.Intn(len(options))] }

func (g generator) scalar() string {
	return g.pick("5", "-17", "2.50", "1e3", "1e30", "0.1", "0x1f", "9007199254740993", "true", "false", "null", "~", "2026-01-02", "2026-01-02T03:04:05Z", `""`, "''", "text", `"two\nlines\t\u00e9"`, "'it''s'",
		`"#no comment"`, "a b: c"[:1], "\"a: b\"", `" spaces "`, "ENC", `"ENC[AES256_GCM,not]"`, "'123'", "!!str 12", ".inf", "-0", "+1", "1_000", "012", "no", `"\u0001"`)
}

func (g generator) key(i int) string {
	return g.pick("key", "password", "name_unencrypted", "plain", "odd key", "data", "secret.txt") + strconv.Itoa(i)
}

func (g generator) comment(by string) string {
	switch g.Intn(6) {
	case 0:
		return by + "# open this\n"
	case 1:
		return by + "# a note\n" + by + "#\n"
	}
	return ""
}

// mapping is a block mapping.
func (g generator) mapping(by string, depth int) string {
	var b strings.Builder
	for i := range 1 + g.Intn(4) {
		b.WriteString(g.comment(by))
		switch kind := g.Intn(8); {
		case kind == 0 && depth > 0:
			fmt.Fprintf(&b, "%s%s:\n%s", by, g.key(i), g.mapping(by+"  ", depth-1))
		case kind == 1 && depth > 0:
			fmt.Fprintf(&b, "%s%s:\n%s", by, g.key(i), g.sequence(by+"  ", depth-1))
		case kind == 2:
			fmt.Fprintf(&b, "%s%s: |%s\n%s  first\n\n%s  third # no comment\n", by, g.key(i), g.pick("", "-", "+"), by, by)
		case kind == 3:
			fmt.Fprintf(&b, "%s%s: {a: 1, b: [x, %q]}\n", by, g.key(i), "y")
		default:
			fmt.Fprintf(&b, "%s%s: %s%s\n", by, g.key(i), g.scalar(), g.pick("", "", " # behind", " # open this"))
		}
	}
	b.WriteString(g.comment(by))
	return b.String()
}

func (g generator) sequence(by string, depth int) string {
	var b strings.Builder
	for i := range 1 + g.Intn(4) {
		b.WriteString(g.comment(by))
		if depth > 0 && g.Intn(4) == 0 {
			fmt.Fprintf(&b, "%s- k%d: %s\n%s  l: %s\n", by, i, g.scalar(), by, g.scalar())
			continue
		}
		fmt.Fprintf(&b, "%s- %s%s\n", by, g.scalar(), g.pick("", "", " # behind"))
	}
	return b.String()
}

// file is a Secret and other documents around it.
func (g generator) file() string {
	var docs []string
	for range 1 + g.Intn(3) {
		docs = append(docs, g.comment("")+"apiVersion: v1\nkind: Secret\nmetadata: {name: x} # a note\n"+"stringData:\n"+g.mapping("  ", 2)+"data:\n"+g.mapping("    ", 0)+g.comment("")+"other:\n"+g.sequence("", 1))
	}
	return g.pick("", "---\n", "# first\n---\n") + strings.Join(docs, "---\n") + g.pick("", "...\n", "# last\n")
}

// rules are those of sops' own configuration.
func (g generator) rules() string {
	return g.pick("", "encrypted_regex: ^(data|stringData)$", "unencrypted_regex: ^(kind|metadata|other)$", "encrypted_suffix: ata", "unencrypted_suffix: _unencrypted0", "unencrypted_suffix: ''",
		"encrypted_comment_regex: open", "unencrypted_comment_regex: ^ open", "encrypted_regex: ^(data|stringData)$, mac_only_encrypted: true", "unencrypted_comment_regex: note$, mac_only_encrypted: true")
}

// encrypt is what sops makes of a file with rules; false where it refuses it.
func encrypt(t testing.TB, key sopstest.Key, name, text, rules string) (string, bool) {
	file := filepath.Join(t.TempDir(), "sops.yaml")
	if rules != "" {
		rules = ", " + rules
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "creation_rules: [{age: %s%s}]\n", key.Recipient, rules), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := key.Run(t, name, text, "--config", file, "encrypt")
	return out, err == nil
}

// ofSops are the values of Secrets that the real program finds in a file: what stands
// under data and stringData of its documents.
func ofSops(t testing.TB, name, decrypted string) map[string]bool {
	found := map[string]bool{}
	add := func(field, key string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			text = fmt.Appendf(nil, "%v", value)
		}
		found[field+" "+key+" "+string(text)] = true
	}
	decoder := yaml.NewDecoder(strings.NewReader(decrypted))
	for {
		var root yaml.Node
		if decoder.Decode(&root) != nil {
			return found
		}
		b, err := loadDocument(&root)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, field := range b {
			values, _ := field.value.(branch)
			for _, i := range values {
				if _, isComment := i.value.(comment); !isComment && (field.key == "data" || field.key == "stringData") {
					add(field.key, i.key, i.value)
				}
			}
		}
	}
}

// TestRandomFiles: whatever the real program encrypts, this one decrypts, to the same
// values; and what is changed after that both refuse.
func TestRandomFiles(t *testing.T) {
	t.Parallel()
	n := 40
	if text := os.Getenv("SWELL_SOPS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	key := sopstest.NewKey(t)
	seed := rand.Int63()
	g := generator{rand.New(rand.NewSource(seed))}
	encrypted, values, tampered, ours := 0, 0, 0, 0
	for range n {
		text, rules, name := g.file(), g.rules(), "x.yaml"
		if g.Intn(4) == 0 {
			if asJSON, ok := inJSON(text); ok {
				text, name = asJSON, "x.json"
			}
		}
		sealed, ok := encrypt(t, key, name, text, rules)
		if !ok {
			continue
		}
		encrypted++
		got, err := open(t, key, name, sealed)
		plain, theirs := key.Run(t, name, sealed, "decrypt")
		if theirs != nil || err != nil {
			if (theirs == nil) != (err == nil) {
				t.Errorf("seed %d: sops says %v, swell says %v, of %s with %q\n%s", seed, theirs, err, name, rules, sealed)
			}
			continue
		}
		want := ofSops(t, name, plain)
		for at, value := range got {
			text, err := json.Marshal(value)
			if err != nil {
				text = fmt.Appendf(nil, "%v", value)
			}
			if field, key, _ := strings.Cut(at, "."); !want[field+" "+key+" "+string(text)] {
				t.Errorf("seed %d: %s is %s here, not for sops: %s with %q\n%s", seed, at, text, name, rules, plain)
			}
			values++
		}
		if changed := g.tamper(sealed); changed != sealed {
			_, err := open(t, key, name, changed)
			_, theirs := key.Run(t, name, changed, "decrypt")
			if tampered++; theirs != nil && err == nil {
				t.Errorf("seed %d: only sops refuses what was changed: %v\n%s", seed, theirs, changed)
			}
			if theirs == nil && err != nil {
				ours++
			}
		}
	}
	t.Logf("seed %d: %d files of %d encrypted by sops, %d values, %d changed afterwards, of which %d were refused by swell alone", seed, encrypted, n, values, tampered, ours)
	if encrypted < n/2 {
		t.Errorf("sops took only %d of %d files", encrypted, n)
	}
}

// inJSON is the first document in JSON; false where JSON cannot have it.
func inJSON(text string) (string, bool) {
	var value map[string]any
	if yaml.Unmarshal([]byte(text), &value) != nil {
		return "", false
	}
	out, err := json.Marshal(value)
	return string(out), err == nil
}

// tamper changes a line of what is not a comment.
func (g generator) tamper(sealed string) string {
	lines := strings.SplitAfter(sealed, "\n")
	i := g.Intn(len(lines))
	switch g.Intn(4) {
	case 0:
		lines = append(lines[:i], lines[i+1:]...)
	case 1:
		j := g.Intn(len(lines))
		lines[i], lines[j] = lines[j], lines[i]
	case 2:
		if len(lines[i]) > 4 {
			at := 1 + g.Intn(len(lines[i])-2)
			lines[i] = lines[i][:at] + g.pick("a", "B", "7", "=", ":") + lines[i][at+1:]
		}
	case 3:
		lines[i] += lines[i]
	}
	return strings.Join(lines, "")
}
