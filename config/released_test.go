// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/compat"
	"github.com/swell-sh/swell/render/schema/easy"
)

var update = flag.Bool("update", false, "keep the present documents.proto as the released one; only additions are taken")

// released has the schema of swell's own documents as it was released, and present as it
// is. Both are named as in imports.
var (
	released = map[string]string{"swell/documents.proto": "testdata/released/documents.proto", "swell/metadata.proto": "testdata/released/metadata.proto"}
	present  = map[string]string{"swell/documents.proto": "documents.proto", "swell/metadata.proto": "document/metadata.proto"}
)

// ownKinds are the messages of swell's own documents, by kind.
func ownKinds(t *testing.T, read func(name string) (string, error)) map[string]compat.Kind {
	t.Helper()
	file, problems := document.CompileProto("swell/documents.proto", func(name string) ([]byte, error) {
		text, err := read(name)
		return []byte(text), err
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	kinds := map[string]compat.Kind{}
	for i := range file.Messages().Len() {
		if m := file.Messages().Get(i); m.Fields().ByName("apiVersion") != nil {
			kinds[string(m.Name())] = ownKind(m)
		}
	}
	return kinds
}

func ownKind(m protoreflect.MessageDescriptor) compat.Kind {
	return compat.Kind{Schema: easy.Own(m, string(m.Name())), Located: func(at document.Position) document.Position { return at }}
}

func from(files map[string]string) func(string) (string, error) {
	return func(name string) (string, error) {
		if files[name] == "" {
			return "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		text, err := os.ReadFile(files[name])
		return string(text), err
	}
}

// refused are the changes from one state of the documents to another that break some.
func refused(was, is map[string]compat.Kind) (all []compat.Finding) {
	for name, before := range was {
		now, there := is[name]
		if !there {
			all = append(all, compat.Removed(before, nil))
			continue
		}
		for _, f := range compat.Kinds(before, now) {
			if f.Refused() {
				all = append(all, f)
			}
		}
	}
	return all
}

// TestReleasedDocuments: documents of operators, and monorepos, that an earlier release
// took are taken. Run with -update for a release: it keeps what was added.
func TestReleasedDocuments(t *testing.T) {
	was, is := ownKinds(t, from(released)), ownKinds(t, from(present))
	if len(was) < 8 {
		t.Fatalf("%d kinds were released", len(was))
	}
	for _, f := range refused(was, is) {
		t.Errorf("%s: %s", f.Position, f.Text())
	}
	if !*update || t.Failed() {
		return
	}
	for name, file := range released {
		content, err := os.ReadFile(present[name])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.FromSlash(file), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReleasedDocumentsRefuse: a field, a type or a document cannot go.
func TestReleasedDocumentsRefuse(t *testing.T) {
	was := ownKinds(t, from(released))
	for _, test := range []struct{ from, to, rule, at string }{
		{"repeated string protoPath = 6;", "reserved 6; reserved \"protoPath\";", "FIELD_REMOVED", "Repository.spec.protoPath"},
		{"string protoPath = 6;", "string protoFolders = 6;", "FIELD_RENAMED", "Repository.spec.protoPath"},
		{"repeated Cell cells = 4;", "Cell cells = 4;", "FIELD_CARDINALITY_CHANGED", "Cluster.spec.cells"},
		{"optional int32 failedUnits = 1;", "optional string failedUnits = 1;", "FIELD_TYPE_CHANGED", "Repository.spec.release.budget.failedUnits"},
		{"message Rollout {", "message Rollouts {", "KIND_REMOVED", "Rollout"},
	} {
		is := ownKinds(t, func(name string) (string, error) {
			text, err := from(released)(name)
			changed := strings.Replace(text, test.from, test.to, 1)
			if name == "swell/documents.proto" && changed == text {
				t.Errorf("%q is not there", test.from)
			}
			return changed, err
		})
		found := refused(was, is)
		if len(found) != 1 || string(found[0].Rule) != test.rule || found[0].At != test.at {
			t.Errorf("%s: found %+v, want %s at %s", test.to, found, test.rule, test.at)
		}
	}
}
