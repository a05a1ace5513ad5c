// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLiveHooks: a diff with the clusters shows the hooks that the daemon would run now,
// with and without the daemon's state.
func TestLiveHooks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	folder := filepath.Join(s.repo.Work, "services/shop/hooked")
	defaults := "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: hooked}\nspec: {placement: {topology: cluster}}\n"
	write := func(tag string) {
		t.Helper()
		text := "apiVersion: v1\nkind: Namespace\nmetadata: {name: hooked}\n" +
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: hooked, namespace: hooked}\ndata: {tag: \"" + tag + "\"}\n"
		for _, hook := range []string{"before-install", "before-upgrade"} {
			text += "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: " + hook + ", namespace: hooked, annotations: {swell.sh/hook: " + hook + "}}\n" +
				"spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: \"example.com/x:" + tag + "\"}]}}}\n"
		}
		if err := errors.Join(
			os.MkdirAll(folder, 0o755),
			s.repo.Write("services/shop/hooked/objects.yaml", text),
			s.repo.Write("services/shop/hooked/swell.yaml", defaults),
			s.repo.Push(t.Context(), "hooked "+tag),
		); err != nil {
			t.Fatal(err)
		}
	}
	live := func(when string, code int, has, lacks string) {
		t.Helper()
		out := s.swell(code, "diff", "--live", s.repo.Work, "--cache", "none", "--unit", "services/shop/hooked")
		if has != "" && !strings.Contains(out, "Job/hooked/"+has) || strings.Contains(out, "Job/hooked/"+lacks) {
			t.Errorf("%s: want %q and not %q in\n%s", when, has, lacks, out)
		}
	}
	write("1")
	live("before the first release", exitProblems, "before-install", "before-upgrade")
	s.once(0)
	live("after it", 0, "", "before-")
	write("2")
	live("before the second release", exitProblems, "before-upgrade", "before-install")
	state := strings.TrimSuffix(s.config, "daemon.yaml") + "state"
	if err := os.Rename(state, state+".away"); err != nil {
		t.Fatal(err)
	}
	live("without a state", exitProblems, "before-upgrade", "before-install")
	if err := os.Rename(state+".away", state); err != nil {
		t.Fatal(err)
	}
	s.once(0)
	live("after the second release", 0, "", "before-")
}
