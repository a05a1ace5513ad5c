// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen is standard output and standard error of every verb. What a terminal,
// a browser or a reader takes for something else than a character is written as
// an escape: control characters, marks that change the order of reading, spaces
// of no width. So nothing that an author, a server or a cluster chose can move
// the cursor or hide a line, whichever verb shows it.
//
// The escapes are those of JSON, so that JSON stays what it is. YAML has none of
// these characters, see [jsonToYAML].
type screen struct {
	mu      sync.Mutex
	out     io.Writer
	columns int    // that tables have where out is no terminal; 0: [pipeWidth]
	rest    []byte // the start of a character whose end is yet to come
	failed  error  // of the first write that failed
}

// screen returns the screen on an output.
func (in *invocation) screen(out io.Writer) *screen {
	s := &screen{out: out}
	if columns, err := strconv.Atoi(in.getenv("COLUMNS")); err == nil {
		s.columns = columns
	}
	return s
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := p
	if len(s.rest) > 0 {
		text = append(s.rest, p...)
	}
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if tail := text[len(text)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				whole -= i
			}
			break
		}
	}
	s.rest = append([]byte(nil), text[whole:]...)
	if err := s.write(text[:whole]); err != nil {
		s.failed = cmp.Or(s.failed, err)
		return 0, err
	}
	return len(p), nil
}

// result is that of a verb that wrote on the screen: what it showed is no result where some of it
// could not be written, as on a full disk.
func (s *screen) result(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var code exit
	if s.failed != nil && (err == nil || errors.As(err, &code)) {
		return s.failed
	}
	return err
}

// end writes the start of a character that has no end.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.write(s.rest) // nobody is left to be told
	s.rest = nil
}

func (s *screen) write(text []byte) error {
	if shows(text) {
		_, err := s.out.Write(text)
		return err
	}
	var b strings.Builder
	for _, r := range string(text) {
		b.WriteString(shown(r))
	}
	_, err := io.WriteString(s.out, b.String())
	return err
}

// shows says whether a text can be written as it is.
func shows(text []byte) bool {
	for len(text) > 0 {
		if c := text[0]; c < utf8.RuneSelf {
			if (c < ' ' && c != '\n' && c != '\t') || c == 0x7f {
				return false
			}
			text = text[1:]
			continue
		}
		r, size := utf8.DecodeRune(text)
		if !unicode.IsPrint(r) || r == utf8.RuneError && size == 1 {
			return false
		}
		text = text[size:]
	}
	return true
}

// shown is a character as it may be written.
func shown(r rune) string {
	switch {
	case r == '\n' || r == '\t' || unicode.IsPrint(r):
		return string(r)
	case r == '\r':
		return `\r`
	case r < ' ':
		return fmt.Sprintf(`\x%02x`, r) // in no JSON, where it is escaped already
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	high, low := utf16.EncodeRune(r)
	return fmt.Sprintf(`\u%04x\u%04x`, high, low)
}

// raw is the output behind a screen, for what writes colours or moves the cursor
// itself, and makes the texts in between fit to be shown: [problemText], [watcher] and the
// demonstration. Nothing else may use it.
func raw(w io.Writer) io.Writer {
	if s, ok := w.(*screen); ok {
		return s.out
	}
	return w
}

func isTerminal(w io.Writer) bool {
	f, ok := raw(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
