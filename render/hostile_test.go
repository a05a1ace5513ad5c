// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/swell-sh/swell/config"
)

// TestHostileTree: a monorepo that is made to take swell's memory or time ends
// with problems. It is read by a process of its own, whose memory and CPU time
// the kernel counts. The tree is of 4 MiB; SWELL_HOSTILE_MIB=64 makes it one of
// 64 MiB, which takes up to a minute of CPU.
func TestHostileTree(t *testing.T) {
	if dir := os.Getenv("SWELL_HOSTILE_DIR"); dir != "" {
		renderHostile(t, dir)
		return
	}
	size := 4
	if text := os.Getenv("SWELL_HOSTILE_MIB"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	writeHostile(t, dir, size<<20)
	child := exec.Command(os.Args[0], "-test.run=^TestHostileTree$", "-test.v")
	child.Env = append(os.Environ(), "SWELL_HOSTILE_DIR="+dir)
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%.3000s", err, out)
	}
	usage := child.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	t.Logf("%d MiB: %d MiB of memory at most, %s of CPU\n%s", size, usage.Maxrss>>10, cpu, out)
	if usage.Maxrss > 1<<20 { // in KiB
		t.Errorf("%d MiB of memory, want at most 1024", usage.Maxrss>>10)
	}
	if cpu > time.Minute { // on two cores 30 seconds
		t.Errorf("%s of CPU, want at most a minute", cpu)
	}
}

// renderHostile renders the tree; every folder of services/ but good must be
// held by a problem.
func renderHostile(t *testing.T, dir string) {
	var c Compiler
	began := time.Now()
	s := c.Snapshot("", config.Files(os.DirFS(dir)))
	t.Logf("%d units, %d problems in %s", s.Units.Len(), len(s.Problems), time.Since(began))
	held := 0
	for path, unit := range s.Units.All() {
		if len(unit.Problems) > 0 {
			held++
		} else if path != "services/good" {
			t.Errorf("%.100s: no problem", path)
		}
	}
	if held == 0 || objectsIn(s, "services/good") == 0 {
		t.Errorf("%d of %d units held, the good one has %d objects", held, s.Units.Len(), objectsIn(s, "services/good"))
	}
	for _, p := range s.Problems {
		if len(p.String()) > 4000 {
			t.Errorf("a problem of %d bytes: %.300s", len(p.String()), p)
		}
	}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: a}\n"

// hostileFiles are made of a number of bytes each; every one of them is wrong.
var hostileFiles = map[string]func(size int) string{
	"aliases": func(size int) string {
		text := configMap + "data:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
		for i := 1; len(text) < size; i++ {
			text += fmt.Sprintf("  a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 200), i-1)
		}
		return text
	},
	"wide": func(size int) string {
		return configMap + "data:\n  a: &a [" + strings.Repeat("x,", size/4) + "]\n  b: [" + strings.Repeat("*a, ", size/8) + "]\n"
	},
	"merges": func(size int) string {
		return configMap + "base: &a {" + strings.Repeat("k: x,", size/16) + "}\ndata: {<<: [" + strings.Repeat("*a,", size/8) + "]}\n"
	},
	"deep":    func(size int) string { return configMap + "data: " + strings.Repeat("[", size) },
	"indents": func(size int) string { return configMap + "data:\n" + indents(size) },
	"mapping": func(size int) string {
		return configMap + "data:\n" + numbered(size, "  key%d: 1\n")
	},
	"twice":  func(size int) string { return configMap + "data:\n" + strings.Repeat("  a: x\n", size/7) },
	"line":   func(size int) string { return configMap + "data: {a: " + strings.Repeat("x", size) + ", b: 1}\n" },
	"broken": func(size int) string { return configMap + "data: {a: \"" + strings.Repeat("x\n", size/2) },
	"kinds": func(size int) string {
		return numbered(size, "---\napiVersion: apps/v%[1]d\nkind: Deploiment%[1]d\nmetadata: {name: a}\n")
	},
	"unknown": func(size int) string {
		return "apiVersion: easy.example.com/v1\nkind: Runtime\nmetadata: {name: x}\nspec:\n" + numbered(size, "  replicsa%d: {}\n")
	},
	"types": func(size int) string {
		return "apiVersion: easy.example.com/v1\nkind: Runtime\nmetadata: {name: x}\nspec:\n  replicas:\n" + numbered(size, "    a%d: x\n")
	},
	"fields": func(size int) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: a}\nspec:\n" + numbered(size, "  replicsa%d: 1\n")
	},
	"hidden": func(size int) string { return configMap + "data:\n" + numbered(size, "  \"\\u202e%d\": 1\n") },
	"words":  func(size int) string { return configMap + "data:\n" + numbered(size, "  a%d: yes\n") },
	"tags":   func(size int) string { return configMap + "data:\n" + numbered(size, "  a%d: !x y\n") },
	"override": func(size int) string {
		return "apiVersion: easy.example.com/v1\nkind: Runtime\nmetadata: {name: x}\nspec:\n  image: x\n  replicas: {sas: 1}\n  override:\n    deployment:\n      update:\n" +
			numbered(size, "      - {path: spec.tmplate%d, value: 1}\n")
	},
}

func indents(size int) string {
	var b strings.Builder
	for i := 1; b.Len() < size; i++ {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func numbered(size int, format string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// writeHostile writes a tree of about so many bytes.
func writeHostile(t *testing.T, dir string, size int) {
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space") {
		write(name, string(file.Data))
	}
	write("services/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec:\n  tenant: a\n  placement: {topology: cluster, match: {labels: {region: sas}}}\n")
	write("services/good/x.yaml", strings.ReplaceAll(configMap, "name: x", "name: good"))
	each := min(size/(len(hostileFiles)+2), 7<<20)
	for name, content := range hostileFiles {
		write("services/"+name+"/x.yaml", content(each))
	}
	write("services/folders/"+strings.Repeat("d/", 400)+"x.yaml", "kind: x\n")
	for i := range size / 20_000 { // many small ones
		write(fmt.Sprintf("services/many/u%05d/x.yaml", i), fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a%d: 1}\n", i))
	}
}

// plainSecretsPass is a root's swell.yaml that lets Secrets be as they are.
const plainSecretsPass = "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\nspec: {checks: {plainSecrets: pass}}\n"

// TestTooLarge: objects that no API server stores, and files that are not read,
// have one problem each.
func TestTooLarge(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
	write := func(name, text string) { files["services/"+name] = &fstest.MapFile{Data: []byte(text)} }
	write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec:\n  tenant: a\n  placement: {topology: cluster, match: {labels: {region: sas}}}\n")
	write("object/x.yaml", configMap+"data: {a: "+strings.Repeat("x", 1<<20)+"}\n")
	write("many/x.yaml", strings.ReplaceAll(configMap, "name: x", "name: many")+"data:\n"+numbered(2<<20, "  a%d: some text that is not long by itself\n"))
	files["swell.yaml"] = &fstest.MapFile{Data: []byte(plainSecretsPass)}
	write("secret/x.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: a}\nstringData: {a: "+strings.Repeat("x", 1<<20)+"}\n")
	write("annotations/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: z\n  namespace: a\n  annotations: {a: "+strings.Repeat("x", 256<<10)+"}\n")
	write("file/x.yaml", configMap+"data: {a: "+strings.Repeat("x", 50<<20)+"}\n")
	write("read/x.yaml", "apiVersion: easy.example.com/v1\nkind: Runtime\nmetadata: {name: z}\nspec:\n  image: x\n  replicas: {sas: 1}\n  config: {fromFile: a.txt}\n")
	write("read/a.txt", strings.Repeat("x", 50<<20))
	var c Compiler
	s := c.Snapshot("", config.Files(files))
	for path, want := range map[config.UnitPath]string{
		"services/object":      "^services/object/x.yaml:1:1: ConfigMap/a/x: 10488[0-9]{2} bytes, an API server takes at most 1048576",
		"services/many":        "^services/many/x.yaml:1:1: ConfigMap/a/many: [0-9]{7} bytes, an API server takes at most 1048576",
		"services/secret":      "^services/secret/x.yaml:1:1: Secret/a/x: 10488[0-9]{2} bytes, an API server takes at most 1048576",
		"services/annotations": "^services/annotations/x.yaml:6:3: metadata.annotations: want at most 256 KiB of annotations",
		"services/file":        "^services/file/x.yaml: larger than 8 MiB",
		"services/read":        `^services/read/x.yaml:7:22: spec.config.fromFile: "a.txt": larger than 8 MiB`,
	} {
		problems := s.Units.Get(path).Problems
		if len(problems) != 1 || !regexp.MustCompile(want).MatchString(problems.String()) {
			t.Errorf("%s: got %.300s\nwant %s", path, problems.String(), want)
		}
	}
}

// objectsIn is how many objects a unit renders to.
func objectsIn(s *Snapshot, path config.UnitPath) int {
	n := 0
	for _, on := range s.Units.Get(path).Placements {
		n += on.Objects
	}
	return n
}
