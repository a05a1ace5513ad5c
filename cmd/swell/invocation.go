// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/smallfile"
)

// invocation is what one run of a verb gets from outside. No verb looks at its process: so
// many can run beside each other in one, each in a folder of its own.
type invocation struct {
	dir                 string // where relative paths begin; empty: the folder of the process
	getenv              func(name string) string
	cacheDir, configDir string // the user's; empty: there is none
	stdin               io.Reader
	stdout, stderr      io.Writer
	// hangups takes the signals that would end a daemon: SIGHUP is sent to the channel, and
	// SIGPIPE is ignored, until stop is called.
	hangups func() (hangups <-chan os.Signal, stop func())
}

// ofProcess returns what the process was started with.
func ofProcess() *invocation {
	in := &invocation{getenv: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, hangups: hangups}
	in.cacheDir, _ = os.UserCacheDir() // a user without a home has neither
	in.configDir, _ = os.UserConfigDir()
	return in
}

// path returns where a file is that the user names.
func (in *invocation) path(name string) string {
	if in.dir == "" || name == "" || filepath.IsAbs(name) {
		return name
	}
	return in.dir + string(filepath.Separator) + name // a cleaned path may lead elsewhere, past a link
}

// absolute returns the absolute path of a file that the user names.
func (in *invocation) absolute(name string) (string, error) { return filepath.Abs(in.path(name)) }

// named returns an error of the file system with the path as the user names it.
func (in *invocation) named(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		failed.Path = in.shown(failed.Path)
	}
	return err
}

// namedProblems returns problems of a file with its path as the user names it.
func (in *invocation) namedProblems(problems document.Problems) document.Problems {
	for i := range problems {
		problems[i].File = in.shown(problems[i].File)
	}
	return problems
}

// shown returns a path as the user names it: from the folder that relative ones begin at.
func (in *invocation) shown(name string) string {
	if in.dir == "" {
		return name
	}
	return strings.TrimPrefix(name, in.dir+string(filepath.Separator))
}

// readFile reads a file that the user names.
func (in *invocation) readFile(name string) ([]byte, error) {
	content, err := smallfile.ReadUpTo(in.path(name), smallfile.MostKubeconfig)
	return content, in.named(err)
}

// colors says whether colours are wanted on a terminal.
func (in *invocation) colors() bool {
	return in.getenv("NO_COLOR") == "" && in.getenv("TERM") != "dumb"
}
