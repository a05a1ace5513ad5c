// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEditorSettings: what a person has in the settings stays, comments too,
// and a second time changes nothing.
func TestEditorSettings(t *testing.T) {
	const ours = `"./.vscode/swell.schema.json": [
      "a/*.yaml"
    ]`
	for _, test := range []struct{ before, want string }{
		{"", "{\n  \"yaml.schemas\": {\n    " + ours + "\n  }\n}\n"},
		{"{}\n", "{\n  \"yaml.schemas\": {\n    " + ours + "\n  }\n}\n"},
		{"{\n  // why\n  \"b\": 1, // one\n  \"a\": 2 // two\n}\n",
			"{\n  // why\n  \"b\": 1, // one\n  \"a\": 2, // two\n  \"yaml.schemas\": {\n    " + ours + "\n  }\n}\n"},
		{"{\n  \"a\": [1,], /* trailing */\n}\n",
			"{\n  \"a\": [1,], /* trailing */\n  \"yaml.schemas\": {\n    " + ours + "\n  }\n}\n"},
		{"{\"yaml.schemas\": {\n    \"other.json\": \"*.yml\"\n  }, \"z\": null}",
			"{\"yaml.schemas\": {\n    \"other.json\": \"*.yml\",\n    " + ours + "\n  }, \"z\": null}"},
		{"{\"yaml.schemas\": {\"./.vscode/swell.schema.json\": [\"old\"]}}",
			"{\"yaml.schemas\": {" + ours + "}}"},
	} {
		got, err := editorSettings([]byte(test.before), []string{"a/*.yaml"})
		if err != nil {
			t.Errorf("%q: %v", test.before, err)
			continue
		}
		if diff := cmp.Diff(test.want, string(got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.before, diff)
		}
		if again, err := editorSettings(got, []string{"a/*.yaml"}); err != nil || string(again) != string(got) {
			t.Errorf("%q: the second time: %v\n%s", test.before, err, again)
		}
	}
	for _, bad := range []string{"[]", "{", `{"yaml.schemas": []}`} {
		if got, err := editorSettings([]byte(bad), []string{"a"}); err == nil {
			t.Errorf("%q: got %s, want an error", bad, got)
		}
	}
}
