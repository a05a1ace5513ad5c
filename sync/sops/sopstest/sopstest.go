// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package sopstest gives tests the real sops program, and files that it encrypted.
package sopstest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"filippo.io/age"

	"github.com/swell-sh/swell/testdata/built"
)

// Key is an age key in a file, or a folder of GnuPG.
type Key struct{ Recipient, File, GnuPG string }

// NewKey makes a key in the test's folder.
func NewKey(t testing.TB) Key {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	k := Key{Recipient: identity.Recipient().String(), File: filepath.Join(t.TempDir(), "age.txt")}
	if err := os.WriteFile(k.File, fmt.Appendf(nil, "# public key: %s\n%s\n", k.Recipient, identity), 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

// SecretRule has sops encrypt the values of Secrets alone.
var SecretRule = []string{"--encrypted-regex", "^(data|stringData)$"}

// Encrypt is the file as sops encrypts it for the key.
func (k Key) Encrypt(t testing.TB, name, content string, args ...string) string {
	t.Helper()
	out, err := k.Run(t, name, content, append([]string{"encrypt", "--age", k.Recipient}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Run is what sops makes of a file of that name and content, with the key at hand.
func (k Key) Run(t testing.TB, name, content string, args ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), filepath.Base(name))
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(built.Program(t, "sops"), append(append([]string{"--disable-version-check"}, args...), file)...)
	cmd.Dir = filepath.Dir(file)
	cmd.Env = append(os.Environ(), "SOPS_AGE_KEY_FILE="+k.File, "HOME="+filepath.Dir(file), "GNUPGHOME="+k.GnuPG)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("sops %v: %w: %s", args, err, said.String())
	}
	return out.String(), nil
}
