// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseUp(t *testing.T) {
	for args, want := range map[string]upConfig{
		"--dir /d": {Names: []string{"dev-1"}, Dir: "/d", Kubeconfig: "/d/kubeconfig"},
		"--dir /d/../e --clusters 2 --kubeconfig /k --reset --audit": {
			Names: []string{"dev-1", "dev-2"}, Dir: "/e", Kubeconfig: "/k", Reset: true, Audit: "Metadata",
		},
		"--dir /d --names sas-1,vla-1 --audit=request --apiserver-arg v=2 --apiserver-arg feature-gates=A=true --stop-at-eof": {
			Names: []string{"sas-1", "vla-1"}, Dir: "/d", Kubeconfig: "/d/kubeconfig", Audit: "Request",
			APIServerArgs: []string{"--v=2", "--feature-gates=A=true"}, StopAtEOF: true,
		},
	} {
		got, err := parseUp(strings.Fields(args))
		if err != nil {
			t.Errorf("up %s: %v", args, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("up %s: (-want +got)\n%s", args, diff)
		}
	}
}

func TestParseUpErrors(t *testing.T) {
	for args, want := range map[string]string{
		"":                                  "--dir: a folder is needed",
		"--dir /d extra":                    `unexpected argument "extra"`,
		"--dir /d --clusters 51":            "--clusters: want 1 to 50, got 51",
		"--dir /d --clusters -1":            "--clusters: want 1 to 50, got -1",
		"--dir /d --clusters 3 --names a,b": "--names: 2 names for --clusters 3",
		"--dir /d --names a,a":              `--names: "a" is there twice`,
		"--dir /d --names a,":               `--names: "": a lowercase RFC 1123 label`,
		"--dir /d --names ../a":             `--names: "../a": a lowercase RFC 1123 label`,
		"--dir /d --audit=all":              "want one of [Metadata Request RequestResponse]",
		"--dir /d --apiserver-arg --v=2":    "want KEY=VALUE, without leading dashes",
		"--dir /d --apiserver-arg v":        "want KEY=VALUE",
		"--dir /d --unknown":                "flag provided but not defined: -unknown",
	} {
		_, err := parseUp(strings.Fields(args))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("up %s:\n got %v\nwant %s", args, err, want)
		}
	}
}

// TestUpUsage fails when a flag has no line, or a line no flag.
func TestUpUsage(t *testing.T) {
	text := upUsage()
	for _, want := range []string{"--audit[=LEVEL]", "--clusters N", "--dir DIR", "--names A,B,C", "--reset", "Exit codes:"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for args, want := range map[string]int{
		"":             exitUsage,
		"frobnicate":   exitUsage,
		"child":        exitUsage,
		"up":           exitUsage,
		"up --clister": exitUsage,
		"--help":       0,
		"up --help":    0,
		"version":      0,
	} {
		// The first argument tells TestMain that this is devcluster.
		cmd := exec.Command(self(t), append([]string{mainVerb}, strings.Fields(args)...)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("devcluster %s: exit code %d, want %d\n%s", args, got, want, out)
		}
		if want != 0 && args != "" && bytes.Count(out, []byte("\n")) != 1 {
			t.Errorf("devcluster %s: want one line, got\n%s", args, out)
		}
	}
}
