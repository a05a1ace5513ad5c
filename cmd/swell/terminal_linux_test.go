// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"
)

// newTerminal opens a terminal, and its other end, which takes the input.
func newTerminal(t *testing.T) (terminal, keyboard *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	fd := int(keyboard.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return terminal, keyboard
}

// TestTheQuestionOfAnOrderHasTheDigest: it names what the order is about, how many units, and the
// digest of the list. Only yes gives it.
func TestTheQuestionOfAnOrderHasTheDigest(t *testing.T) {
	file := manyUnits(t)
	question := regexp.MustCompile(`^promote of many, 11 units, list [0-9a-f]{8}\? Only yes confirms: (.*)\n`)
	for _, c := range []struct {
		answer string
		code   int
		want   string
	}{
		{"y\n", exitProblems, "swell: not confirmed, nothing is done"},
		{"yes\n", 0, "swell: promote of many ordered: the daemon does not run: it takes it up when it starts"},
	} {
		terminal, keyboard := newTerminal(t)
		if _, err := keyboard.WriteString(c.answer); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		in := writingTo(&out, &errs)
		in.stdin = terminal
		code := execute(t.Context(), in, []string{"promote", "many", "--reason", "x", "-c", file})
		if asked := question.FindSubmatch(errs.Bytes()); code != c.code || asked == nil || string(asked[1]) != c.want || out.Len() == 0 {
			t.Errorf("%q: exit code %d\n%s%s", c.answer, code, &out, &errs)
		}
	}
}
