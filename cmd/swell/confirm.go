// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// confirm asks a question on the terminal. Only yes in full is a yes: the
// question is about something that cannot be undone. It asks nothing when yes is
// set, and is an error where there is no terminal.
func confirm(cmd *cobra.Command, yes bool, question string) error {
	if yes {
		return nil
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return hinted{errors.New("not confirmed: there is no terminal to ask on"), "--yes does it without asking"}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s Only yes confirms: ", question)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr())
	}
	if strings.TrimSpace(answer) != "yes" {
		fmt.Fprintln(cmd.ErrOrStderr(), "swell: not confirmed, nothing is done")
		return exit(exitProblems)
	}
	return nil
}
