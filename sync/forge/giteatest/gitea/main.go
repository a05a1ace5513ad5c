// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Command gitea runs a Gitea for tests until its standard input ends: the test runner starts
// one for all packages.
//
//	gitea BINARY DIR     writes DIR/server.json, then "ready" to standard output
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/swell-sh/swell/sync/forge/giteatest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "gitea: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("want BINARY DIR")
	}
	dir := args[1]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server, done, err := giteatest.Launch(ctx, args[0], dir)
	if err != nil {
		return err
	}
	text, err := json.Marshal(server)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "server.json"), text, 0o600); err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // its end is ours
	cancel()
	<-done
	return nil
}
