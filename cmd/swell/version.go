// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/schema"
)

// version and commit are set by make release. In other builds Go has written them down
// itself, when the folder was a checkout of Git.
var version, commit string

// build is what is known of how this program was made.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"` // with +dirty where the checkout had changes; empty: not known
	Go      string `json:"go"`
	// Platform is as Go writes it, like linux/amd64.
	Platform string `json:"platform"`
}

// thisBuild is that of the running program.
func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	return buildOf(info)
}

// buildOf is a build of which Go has written this down; nil is nothing.
func buildOf(info *debug.BuildInfo) build {
	is := build{Version: cmp.Or(version, "devel"), Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if version != "" || info == nil {
		return is
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		is.Version = v
	}
	var dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			is.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if is.Commit != "" {
		is.Commit += dirty
	}
	return is
}

// line is all of it for people.
func (b build) line() string {
	of := b.Go + ", " + b.Platform
	if b.Commit != "" {
		of = "commit " + b.Commit + ", " + of
	}
	return "swell " + b.Version + " (" + of + ")"
}

func versionText() string { return thisBuild().Version }

// buildID tells builds apart, so that none takes what another has rendered for
// its own: the version of a release, or else the program's file as it is.
func buildID() string {
	if version != "" {
		return version
	}
	file, err := os.Executable()
	if err != nil {
		return versionText()
	}
	info, err := os.Stat(file)
	if err != nil {
		return versionText()
	}
	return fmt.Sprintf("%s %d %s", versionText(), info.Size(), info.ModTime().UTC())
}

func versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and the Kubernetes versions that swell knows",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			is := struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				build
				Kubernetes []string `json:"kubernetes"` // whose schemas are built in, the newest first
			}{config.APIVersion, "Version", thisBuild(), schema.Versions()}
			if output != formatText {
				return writeData(cmd.OutOrStdout(), output, is)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\nKubernetes schemas: %s\n", is.line(), strings.Join(is.Kubernetes, ", "))
			return err
		},
	}
	outputFlag(cmd, &output, formatText, formatJSON, formatYAML)
	return cmd
}
