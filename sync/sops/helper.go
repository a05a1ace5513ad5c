// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/swell-sh/swell/config/document"
)

// # The helper program
//
// A key that is no age key (PGP, a cloud's key service) is opened by a program of the
// daemon's configuration. It gets the mapping "sops" of the file as JSON on its standard
// input, and writes the data key in base64 to its standard output. Its exit code is 0.

const (
	helperTime   = 30 * time.Second
	helperPause  = time.Second // from the end of the program to that of its pipes
	maxHelperOut = 4 << 10
)

// ask asks the helper program for the data key.
func (k *Keys) ask(ctx context.Context, f *File) ([]byte, error) {
	var metadata any
	if err := f.Metadata.Node.Decode(&metadata); err != nil {
		return nil, fmt.Errorf("%s: sops: is not as sops writes it", f.Name)
	}
	input, err := json.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("%s: sops: is not as sops writes it", f.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, helperTime)
	defer cancel()
	var out, said bounded
	cmd := exec.CommandContext(ctx, k.Helper[0], k.Helper[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = helperPause
	err = cmd.Run()
	key, wrong := base64.StdEncoding.DecodeString(strings.TrimSpace(out.String()))
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("no answer within %s", helperTime)
	case err != nil:
		err = errors.New(strings.TrimSuffix(err.Error()+": "+said.line(), ": "))
	case wrong != nil || len(key) != dataKeySize:
		err = errNoKey
	default:
		return key, nil
	}
	return nil, fmt.Errorf("%s: %s: %w; the file is encrypted for %s", f.Name, k.Helper[0], err, recipients(f))
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, maxHelperOut-b.Len()))])
	return len(p), nil
}

// longWord may be a key.
var longWord = regexp.MustCompile(`[A-Za-z0-9+/=_-]{40,}`)

// line is the last line, without what may be a key.
func (b *bounded) line() string {
	text := strings.TrimSpace(b.String())
	text = text[strings.LastIndexByte(text, '\n')+1:]
	return document.Printable(document.Shorten(longWord.ReplaceAllString(text, document.Redacted)))
}
