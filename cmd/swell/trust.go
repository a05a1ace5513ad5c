// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/source"
)

// A configuration names programs: plug-ins of kubeconfigs, helpers of sops, Checkers. One that was
// found, and not named by the user, is taken where no commit can have brought it, or where its
// content was trusted. Otherwise whoever checks a stranger's branch out and asks for the status
// would run what the stranger wrote.

// found is an error where the configuration may be from a commit: it was not named, and Git
// tracks it, or a kubeconfig that it names, in a content that nobody has trusted.
func (f configPath) found(settings *config.Daemon) error {
	if f.named {
		return nil
	}
	tracked, err := f.tracked(settings)
	if err != nil || len(tracked) == 0 {
		return err
	}
	sum, err := sumOf(tracked)
	if err != nil {
		return f.in.named(err)
	}
	record, err := f.in.trustRecord(f.name)
	if err == nil {
		if kept, err := os.ReadFile(record); err == nil && strings.HasPrefix(string(kept), sum) {
			return nil
		}
	}
	return hinted{fmt.Errorf("%s: a commit can have brought it, since Git tracks %s, and it says which programs run here",
		f.name, strings.Join(f.in.shownAll(tracked), ", ")),
		"read it, then: swell trust; or name it: --config " + f.name}
}

// tracked are the configuration and the kubeconfigs that it names, as far as Git tracks them.
func (f configPath) tracked(settings *config.Daemon) ([]string, error) {
	files := []string{f.in.path(f.name)}
	for _, name := range slices.Sorted(maps.Keys(settings.Clusters)) {
		if file := settings.Clusters[name].Kubeconfig; file != "" {
			files = append(files, file)
		}
	}
	if settings.KubeconfigDir != "" {
		entries, err := os.ReadDir(settings.KubeconfigDir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, f.in.named(err)
		}
		for _, e := range entries {
			files = append(files, filepath.Join(settings.KubeconfigDir, e.Name()))
		}
	}
	var all []string // as they are named, and where links lead
	for _, file := range files {
		for _, path := range []func(string) (string, error){filepath.Abs, f.in.realPath} {
			if abs, err := path(file); err == nil {
				all = append(all, abs)
			}
		}
	}
	slices.Sort(all)
	return source.Tracked(slices.Compact(all)), nil
}

// sumOf is of the names and contents of files.
func sumOf(files []string) (string, error) {
	sum := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		fmt.Fprintf(sum, "%q %d\n%s", file, len(content), content)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// trustRecord is the file that says which content of a configuration the user trusts.
func (in *invocation) trustRecord(name string) (string, error) {
	if in.configDir == "" {
		return "", errors.New("there is no home folder to keep that in: name the configuration with --config")
	}
	real, err := in.realPath(name)
	if err != nil {
		return "", in.named(err)
	}
	sum := sha256.Sum256([]byte(real))
	return filepath.Join(in.configDir, "swell", "trusted", hex.EncodeToString(sum[:])), nil
}

func (in *invocation) shownAll(files []string) (shown []string) {
	for _, file := range files {
		shown = append(shown, in.shown(file))
	}
	return shown
}

func trustCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var yes bool
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Take a configuration that Git tracks without naming it each time",
		Long: `A configuration of the daemon says which programs run here: plug-ins of kubeconfigs, helpers
of sops, Checkers. Verbs take one that --config names. One that they find in the current
folder is refused while Git tracks it, or a kubeconfig that it names: it may be from a
commit of somebody else. This command takes the content that the files have now. After a
change they have to be trusted again.

Exit codes: 0 trusted, 1 not confirmed, 2 an error.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := (configPath{in: in, name: file.name, named: true}).read()
			if err != nil {
				return err
			}
			tracked, err := file.tracked(settings.Daemon)
			if err != nil {
				return err
			}
			if len(tracked) == 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: Git tracks none of its files, so it is taken already\n", file.name)
				return nil
			}
			sum, err := sumOf(tracked)
			if err != nil {
				return in.named(err)
			}
			record, err := in.trustRecord(file.name)
			if err != nil {
				return err
			}
			names := strings.Join(in.shownAll(tracked), ", ")
			if err := confirm(cmd, yes, fmt.Sprintf("What %s say may run programs as you. Trust their content?", names)); err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(record), 0o700); err != nil {
				return in.named(err)
			}
			if err := os.WriteFile(record, []byte(sum+" "+file.name+"\n"), 0o600); err != nil {
				return in.named(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: trusted until %s change\n", file.name, names)
			return nil
		},
	}
	configFlag(cmd, &file)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
