// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// part is a program or a library that tests run, and the Debian package that has it.
type part struct{ name, debian string }

// needed are the parts that the tests need beside Go, git and make. Most are programs that
// judge texts of the example, and come with Checkers of it; gcc is for the race detector.
var needed = []part{
	{"git", "git"},
	{"gcc", "gcc libc6-dev"},
	{"nginx", "nginx-light"},
	{"prometheus", "prometheus"},
	{"promtool", "prometheus"},
	{"amtool", "prometheus-alertmanager"},
	{"haproxy", "haproxy"},
	{"named-checkconf", "bind9-utils"},
	{"jq", "jq"},
	{"gpg", "gnupg"},
	{"gpgconf", "gnupg"},
	{"systemd-analyze", "systemd"},
	{"libnss_wrapper.so", "libnss-wrapper"},
}

// parts installs the missing parts on Debian, as root. Elsewhere it fails with one line that
// names the command.
func parts(ctx context.Context, _ []string) error {
	missing := missingParts(needed, isPresent)
	if len(missing) == 0 {
		return nil
	}
	install := installCommand(missing)
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Getuid() != 0 {
		return fmt.Errorf("the tests need %s, which this machine does not have; on Debian: sudo sh -c '%s'",
			strings.Join(names(missing), ", "), install)
	}
	fmt.Printf("install %s\n", strings.Join(names(missing), ", "))
	for _, args := range [][]string{{"update", "-q"}, append([]string{"install", "-qy", "--no-install-recommends"}, packages(missing)...)} {
		cmd := exec.CommandContext(ctx, apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, out)
		}
	}
	if still := missingParts(missing, isPresent); len(still) > 0 {
		return errors.New("still missing after " + install + ": " + strings.Join(names(still), ", "))
	}
	return nil
}

func missingParts(all []part, present func(name string) bool) []part {
	return slices.DeleteFunc(slices.Clone(all), func(p part) bool { return present(p.name) })
}

// programFolders are searched beside the PATH: Debian puts servers where users do not look.
var programFolders = []string{"/usr/sbin", "/sbin"}

// isPresent says whether a program is in the PATH, or a library where Debian has it.
func isPresent(name string) bool {
	if strings.HasSuffix(name, ".so") {
		found, _ := filepath.Glob("/usr/lib/*/" + name)
		return len(found) > 0
	}
	if _, err := exec.LookPath(name); err == nil {
		return true
	}
	return slices.ContainsFunc(programFolders, func(folder string) bool {
		_, err := exec.LookPath(filepath.Join(folder, name))
		return err == nil
	})
}

func names(parts []part) (all []string) {
	for _, p := range parts {
		all = append(all, p.name)
	}
	return all
}

// packages are the Debian packages of parts, each once, sorted.
func packages(parts []part) (all []string) {
	for _, p := range parts {
		all = append(all, strings.Fields(p.debian)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func installCommand(missing []part) string {
	return "apt-get update && apt-get install -y " + strings.Join(packages(missing), " ")
}
