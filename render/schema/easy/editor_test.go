// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy_test

import (
	"errors"
	"flag"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
)

// demands are what the decoder leaves to others: rules and required fields.
var demands = regexp.MustCompile(`(?m)\[\(buf\.validate\.field\).*?\];$|option \(buf\.validate\.oneof\)\.required = true;| \[features\.field_presence = LEGACY_REQUIRED\]`)

// FuzzAgrees: an editor underlines nothing that the decoder accepts, but for
// fields without a value.
func FuzzAgrees(f *testing.F) {
	archive := parse(f, "everything.txtar")
	for i := range archive.Files {
		text := demands.ReplaceAllStringFunc(string(archive.Files[i].Data), func(found string) string {
			if strings.HasSuffix(found, "];") {
				return ";"
			}
			return ""
		})
		archive.Files[i].Data = []byte(strings.ReplaceAll(text, "required string must", "optional string must"))
	}
	k := easyOf(f, archive)
	envelope, err := document.Envelope(k.Message())
	if err != nil {
		f.Fatal(err)
	}
	s := compile(f, k.JSONSchema())
	for _, test := range everythingSpecs {
		f.Add("{" + test.spec + "}")
	}
	file := func(path string) ([]byte, error) {
		if path == "" {
			return nil, errors.New("no path")
		}
		return []byte("x"), nil
	}
	accepted := 0
	f.Fuzz(func(t *testing.T, spec string) {
		docs, problems := document.ReadDocuments("a.yaml", []byte("apiVersion: easy.example.com/v1\nkind: Everything\nmetadata: {name: a}\nspec: "+spec))
		if len(problems) > 0 || len(docs) != 1 || len(docs[0].Node.Content) != 8 || hasOdd(docs[0].Node) {
			return
		}
		if _, problems := docs[0].Decode(envelope, document.Decoding{File: file, Lift: []string{"override"}}); len(problems) > 0 {
			return
		}
		plain, problems := docs[0].Plain(docs[0].Node)
		if len(problems) > 0 {
			return // a number that only protobuf can hold
		}
		accepted++
		if err := s.Validate(plain); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	})
	if fuzzing := flag.Lookup("test.fuzz").Value.String() != ""; !fuzzing && accepted < 15 {
		f.Errorf("the decoder accepted only %d of the seeds", accepted)
	}
}

// hasOdd finds what an editor may refuse though the decoder does not: nothing
// as a value, times with a comma, the override, masks with paths in files.
func hasOdd(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!null" || strings.Contains(n.Value, ",") || n.Value == "mask" || n.Value == "override") {
		return true
	}
	for _, below := range n.Content {
		if hasOdd(below) {
			return true
		}
	}
	return false
}
