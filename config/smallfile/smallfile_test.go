// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package smallfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	if _, err := Read(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not there: %v", err)
	}
	for _, c := range []struct {
		size int64
		ok   bool
	}{{0, true}, {Most, true}, {Most + 1, false}, {1 << 40, false}} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, c.size); err != nil { // with holes: it takes no room
			t.Fatal(err)
		}
		content, err := Read(name)
		var path *fs.PathError
		if (err == nil) != c.ok || c.ok && int64(len(content)) != c.size || !c.ok && !errors.As(err, &path) {
			t.Errorf("of %d bytes: %d, %v", c.size, len(content), err)
		}
	}
}
