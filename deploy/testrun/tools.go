// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// tool is a program that tests run, built from a module of its own below deploy.
type tool struct {
	module  string // folder of the module that requires it
	program string // what to build, as the module names it
	// download is a file with the version of a module that is built in its own folder: its
	// replacements keep it from being required. Empty for others.
	download string
	// cgo are the build tags of a program that is linked with C; empty for others.
	cgo string
	// files come with the program: from the folder of its module, to bin.
	files map[string]string
}

// controllerFiles are the definitions of the kinds that kustomize-controller reads.
var controllerFiles = map[string]string{"config/crd/bases/*.yaml": "kustomize-controller.yaml"}

// toolTable are the tools by the names that they have in bin.
var toolTable = map[string]tool{
	"devcluster":           {module: "deploy/devcluster", program: "."},
	"sops":                 {module: "deploy/sops", program: "github.com/getsops/sops/v3/cmd/sops"},
	"helm":                 {module: "deploy/helm", program: "helm.sh/helm/v4/cmd/helm"},
	"buf":                  {module: "deploy/buf", program: "github.com/bufbuild/buf/cmd/buf"},
	"kustomize-controller": {module: "deploy/flux", program: "github.com/fluxcd/kustomize-controller", files: controllerFiles},
	"gitea":                {module: "deploy", program: "code.gitea.io/gitea", download: "deploy/gitea.version", cgo: "sqlite,sqlite_unlock_notify"},
}

// keptUnused is how long a built tool stays in the cache that nobody asks for.
const keptUnused = 30 * 24 * time.Hour

// tools builds tools into bin, all of them without a name.
func tools(ctx context.Context, args []string) error {
	if len(args) == 0 {
		args = slices.Sorted(maps.Keys(toolTable))
	}
	for _, name := range args {
		t, known := toolTable[name]
		if !known {
			return fmt.Errorf("%s: no such tool, want one of %s", name, strings.Join(slices.Sorted(maps.Keys(toolTable)), ", "))
		}
		if err := t.provide(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// provide links bin/NAME to the tool in the cache, which holds one for each state of its
// sources. A link saves the seconds that linking a large program takes in each new checkout.
func (t tool) provide(ctx context.Context, name string) error {
	key, err := t.key()
	if err != nil {
		return err
	}
	cache, err := toolCache()
	if err != nil {
		return err
	}
	built := filepath.Join(cache, name+"-"+key)
	if _, err := os.Stat(filepath.Join(built, name)); err != nil {
		fmt.Printf("build %s\n", name)
		if err := t.build(ctx, name, built); err != nil {
			return err
		}
		forget(cache, name)
	}
	now := time.Now()
	_ = os.Chtimes(built, now, now) // only says when it was of use
	return linkAll(built, "bin")
}

// toolCache is the folder of all tools that were built for this user.
func toolCache() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(user, "swell-tools")
	return dir, os.MkdirAll(dir, 0o755)
}

// key changes with all that the tool is built from: the toolchain and the files of its module.
func (t tool) key() (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOARCH)
	files := []string{t.download}
	if t.download == "" {
		files = nil
		for _, pattern := range []string{"go.mod", "go.sum", "*.go", "*.yaml"} {
			found, err := filepath.Glob(filepath.Join(t.module, pattern))
			if err != nil {
				return "", err
			}
			files = append(files, found...)
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", file, len(content), content)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// tries is how often a build is begun that needs hundreds of modules from the network.
const tries = 3

// build builds the tool into a folder, which appears when all of it is there.
func (t tool) build(ctx context.Context, name, to string) (err error) {
	fresh, err := os.MkdirTemp(filepath.Dir(to), ".build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	out, err := filepath.Abs(filepath.Join(fresh, name))
	if err != nil {
		return err
	}
	for range tries {
		if err = t.compile(ctx, name, out); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if err := t.collect(ctx, fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, to); err != nil && !errors.Is(err, os.ErrExist) { // another run was faster
		return err
	}
	return nil
}

func (t tool) compile(ctx context.Context, name, out string) error {
	dir, program, flags := t.module, t.program, []string{}
	if t.download != "" {
		source, err := t.source(ctx)
		if err != nil {
			return err
		}
		if err := os.Symlink(source, filepath.Join(filepath.Dir(out), name+".src")); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		dir, program, flags = source, ".", []string{"-mod=readonly", "-buildvcs=false"}
	}
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build"}, flags...), "-ldflags", "-s -w", "-tags", t.cgo, "-o", out, program)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if t.cgo != "" {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	_, err := output(cmd)
	return err
}

// source is the folder of the module that a tool is built in.
func (t tool) source(ctx context.Context) (string, error) {
	version, err := os.ReadFile(t.download)
	if err != nil {
		return "", err
	}
	out, err := goCommand(ctx, ".", "mod", "download", "-json", t.program+"@"+strings.TrimSpace(string(version)))
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }
	return module.Dir, json.Unmarshal(out, &module)
}

// collect gathers the files that come with the program.
func (t tool) collect(ctx context.Context, into string) error {
	for pattern, name := range t.files {
		dir, err := goCommand(ctx, t.module, "list", "-m", "-f", "{{.Dir}}", t.program)
		if err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), pattern))
		if err != nil || len(files) == 0 {
			return cmp.Or(err, fmt.Errorf("%s: no such file", pattern))
		}
		var all []byte
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			all = append(all, content...)
		}
		if err := os.WriteFile(filepath.Join(into, name), all, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// linkAll links each file of a folder into another one, in place of what stands there.
func linkAll(from, into string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, file := range files {
		link := filepath.Join(into, file.Name())
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Symlink(filepath.Join(from, file.Name()), link); err != nil {
			return err
		}
	}
	return nil
}

// forget removes what was built of a tool and was of no use for long.
func forget(cache, name string) {
	all, _ := filepath.Glob(filepath.Join(cache, name+"-????????????????"))
	for _, dir := range all {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > keptUnused {
			_ = os.RemoveAll(dir) // another run may do so too
		}
	}
}

// goCommand runs the go command without cgo in a folder, and returns its standard output.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	return output(cmd)
}

// output runs a command. Its progress, such as the modules it downloads, is shown when it
// fails.
func output(cmd *exec.Cmd) ([]byte, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args[:2], " "), err, lastLines(stderr.String(), 40))
	}
	return out, nil
}

func lastLines(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
