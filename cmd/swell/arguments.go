// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// arguments checks how many arguments a verb gets: least to most. An error says where
// help is.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if least <= len(args) && len(args) <= most {
			return nil
		}
		verb := strings.TrimPrefix(cmd.CommandPath(), "swell ")
		return hinted{fmt.Errorf("%s: want %s, got %s", verb, argumentCount(least, most), quotedArguments(args)), cmd.CommandPath() + " --help shows what it takes"}
	}
}

// noEmptyTexts refuses arguments and flags that are given and empty, as from a variable that
// is not set: without them a verb is about more. An empty reason is none, and the word that a
// shell is to complete may be empty.
func noEmptyTexts(cmd *cobra.Command, args []string) (err error) {
	if cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd {
		return nil
	}
	verb := strings.TrimPrefix(cmd.CommandPath(), "swell ")
	if slices.Contains(args, "") {
		return fmt.Errorf("%s: want no empty argument, got %s", verb, quotedArguments(args))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" && f.Name != "reason" && err == nil {
			err = fmt.Errorf("%s: --%s is empty", verb, f.Name)
		}
	})
	return err
}

func argumentCount(least, most int) string {
	switch {
	case most == 0:
		return "no argument"
	case least == most && most == 1:
		return "one argument"
	case least == 0 && most == 1:
		return "at most one argument"
	case least == 0:
		return fmt.Sprintf("at most %d arguments", most)
	}
	return fmt.Sprintf("%d to %d arguments", least, most)
}

func quotedArguments(args []string) string {
	if len(args) == 0 {
		return "none"
	}
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = strconv.Quote(arg)
	}
	return strings.Join(quoted, " ")
}

// flagError says what is wrong with a flag, and where help is.
func flagError(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		flag := "--" + value.GetFlag().Name
		if short := value.GetFlag().Shorthand; short != "" {
			flag = "-" + short
		}
		cause := value.Unwrap()
		var number *strconv.NumError
		if errors.As(cause, &number) {
			cause = errors.New(map[string]string{"bool": "want true or false", "int": "want a whole number", "int64": "want a whole number"}[value.GetFlag().Value.Type()])
		}
		err = fmt.Errorf("%s %q: %w", flag, value.GetValue(), cause)
	}
	return hinted{err, cmd.CommandPath() + " --help lists the flags"}
}
