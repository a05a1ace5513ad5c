// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/checker/sandbox"
)

// Findings of swell doctor that a test's own machine does not have.
func TestDoctorJudges(t *testing.T) {
	all, some := sandbox.Guards{Active: []string{"seccomp"}}, sandbox.Guards{Active: []string{"seccomp"}, Missing: []string{"private root"}}
	clock := func(ahead ...time.Duration) finding {
		var answers []clusterAnswer
		for _, d := range ahead {
			answers = append(answers, clusterAnswer{name: "c", hasClock: true, ahead: d})
		}
		return judgeClock(answers)
	}
	room := func(bytes, files uint64) (f finding) {
		f.Status, f.Found, f.Advice = space{bytes, files, 1 << 20}.judge()
		return f
	}
	cluster := func(version string) finding { return clusterAnswer{version: version}.judge() }
	for name, test := range map[string]struct {
		found  finding
		status verdict
		text   string // of the finding and the advice
	}{
		"kernel":           {judgeKernel("Linux", "6.12.9-amd64"), verdictOK, "Linux 6.12.9-amd64"},
		"old kernel":       {judgeKernel("Linux", "5.10.0-28-amd64"), verdictWarn, "Linux 5.13 is the first one with Landlock"},
		"other kernel":     {judgeKernel("Darwin", "25.1.0"), verdictWarn, "only Linux"},
		"sandbox":          {judgeSandbox(all, nil, true, "x"), verdictOK, "seccomp"},
		"weaker":           {judgeSandbox(some, nil, false, "sysctl"), verdictWarn, "missing: private root; there are: seccomp sysctl"},
		"required":         {judgeSandbox(some, nil, true, "sysctl"), verdictFail, "so no program runs here; sysctl"},
		"no sandbox":       {judgeSandbox(sandbox.Guards{}, errors.New("none"), false, "sysctl"), verdictFail, "rendered here; sysctl"},
		"clock":            {clock(time.Second, -2*time.Second), verdictOK, "as those of the clusters"},
		"clock ahead":      {clock(time.Second, 20*time.Second), verdictWarn, "20s ahead of the cluster's have a time service"},
		"clock behind":     {clock(time.Second, -2*time.Minute), verdictFail, "2m0s behind the cluster's"},
		"no clock":         {clock(), verdictWarn, "no cluster told the time"},
		"room":             {room(64<<30, 1<<20), verdictOK, "65536 MiB free"},
		"little room":      {room(1<<30, 1<<20), verdictWarn, "1024 MiB free make room for 1536 MiB and 10000 files"},
		"no room":          {room(1<<20, 1<<20), verdictFail, "make room"},
		"few files":        {room(64<<30, 10), verdictWarn, "for 10 files"},
		"known version":    {cluster("v1.35.2-eks-1"), verdictOK, "Kubernetes v1.35.2-eks-1"},
		"old version":      {cluster("v1.29.1"), verdictWarn, "checks may take what this one refuses: upgrade it"},
		"new version":      {cluster("v1.99.0"), verdictWarn, "upgrade swell"},
		"cluster is away":  {clusterAnswer{err: errors.New("refused")}.judge(), verdictFail, "refused mend its kubeconfig"},
		"version is blank": {cluster(""), verdictOK, "Kubernetes"},
	} {
		text := test.found.Found + " " + test.found.Advice
		if test.found.Status != test.status || !strings.Contains(text, test.text) {
			t.Errorf("%s: got %s %q, want %s %q", name, test.found.Status, text, test.status, test.text)
		}
	}
}

// The advice names the setting that keeps namespaces away.
func TestDoctorNamesTheObstacle(t *testing.T) {
	for setting, want := range map[string]string{
		"/proc/sys/user/max_user_namespaces 0":                      "sysctl user.max_user_namespaces=15000",
		"/proc/sys/kernel/unprivileged_userns_clone 0":              "sysctl kernel.unprivileged_userns_clone=1",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns 1":  "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns 0 ": "in a pod, a seccomp profile",
	} {
		name, value, _ := strings.Cut(setting, " ")
		got := obstacle(func(asked string) ([]byte, error) {
			if asked != name {
				return nil, fs.ErrNotExist
			}
			return []byte(value + "\n"), nil
		})
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", setting, got, want)
		}
	}
}
