// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package exectest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestWriteProgram writes and runs programs at once, as parallel tests do.
func TestWriteProgram(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 20 {
				file := filepath.Join(dir, fmt.Sprintf("%d-%d", i, n))
				if err := WriteProgram(file, []byte("#!/bin/sh\necho done\n")); err != nil {
					t.Error(err)
				}
				if out, err := exec.Command(file).CombinedOutput(); err != nil || string(out) != "done\n" {
					t.Errorf("%q, %v", out, err)
				}
			}
		})
	}
	all.Wait()
}
