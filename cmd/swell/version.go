// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/schema"
)

// version is set by the build of a release; a build from a checkout tells its
// commit instead.
var version string

func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(len(s.Value), 12)]
		}
	}
	return "devel"
}

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
				APIVersion string   `json:"apiVersion"`
				Kind       string   `json:"kind"`
				Version    string   `json:"version"`
				Go         string   `json:"go"`
				Platform   string   `json:"platform"`
				Kubernetes []string `json:"kubernetes"` // whose schemas are built in, the newest first
			}{config.APIVersion, "Version", versionText(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, schema.Versions()}
			if output != formatText {
				return writeData(cmd.OutOrStdout(), output, is)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "swell %s (%s, %s)\nKubernetes schemas: %s\n", is.Version, is.Go, is.Platform, strings.Join(is.Kubernetes, ", "))
			return err
		},
	}
	outputFlag(cmd, &output, formatText, formatJSON, formatYAML)
	return cmd
}
