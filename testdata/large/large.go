// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package large makes monorepos of any number of specs, for benchmarks: the
// example's kind Runtime, one spec a unit, 100 units a team, each spec 5
// objects on each of 2 targets.
package large

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ObjectsPerSpec is what a spec renders to, over its two targets.
const ObjectsPerSpec = 10

// Monorepo is one of Specs specs. Example is the folder of the example monorepo.
type Monorepo struct {
	Example string
	Specs   int
	Checked bool // with a Tenant for each team, and four admission policies
}

// Files calls each with all files of the monorepo, in the order of fast-import: any.
func (m Monorepo) Files(each func(name, content string) error) error {
	for _, name := range []string{"swell.yaml", "fleet/sas-1.yaml", "fleet/rollout.yaml", "kinds/runtime/kind.yaml", "kinds/runtime/runtime.proto"} {
		content, err := os.ReadFile(filepath.Join(m.Example, name))
		if err != nil {
			return err
		}
		text := strings.Replace(string(content), "soak: 10m", "soak: 0s", 1)
		if err := each(name, text); err != nil {
			return err
		}
	}
	for i := range m.Specs {
		if i%100 == 0 {
			if err := each(fmt.Sprintf("services/team%04d/swell.yaml", i/100), fmt.Sprintf(`apiVersion: swell.sh/v1
kind: Defaults
metadata: {name: team%04d}
spec:
  tenant: team%04d
  placement: {match: {labels: {region: sas}}}
`, i/100, i/100)); err != nil {
				return err
			}
		}
		if err := each(SpecFile(i), Spec(i, "1.0.0")); err != nil {
			return err
		}
		if err := each(Unit(i)+"/app.toml", fmt.Sprintf("[app]\nname = %q\n", Unit(i))); err != nil {
			return err
		}
	}
	if m.Checked {
		return m.Checks(each)
	}
	return nil
}

// Unit is the path of unit i.
func Unit(i int) string { return fmt.Sprintf("services/team%04d/service%06d", i/100, i) }

// SpecFile is the file of the spec in unit i.
func SpecFile(i int) string { return Unit(i) + "/runtime.yaml" }

// Spec is the content of the spec in unit i, with that tag of its image.
func Spec(i int, tag string) string {
	return fmt.Sprintf(`apiVersion: easy.example.com/v1
kind: Runtime
metadata: {name: service%06d}
spec:
  image: registry.example.com/service%06d:%s
  replicas: {sas: 2, vla: 3}
  config: {fromFile: app.toml}
  env: {LOG_LEVEL: info, REGION: sas}
  autoscale: {max: 6, cpuPercent: 70}
`, i, i, tag)
}

// Folder writes the monorepo into a folder.
func (m Monorepo) Folder(dir string) error { return m.Files(Into(dir)) }

// Into writes files into a folder.
func Into(dir string) func(name, content string) error {
	return func(name, content string) error {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		return os.WriteFile(name, []byte(content), 0o644)
	}
}

// Repository makes a bare Git repository of the monorepo, on the branch main.
// Two more branches start from it: spec differs in one spec, kind in a label
// that the kind gives to every object.
func (m Monorepo) Repository(dir string) error {
	if out, err := exec.Command("git", "init", "--quiet", "--bare", "--initial-branch=main", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, out)
	}
	cmd := exec.Command("git", "-C", dir, "fast-import", "--quiet")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	writeErr := m.stream(in)
	if err := in.Close(); writeErr == nil {
		writeErr = err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("git fast-import: %w: %s", err, stderr.Bytes())
	}
	return writeErr
}

func (m Monorepo) stream(w io.Writer) error {
	var kind string
	file := func(name, content string) error {
		if name == "kinds/runtime/kind.yaml" {
			kind = content
		}
		_, err := fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", name, len(content), content)
		return err
	}
	commit := func(branch, from string) {
		fmt.Fprintf(w, "commit refs/heads/%s\ncommitter Ada <ada@example.com> 1767323045 +0000\ndata 6\nchange\n%s", branch, from)
	}
	commit("main", "")
	if err := m.Files(file); err != nil {
		return err
	}
	commit("spec", "from refs/heads/main\n")
	if err := file(SpecFile(m.Specs/2), Spec(m.Specs/2, "1.0.1")); err != nil {
		return err
	}
	commit("kind", "from refs/heads/main\n")
	return file("kinds/runtime/kind.yaml", strings.Replace(kind, `"{'app': name}"`, `"{'app': name, 'release': 'two'}"`, 1))
}
