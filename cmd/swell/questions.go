// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// questions asks on a terminal. Where there is none, every answer is the proposed one.
type questions struct {
	asks bool
	in   *bufio.Reader
	out  io.Writer
}

func questionsOn(cmd *cobra.Command) *questions {
	in, ok := cmd.InOrStdin().(*os.File)
	return &questions{asks: ok && term.IsTerminal(int(in.Fd())), in: bufio.NewReader(cmd.InOrStdin()), out: cmd.ErrOrStderr()}
}

// text asks for a text. An empty answer is the proposed one.
func (q *questions) text(question, proposed string) string {
	if !q.asks {
		return proposed
	}
	fmt.Fprintf(q.out, "%s [%s]: ", question, proposed)
	answer, err := q.in.ReadString('\n')
	if err != nil {
		fmt.Fprintln(q.out)
	}
	if answer = strings.TrimSpace(answer); answer != "" {
		return answer
	}
	return proposed
}
