// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package smallfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/swell-sh/swell/config/exectest"
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

// TestDenied: who may not read a file is told which one, or which folder on the way, and why.
func TestDenied(t *testing.T) {
	if name := os.Getenv("SMALLFILE_DENIED"); name != "" { // as another user
		_, err := Read(name)
		fmt.Println(errors.Is(err, fs.ErrPermission), err)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("root alone becomes another user")
	}
	dir, err := os.MkdirTemp("", "denied") // others may search it, unlike what t.TempDir makes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary := filepath.Join(dir, "test")
	content, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), exectest.WriteProgram(binary, content), os.Mkdir(filepath.Join(dir, "closed"), 0o700),
			os.WriteFile(filepath.Join(dir, "token"), nil, 0o600), os.WriteFile(filepath.Join(dir, "closed", "token"), nil, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"token":        "read " + filepath.Join(dir, "token") + " with the mode -rw-------: chown or chmod it",
		"closed/token": "search " + filepath.Join(dir, "closed") + " with the mode drwx------: chown or chmod it",
	} {
		cmd := exec.Command(binary, "-test.run", "^TestDenied$")
		cmd.Dir, cmd.Env = dir, []string{"SMALLFILE_DENIED=" + filepath.Join(dir, name)}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		want = "the user of swell may not " + want
		if err != nil || !strings.Contains(string(out), "true open ") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}
