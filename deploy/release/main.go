// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Command release writes what goes with a binary of swell: a bill of materials, or a
// container image. Neither has a time, a random number or anything of this machine in it:
// the same binary gives the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

const usage = `usage:
  release sbom VERSION BINARY                    write the bill of materials, as CycloneDX in JSON
  release image [-root DIR] VERSION BINARY FILE  write the image for docker load and podman load;
                                                 with -root, what is in it as files too
`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "release: error: %v\n", err)
		os.Exit(2)
	}
}

func run(args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return errors.New(strings.TrimSpace(usage))
	}
	switch verb, rest := args[0], args[1:]; {
	case verb == "sbom" && len(rest) == 2:
		return writeSBOM(stdout, rest[0], rest[1])
	case verb == "image":
		flags := flag.NewFlagSet("image", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		root := flags.String("root", "", "")
		if err := flags.Parse(rest); err != nil {
			return err
		}
		if flags.NArg() == 3 {
			return writeImage(stdout, flags.Arg(0), flags.Arg(1), flags.Arg(2), *root)
		}
	}
	return errors.New(strings.TrimSpace(usage))
}
