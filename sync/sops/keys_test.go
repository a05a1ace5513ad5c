// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"crypto/ed25519"
	crand "crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/exectest"
	"github.com/swell-sh/swell/sync/sops/sopstest"
)

const oneSecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: hunter2-is-it}\n"

// dataKey is what the keys find for a file of that content.
func dataKey(t testing.TB, secrets config.Secrets, content string) (*File, []byte, error) {
	t.Helper()
	f, err := Read("db.yaml", []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	data, err := (&Keys{Secrets: secrets}).DataKey(t.Context(), f, "")
	return f, data, err
}

// TestSSHKey: a private key of SSH opens what was encrypted for its public one.
func TestSSHKey(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	recipient, more := ssh.NewPublicKey(public)
	file := filepath.Join(t.TempDir(), "id_ed25519")
	if err := errors.Join(err, more, os.WriteFile(file, pem.EncodeToMemory(block), 0o600)); err != nil {
		t.Fatal(err)
	}
	sealed := sopstest.Key{Recipient: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(recipient)))}.Encrypt(t, "db.yaml", oneSecret, sopstest.SecretRule...)
	f, data, err := dataKey(t, config.Secrets{SecretKeys: config.SecretKeys{AgeKeyFiles: []string{sopstest.NewKey(t).File, file}}}, sealed)
	if err != nil {
		t.Fatal(err)
	}
	if values, err := f.Open(data); err != nil || len(values) != 1 {
		t.Errorf("got %d values, %v", len(values), err)
	}
}

// TestKeyFiles: what is wrong with the files of the configuration, and nothing of what
// is in them.
func TestKeyFiles(t *testing.T) {
	t.Parallel()
	key := sopstest.NewKey(t)
	sealed := key.Encrypt(t, "db.yaml", oneSecret, sopstest.SecretRule...)
	broken := filepath.Join(t.TempDir(), "broken.txt")
	if err := os.WriteFile(broken, []byte("AGE-SECRET-KEY-1QQQQNOTAKEY\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		secrets config.Secrets
		want    string
	}{
		"none":    {config.Secrets{}, "db.yaml: no key opens it: it is encrypted for " + key.Recipient + ", and secrets.ageKeyFiles of the daemon's configuration names no file"},
		"missing": {config.Secrets{SecretKeys: config.SecretKeys{AgeKeyFiles: []string{"/no/such/file"}}}, "db.yaml: age identities: open /no/such/file: no such file or directory"},
		"broken":  {config.Secrets{SecretKeys: config.SecretKeys{AgeKeyFiles: []string{broken}}}, "db.yaml: age identities: " + broken + ": want lines like AGE-SECRET-KEY-1..., as age-keygen writes them"},
	} {
		_, _, err := dataKey(t, test.secrets, sealed)
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

// TestHelper: gpg opens, as the helper program, what the real sops encrypted for PGP.
func TestHelper(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "gpg") // a socket of gpg's is in it, whose path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", dir, "--kill", "all").Run()
		_ = os.RemoveAll(dir)
	})
	gpg := func(args ...string) string {
		cmd := exec.Command("gpg", append([]string{"--homedir", dir, "--batch", "--quiet"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("gpg %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	gpg("--passphrase", "", "--quick-generate-key", "swell@example.com", "rsa3072", "encrypt,sign", "never")
	var fingerprint string
	for line := range strings.Lines(gpg("--with-colons", "--list-keys")) {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" && fingerprint == "" {
			fingerprint = fields[9]
		}
	}
	sealed, err := sopstest.Key{GnuPG: dir}.Run(t, "db.yaml", oneSecret, append([]string{"encrypt", "--pgp", fingerprint}, sopstest.SecretRule...)...)
	if err != nil {
		t.Fatal(err)
	}
	// The README's program.
	helper := script(t, fmt.Sprintf("jq -r '.pgp[0].enc' | gpg --homedir %s --batch --quiet --decrypt | base64 -w0", dir))
	f, data, err := dataKey(t, config.Secrets{SecretKeys: config.SecretKeys{Helper: helper}}, sealed)
	if err != nil {
		t.Fatal(err)
	}
	if values, err := f.Open(data); err != nil || len(values) != 1 {
		t.Errorf("got %d values, %v", len(values), err)
	}
	_, _, err = dataKey(t, config.Secrets{}, sealed)
	if want := "db.yaml: no key opens it: it is encrypted for PGP " + fingerprint; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestHelperOnce: however many targets a file goes to, the program is asked once; again
// after it failed.
func TestHelperOnce(t *testing.T) {
	t.Parallel()
	calls := filepath.Join(t.TempDir(), "calls")
	key := "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	helper := script(t, "echo >>"+calls+"; sleep 0.2; test $(wc -l <"+calls+") -gt 1; echo "+key)
	f, err := Read("db.yaml", []byte(sopstest.NewKey(t).Encrypt(t, "db.yaml", oneSecret, sopstest.SecretRule...)))
	if err != nil {
		t.Fatal(err)
	}
	keys := &Keys{Secrets: config.Secrets{SecretKeys: config.SecretKeys{Helper: helper}}}
	for round, want := range []int{1, 2, 2} {
		failed := make(chan error, 20)
		for range cap(failed) {
			go func() { _, err := keys.DataKey(t.Context(), f, ""); failed <- err }()
		}
		for range cap(failed) {
			if err := <-failed; (err != nil) != (round == 0) {
				t.Errorf("round %d: %v", round, err)
			}
		}
		if lines, err := os.ReadFile(calls); err != nil || len(lines) != want {
			t.Errorf("round %d: asked %d times, want %d; %v", round, len(lines), want, err)
		}
	}
}

// script is a program of the shell.
func script(t testing.TB, text string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "helper")
	if err := exectest.WriteProgram(file, []byte("#!/bin/sh\nset -e\n"+text+"\n")); err != nil {
		t.Fatal(err)
	}
	return []string{file}
}

// TestHelperFails: a program that fails, says nothing, says too much or does not end. Its
// text is told, and no key.
func TestHelperFails(t *testing.T) {
	t.Parallel()
	sealed := sopstest.NewKey(t).Encrypt(t, "db.yaml", oneSecret, sopstest.SecretRule...)
	const leaked = "c2VjcmV0LWRhdGEta2V5LW9mLTMyLWJ5dGVzLWhlcmU="
	for name, test := range map[string]struct{ text, want string }{
		"fails":      {"echo cannot reach the key service >&2; exit 3", "exit status 3: cannot reach the key service; the file is encrypted for age1"},
		"leaks":      {"echo key " + leaked + " is bad >&2; exit 1", "exit status 1: key (secret)= is bad; the file is"},
		"silent":     {"exit 0", "gave no data key"},
		"no base64":  {"echo '" + strings.Repeat("%", 44) + "'", "gave no data key"},
		"too short":  {"echo aHVudGVyMg==", "gave no data key"},
		"too much":   {"yes", "no answer within"},
		"no end":     {"sleep 1000 & sleep 1000", "no answer within"},
		"holds open": {"sleep 1000 & echo " + leaked + "; exit 0", ""},
		"not there":  {"", "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			helper := script(t, test.text)
			if name == "not there" {
				helper = []string{"/no/such/program"}
			}
			began := time.Now()
			f, err := Read("db.yaml", []byte(sealed))
			if err != nil {
				t.Fatal(err)
			}
			keys := Keys{Secrets: config.Secrets{SecretKeys: config.SecretKeys{Helper: helper}}, patience: time.Second}
			_, err = keys.DataKey(t.Context(), f, "")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && (strings.Contains(err.Error(), leaked[:12]) || len(err.Error()) > 600) {
				t.Errorf("the error tells too much: %v", err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}
