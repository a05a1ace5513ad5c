// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMessagesAreCommonWords: a secret that is a word of our own messages cut them, and told itself
// so: "swell (secret) no object by itself". Shorter words are hidden in no message.
func TestMessagesAreCommonWords(t *testing.T) {
	missing := map[string]string{}
	for _, root := range []string{".", "../render"} {
		err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(name) != ".go" ||
				strings.HasSuffix(name, "_test.go") ||
				slices.Contains(unhidden, path.Base(filepath.Dir(name))) || slices.Contains(unhidden, path.Base(name)) {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					addUncommon(missing, name, text.Value)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, word := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("%s: not in commonwords.txt: %s", word, missing[word])
	}
}

// unhidden are folders and files whose texts go through no redactor.
var unhidden = []string{"migrate", "report", "explain.go", "lifecycles.go", "genlifecycle.go"}

// verb is what a value is put in the place of.
var verb = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]`)

// addUncommon adds the words of a sentence that would be hidden in it.
func addUncommon(missing map[string]string, name, literal string) {
	text, err := strconv.Unquote(literal)
	if err != nil || !strings.Contains(text, " ") {
		return
	}
	text = verb.ReplaceAllString(text, " ")
	s := &search{text: text, lower: lower(text)}
	eachWord(text, func(from, to int) {
		if word := lower(text[from:to]); len(word) >= shownPart && isOrdinary(word) && !s.isInName(from, to) && !CommonWords(word) {
			missing[word] = name + ": " + text
		}
	})
}
