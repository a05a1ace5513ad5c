// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/spf13/cobra"
)

func kindCommand(in *invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kind",
		Short: "Make and test easy kinds",
		RunE:  oneOfItsVerbs,
	}
	cmd.AddCommand(kindNewCommand(in), kindTestCommand(in))
	return cmd
}

// longUpdate makes the -update of swell kind test, as Go's tests have it, the
// --update that the flags know.
func longUpdate(args []string) []string {
	if len(args) < 2 || args[0] != "kind" || args[1] != "test" {
		return args
	}
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "-update" {
			args[i] = "--update"
		}
	}
	return args
}
