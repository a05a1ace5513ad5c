// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
)

// TestProtectiveFieldsSayWhatTheyMatch: a new document says whether it protects, and each new field of
// those that do says what a name in it has to match. TestWhatMatchesNothing in render holds them to it.
func TestProtectiveFieldsSayWhatTheyMatch(t *testing.T) {
	for _, m := range config.OwnDocuments() {
		if _, known := config.Protects(m); !known && m.Fields().ByName("spec") != nil {
			t.Errorf("%s: want option (protects)", m.FullName())
		}
	}
	fields := config.ProtectiveFields()
	for _, field := range fields {
		isReference := field.Kind() == protoreflect.StringKind || field.IsMap()
		if m := field.Message(); m != nil && !field.IsMap() {
			isReference = m.FullName() == "google.protobuf.Value" || m.FullName() == "google.protobuf.Struct"
		}
		if isReference && config.MatchesOf(field) == "" {
			t.Errorf("%s: want option (matches): what a name in it has to match, or %q", field.FullName(), config.MatchesNothing)
		}
	}
	if len(fields) < 60 {
		t.Errorf("%d fields: want those of all documents that protect", len(fields))
	}
}
