// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestKeysHaveOnePlace: keys of swell's labels and annotations are written in
// keys.go alone, and each is in a list there.
func TestKeysHaveOnePlace(t *testing.T) {
	key := regexp.MustCompile(`"(swell\.sh/[a-z-]+|app\.kubernetes\.io/managed-by)"`)
	files := 0
	err := filepath.WalkDir("..", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || filepath.Base(name) == "keys.go" {
			return err
		}
		files++
		content, err := os.ReadFile(name)
		for _, found := range key.FindAll(content, -1) {
			t.Errorf("%s: %s", name, found)
		}
		return err
	})
	if err != nil || files < 100 {
		t.Fatal(files, err)
	}
	content, err := os.ReadFile("keys.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^\t(?:Label|Annotation)\w+ += KeyPrefix \+ "(.*)"$`).FindAllSubmatch(content, -1)
	listed := slices.Concat(LabelsSet, AnnotationsSet, AnnotationsOnLeases, AnnotationsInGit)
	if len(named) != len(listed) {
		t.Errorf("%d keys, %d of them in a list", len(named), len(listed))
	}
	for _, m := range named {
		if !slices.Contains(listed, KeyPrefix+string(m[1])) {
			t.Errorf("%s is in no list", m[1])
		}
	}
}
