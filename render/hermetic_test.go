// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/object"
)

// everything renders the example and richFiles from a folder and says all of
// both, on a compiler with that cache.
func everything(dir string, kept *cache.Cache) string {
	var b strings.Builder
	for _, name := range []string{"example", "rich"} {
		c := Compiler{Cache: kept}
		s := c.Snapshot("", config.Files(os.DirFS(filepath.Join(dir, name))))
		fmt.Fprintf(&b, "%s\n%s\n", name, all(&c, s, map[object.ID]bool{}))
	}
	return b.String()
}

// TestHermetic renders in processes that differ in all that a process can
// differ in: the same bytes come out of each, and nothing is written but to the
// cache. Map orders differ from process to process by themselves.
func TestHermetic(t *testing.T) {
	if dir := os.Getenv("SWELL_HERMETIC_DIR"); dir != "" {
		hermeticChild(t, dir)
		return
	}
	dir := t.TempDir()
	if err := errors.Join(os.CopyFS(dir+"/example", os.DirFS("../testdata/monorepo")), os.CopyFS(dir+"/rich", os.DirFS(onDisk(t, richFiles())))); err != nil {
		t.Fatal(err)
	}
	want := everything(dir, nil)
	if strings.Count(want, "\n") < 200 || strings.Contains(want, "problem") {
		t.Fatalf("not what was to be rendered:\n%.3000s", want)
	}
	if again := everything(dir, nil); again != want {
		t.Errorf("another time:\n%s", differ(want, again))
	}
	zones := oddZones(t)
	for name, env := range map[string][]string{
		"bare":     nil,
		"times":    {"TZ=Asia/Kathmandu", "LANG=tr_TR.UTF-8", "LC_ALL=tr_TR.UTF-8", "GOMAXPROCS=1"},
		"zones":    {"TZ=" + zones + "/here", "ZONEINFO=" + zones},
		"nowhere":  {"TZ=:/nowhere", "ZONEINFO=/nowhere", "LANG=C", "GODEBUG=randautoseed=1,zipinsecurepath=0,tarinsecurepath=0"},
		"proxies":  {"HTTP_PROXY=http://192.0.2.1:1", "HTTPS_PROXY=http://192.0.2.1:1", "GOMAXPROCS=7", "KUBECONFIG=/dev/null", "USER=x"},
		"stress":   {"GODEBUG=randautoseed=0,asyncpreemptoff=1", "GOGC=5", "GOMAXPROCS=2"},
		"no files": {"SWELL_HERMETIC_FSIZE=0"},
		"cache":    {"SWELL_HERMETIC_CACHE=" + t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) { hermeticParent(t, dir, want, env, nil) })
	}
	t.Run("no network", func(t *testing.T) {
		hermeticParent(t, dir, want, []string{"SWELL_HERMETIC_ALONE=1"}, networkless(t))
	})
}

// oddZones is a folder in which each zone is that of Auckland, and "here" is
// that of Berlin.
func oddZones(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	all, err := zip.OpenReader("../config/timezone/zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	for name, rules := range map[string]string{"here": "Europe/Berlin", "Europe/Berlin": "Pacific/Auckland", "America/New_York": "Pacific/Auckland", "Asia/Kathmandu": "Pacific/Auckland"} {
		content, err := fs.ReadFile(all, rules)
		if err := errors.Join(err, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700), os.WriteFile(filepath.Join(dir, name), content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// networkless starts a process in a network namespace of its own. A container
// mostly lets nobody make one; in CI that is a failure all the same, since what
// is never tried there is never tried.
func networkless(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	var missing error
	for _, flags := range []uintptr{syscall.CLONE_NEWNET, syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER} {
		apart := &syscall.SysProcAttr{Cloneflags: flags}
		try := exec.Command("/proc/self/exe", "-test.run=^$")
		try.SysProcAttr = apart
		if missing = try.Run(); missing == nil {
			return apart
		}
	}
	text := fmt.Sprintf("a network namespace of its own is missing: %v: it takes CAP_SYS_ADMIN or unprivileged user namespaces", missing)
	if os.Getenv("CI") != "" {
		t.Fatal(text)
	}
	t.Skip(text)
	return nil
}

// hermeticParent runs the child in folders of its own and looks at what it says
// and leaves behind.
func hermeticParent(t *testing.T, dir, want string, env []string, attr *syscall.SysProcAttr) {
	t.Helper()
	program, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	child := exec.Command(program, "-test.run=^TestHermetic$")
	child.Dir, child.SysProcAttr = own, attr
	child.Env = append([]string{"SWELL_HERMETIC_DIR=" + dir, "HOME=" + own, "TMPDIR=" + own, "XDG_CACHE_HOME=" + own}, env...)
	out, err := child.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, _, _ := strings.Cut(string(out), "\nPASS\n")
	if diff := differ(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" {
		t.Errorf("(-here +there)\n%s", diff)
	}
	if left, err := os.ReadDir(own); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func hermeticChild(t *testing.T, dir string) {
	if os.Getenv("SWELL_HERMETIC_ALONE") != "" {
		if routes, err := os.ReadFile("/proc/self/net/route"); err != nil || strings.Count(string(routes), "\n") > 1 {
			t.Fatalf("there is a network: %s %v", routes, err)
		}
	}
	if os.Getenv("SWELL_HERMETIC_FSIZE") != "" { // no file may be written at all
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{}); err != nil {
			t.Fatal(err)
		}
	}
	var kept *cache.Cache
	if folder := os.Getenv("SWELL_HERMETIC_CACHE"); folder != "" {
		var err error
		if kept, err = cache.Open(folder, 1<<30); err != nil {
			t.Fatal(err)
		}
		everything(dir, kept)
	}
	fmt.Println(everything(dir, kept))
}

// TestWaysOut pins the packages by which the compiler could reach a network or
// start a program: libraries that bring what is not used here. A new one is to
// be looked at.
func TestWaysOut(t *testing.T) {
	known := map[string][]string{
		// The API server's admission code brings its metrics, and takes constants of net/http.
		"net/http": {"expvar", "github.com/go-openapi/swag/loading", "github.com/google/gnostic-models/compiler",
			"github.com/prometheus/client_golang/internal/github.com/golang/gddo/httputil", "github.com/prometheus/client_golang/internal/github.com/golang/gddo/httputil/header",
			"github.com/prometheus/client_golang/prometheus/promhttp", "github.com/prometheus/common/expfmt", "golang.org/x/net/http2",
			"k8s.io/apimachinery/pkg/api/errors", "k8s.io/apimachinery/pkg/runtime/serializer/protobuf", "k8s.io/apimachinery/pkg/util/net", "k8s.io/apimachinery/pkg/util/runtime",
			"k8s.io/apiserver/pkg/audit", "k8s.io/apiserver/pkg/authorization/authorizer", "k8s.io/apiserver/pkg/endpoints/request",
			"k8s.io/component-base/metrics", "k8s.io/component-base/metrics/legacyregistry", "sigs.k8s.io/kustomize/api/internal/loader"},
		"os/exec": {"github.com/google/gnostic-models/compiler", "github.com/hmarr/codeowners", "sigs.k8s.io/kustomize/api/internal/builtins", "sigs.k8s.io/kustomize/api/internal/git",
			"sigs.k8s.io/kustomize/api/internal/plugins/execplugin", "sigs.k8s.io/kustomize/kyaml/fn/runtime/exec"},
	}
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for way := range known {
			if slices.Contains(p.Imports, way) {
				found[way] = append(found[way], p.ImportPath)
			}
		}
	}
	for way, by := range known {
		slices.Sort(found[way])
		if !slices.Equal(found[way], by) {
			t.Errorf("%s is imported by\n%q, want\n%q", way, found[way], by)
		}
	}
}

// TestNothingOfTheMachine: nothing that config and render are made of asks for
// the time, the machine's zone or the environment. time.LoadLocation reads
// files of the machine, and time.Local is its zone.
func TestNothingOfTheMachine(t *testing.T) {
	forbidden := map[string][]string{
		"time": {"Now", "Since", "Until", "LoadLocation", "Local", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
		"os":   {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Expand", "Getwd", "Hostname", "UserHomeDir", "UserCacheDir", "UserConfigDir", "Getuid", "TempDir"},
	}
	for _, root := range []string{"../config", "."} {
		err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			if strings.HasPrefix(name, "../config/rapidtest/") {
				return nil // imported by tests alone, see TestRoomsOfTheCompiler
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil || strings.HasPrefix(name, "schema/gen.go") { // a program of its own
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if of, ok := s.X.(*ast.Ident); ok && slices.Contains(forbidden[of.Name], s.Sel.Name) {
						t.Errorf("%s: %s.%s", name, of.Name, s.Sel.Name)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
