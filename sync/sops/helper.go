// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
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
// It is asked once for a file, however many targets it goes to: what it answered is in
// memory for a while.

const (
	helperTime   = 30 * time.Second
	helperPause  = time.Second // from the end of the program to that of its pipes
	maxHelperOut = 4 << 10
	// keyTime is how long an answer is kept, and maxAnswers how many are.
	keyTime    = 10 * time.Minute
	maxAnswers = 1000
)

// answer is what the program said, once done is closed.
type answer struct {
	done  chan struct{}
	until time.Time
	key   []byte
	err   error
}

// ask asks the helper, a program and its arguments, for the data key, unless it was asked
// already.
func (k *Keys) ask(ctx context.Context, f *File, helper []string) ([]byte, error) {
	var metadata any
	if err := f.Metadata.Node.Decode(&metadata); err != nil {
		return nil, fmt.Errorf("%s: sops: is not as sops writes it", f.Name)
	}
	input, err := json.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("%s: sops: is not as sops writes it", f.Name)
	}
	a := k.answer(context.WithoutCancel(ctx), helper, input)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-a.done:
	}
	if a.err != nil {
		return nil, fmt.Errorf("%s: %s: %w; the file is encrypted for %s", f.Name, helper[0], a.err, recipients(f))
	}
	return a.key, nil
}

// answer is the helper's to the input, which may be on its way.
func (k *Keys) answer(ctx context.Context, helper []string, input []byte) *answer {
	id := sha256.Sum256(fmt.Appendf(nil, "%q %s", helper, input))
	k.mu.Lock()
	defer k.mu.Unlock()
	if a := k.answers[id]; a != nil && time.Now().Before(a.until) {
		return a
	}
	maps.DeleteFunc(k.answers, func(_ [sha256.Size]byte, a *answer) bool { return time.Now().After(a.until) })
	if k.answers == nil || len(k.answers) >= maxAnswers {
		k.answers = map[[sha256.Size]byte]*answer{}
	}
	a := &answer{done: make(chan struct{}), until: time.Now().Add(keyTime)}
	k.answers[id] = a
	go func() {
		defer close(a.done)
		if a.key, a.err = k.run(ctx, helper, input); a.err != nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			if k.answers[id] == a {
				delete(k.answers, id)
			}
		}
	}()
	return a
}

// run starts the program.
func (k *Keys) run(ctx context.Context, helper []string, input []byte) ([]byte, error) {
	patience := cmp.Or(k.patience, helperTime)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out, said bounded
	cmd := exec.CommandContext(ctx, helper[0], helper[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = helperPause
	err := cmd.Run()
	if cmd.Process != nil { // nobody stays whom it started
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	key, wrong := base64.StdEncoding.DecodeString(strings.TrimSpace(out.String()))
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("no answer within %s", patience)
	case err != nil:
		return nil, errors.New(strings.TrimSuffix(err.Error()+": "+said.line(), ": "))
	case wrong != nil || len(key) != dataKeySize:
		return nil, errors.New("gave no data key")
	}
	return key, nil
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, maxHelperOut-b.Len()))])
	return len(p), nil
}

// wordOfLetters are the words of a helper that are shown. All else may be a key, or opens one: the
// helper knows secrets that nobody told us, and no list of them can be made.
var wordOfLetters = regexp.MustCompile(`^[A-Za-z]{1,15}$|^[0-9]{1,3}$`)

// writtenWord is what stands between spaces, quotes and the like.
var writtenWord = regexp.MustCompile(`[^ \t"'(),;:=<>\[\]]+`)

// line is the last line, with its plain words alone.
func (b *bounded) line() string {
	text := strings.TrimSpace(b.String())
	text = text[strings.LastIndexByte(text, '\n')+1:]
	text = writtenWord.ReplaceAllStringFunc(text, func(word string) string {
		if parts := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune("-./", r) }); len(parts) == 0 ||
			!slices.ContainsFunc(parts, func(part string) bool { return !wordOfLetters.MatchString(part) }) {
			return word
		}
		return document.Redacted
	})
	return document.Printable(document.Shorten(text))
}
