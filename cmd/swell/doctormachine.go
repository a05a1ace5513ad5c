// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/smallfile"
	"github.com/swell-sh/swell/render/schema"
	"github.com/swell-sh/swell/sync/checker/sandbox"
)

// kernel is the name and the release of this machine's.
func kernel() (name, release string) {
	var names unix.Utsname
	if err := unix.Uname(&names); err != nil {
		return runtime.GOOS, ""
	}
	return unix.ByteSliceToString(names.Sysname[:]), unix.ByteSliceToString(names.Release[:])
}

// oldestKernel is the first one with Landlock.
const oldestKernel = "5.13"

func judgeKernel(name, release string) finding {
	f := finding{Check: "kernel", Status: verdictOK, Found: strings.TrimSpace(name + " " + release)}
	switch {
	case name != "Linux":
		f.Status, f.Advice = verdictWarn, "only Linux has what keeps programs of Checkers and Helm charts apart: run the daemon there"
	case isOlder(release, oldestKernel):
		f.Status, f.Advice = verdictWarn, "Linux "+oldestKernel+" is the first one with Landlock: upgrade it"
	}
	return f
}

// isOlder compares the first two numbers of versions, like "5.13" of "5.13.0-40-generic". What
// has none is not older.
func isOlder(a, b string) bool {
	numbers := func(text string) (n [2]int) {
		_, _ = fmt.Sscanf(text, "%d.%d", &n[0], &n[1]) // what has none stays zero
		return n
	}
	first, second := numbers(a), numbers(b)
	return first != [2]int{} && slices.Compare(first[:], second[:]) < 0
}

// sandbox says which guards programs have. A configuration may require all of them.
func (e examination) sandbox(settings *config.Daemon) finding {
	guards, err := sandbox.Here()
	isRequired := settings != nil && settings.Sandbox.IsRequired()
	return judgeSandbox(guards, err, isRequired, obstacle(os.ReadFile))
}

func judgeSandbox(guards sandbox.Guards, err error, isRequired bool, advice string) finding {
	f := finding{Check: "sandbox", Status: verdictOK, Found: strings.Join(guards.Active, ", ")}
	switch {
	case err != nil:
		f.Status, f.Found = verdictFail, err.Error()
		f.Advice = "no Checker runs a program and no Helm chart is rendered here; " + advice
	case len(guards.Missing) > 0:
		f.Found = fmt.Sprintf("missing: %s; there are: %s", strings.Join(guards.Missing, ", "), f.Found)
		f.Status, f.Advice = verdictWarn, advice
		if isRequired {
			f.Status, f.Advice = verdictFail, "spec.sandbox is required, so no program runs here; "+advice
		}
	}
	return f
}

// obstacle says what to do where the machine gives no namespaces.
func obstacle(read func(name string) ([]byte, error)) string {
	for _, setting := range []struct{ name, closed, open string }{
		{"user/max_user_namespaces", "0", "15000"},
		{"kernel/unprivileged_userns_clone", "0", "1"},
		{"kernel/apparmor_restrict_unprivileged_userns", "1", "0"},
	} {
		content, err := read("/proc/sys/" + setting.name)
		if err == nil && strings.TrimSpace(string(content)) == setting.closed {
			return fmt.Sprintf("user namespaces are off here: sysctl %s=%s", strings.ReplaceAll(setting.name, "/", "."), setting.open)
		}
	}
	return "want Linux 6.12 with user namespaces, Landlock and seccomp; in a pod, a seccomp profile that lets unshare and mount pass"
}

// credentials looks at each file that the configuration names.
func (e examination) credentials(settings *config.Daemon) (found []finding) {
	all := settings.Credentials()
	if dir := settings.KubeconfigDir; dir != "" {
		entries, _ := os.ReadDir(dir) // the clusters tell
		for _, entry := range entries {
			if !entry.IsDir() {
				all = append(all, config.Credential{Field: "spec.kubeconfigDir", File: filepath.Join(dir, entry.Name())})
			}
		}
	}
	for _, c := range all {
		f := e.credential(c)
		f.Check, f.About = "credential", c.Field
		found = append(found, f)
	}
	return found
}

func (e examination) credential(c config.Credential) finding {
	name := e.in.shown(c.File)
	content, err := smallfile.ReadUpTo(c.File, smallfile.MostKubeconfig)
	if err != nil {
		f := finding{Status: verdictFail, Found: e.in.named(err).Error()}
		if errors.Is(err, fs.ErrNotExist) {
			f.Advice = "write the file, or correct the field"
		}
		return f
	}
	info, err := os.Stat(c.File)
	switch {
	case err != nil:
		return finding{Status: verdictFail, Found: e.in.named(err).Error()}
	case len(content) == 0:
		return finding{Status: verdictFail, Found: name + " is empty", Advice: "write the credential into it"}
	}
	mode := info.Mode().Perm()
	f := finding{Status: verdictOK, Found: fmt.Sprintf("%s, mode %04o", name, mode)}
	switch {
	case mode&0o002 != 0:
		f.Status, f.Found, f.Advice = verdictFail, f.Found+", and every user of this machine may replace it", "chmod o-rwx takes that away"
	case mode&0o004 != 0 && !c.Public:
		f.Status, f.Found, f.Advice = verdictWarn, f.Found+", and every user of this machine may read it", "chmod o-rwx takes that away"
	}
	return f
}

// Room for the state, in bytes. A fetch for a preview may bring maxCommits, the cache may grow to
// cacheLimit, and a transaction of the store needs some MiB more.
const (
	leastRoom = maxCommits
	goodRoom  = cacheLimit + 2*maxCommits
	fewFiles  = 10_000 // the cache has one for each result, and Git some for each fetch
)

// disk says how much room the state has, in its folder or where that will be made.
func (e examination) disk(settings *config.Daemon) finding {
	f := finding{Check: "disk", About: e.in.shown(settings.State)}
	dir := settings.State
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		f.Status, f.Found = verdictFail, fmt.Sprintf("this user may not write to %s: %v", e.in.shown(dir), err)
		f.Advice = "run this as the user of the daemon, who owns spec.state"
		return f
	}
	var system unix.Statfs_t
	if err := unix.Statfs(dir, &system); err != nil {
		f.Status, f.Found = verdictFail, fmt.Sprintf("%s: %v", e.in.shown(dir), err)
		return f
	}
	room := space{bytes: uint64(system.Bavail) * uint64(system.Bsize), files: uint64(system.Ffree), allFiles: system.Files}
	f.Status, f.Found, f.Advice = room.judge()
	return f
}

// space is what a file system has left. Where allFiles is 0 it does not count files.
type space struct{ bytes, files, allFiles uint64 }

func (s space) judge() (status verdict, found, advice string) {
	status, found = verdictOK, fmt.Sprintf("%d MiB free", s.bytes>>20)
	switch {
	case s.bytes < leastRoom:
		status = verdictFail
	case s.bytes < goodRoom:
		status = verdictWarn
	}
	if s.allFiles > 0 && s.files < fewFiles {
		status, found = worse(status, verdictWarn), fmt.Sprintf("%s, for %d files", found, s.files)
	}
	if status != verdictOK {
		const text = "make room for %d MiB and %d files: without it the daemon ends at its next write"
		advice = fmt.Sprintf(text, uint64(goodRoom)>>20, fewFiles)
	}
	return status, found, advice
}

func (a clusterAnswer) judge() finding {
	f := finding{Check: "cluster", About: a.name, Status: verdictOK, Found: "Kubernetes " + a.version}
	if a.err != nil {
		f.Status, f.Found = verdictFail, strings.TrimPrefix(a.err.Error(), "cluster "+a.name+": ")
		f.Advice = "mend its kubeconfig, or the network from here; units there wait meanwhile"
		return f
	}
	known := schema.Versions()
	newest, oldest := known[0], known[len(known)-1]
	knows := fmt.Sprintf("swell knows %s to %s, so checks ", oldest, newest)
	switch version := strings.TrimPrefix(a.version, "v"); {
	case isOlder(version, oldest):
		f.Status, f.Advice = verdictWarn, knows+"may take what this one refuses: upgrade it"
	case isOlder(newest, version):
		f.Status, f.Advice = verdictWarn, knows+"do not know its newest parts: upgrade swell"
	}
	return f
}
