// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/helm"
	"github.com/swell-sh/swell/testdata/built"
)

// given is a chart on disk, a folder or an archive, and what it is rendered with.
type given struct {
	chart       string
	values      []string // files, later ones win
	kubernetes  string   // 1.36
	apiVersions []string
}

const (
	release   = "demo"
	namespace = "space"
)

// template is what `helm template` makes of it: its output, or what it says is wrong.
func (g given) template(t testing.TB) (output string, took time.Duration, err error) {
	t.Helper()
	args := []string{"template", release, g.chart, "--namespace", namespace, "--include-crds", "--kube-version", g.kubernetes + ".0"}
	for _, file := range g.values {
		args = append(args, "--values", file)
	}
	for _, version := range g.apiVersions {
		args = append(args, "--api-versions", version)
	}
	home := t.TempDir()
	cmd := exec.Command(built.Program(t, "helm"), args...)
	cmd.Env = []string{"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	begun := time.Now()
	err = cmd.Run()
	took = time.Since(begun)
	if err != nil {
		err = errors.New(strings.TrimSpace(said.String()))
	}
	return out.String(), took, err
}

// request is the same for swell.
func (g given) request(t testing.TB) helm.Request {
	t.Helper()
	r, err := g.read(t)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// read is the same; the error is what is wrong with the chart.
func (g given) read(t testing.TB) (helm.Request, error) {
	t.Helper()
	root, err := os.OpenRoot(filepath.Dir(g.chart))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	chart, err := helm.Read(config.Files(root.FS()), filepath.Base(g.chart))
	if err != nil {
		return helm.Request{}, err
	}
	r := helm.Request{Chart: chart, Release: release, Namespace: namespace, Kubernetes: g.kubernetes, APIVersions: slices.Concat(g.apiVersions, defaultVersions(t))}
	for _, file := range g.values {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r.Files = append(r.Files, helm.File{Name: file, Content: content})
	}
	return r, nil
}

// defaultVersions are the API versions that `helm template` takes every cluster to have.
func defaultVersions(t testing.TB) []string {
	t.Helper()
	known.Lock()
	defer known.Unlock()
	if len(known.versions) > 0 {
		return known.versions
	}
	g := given{chart: filepath.Join(t.TempDir(), "versions"), kubernetes: "1.36"}
	write(t, filepath.Join(g.chart, "Chart.yaml"), "{apiVersion: v2, name: versions, version: 1.0.0}")
	write(t, filepath.Join(g.chart, "templates/x.yaml"), "versions: {{ toJson .Capabilities.APIVersions }}")
	output, _, err := g.template(t)
	if err != nil {
		t.Fatal(err)
	}
	var read struct{ Versions []string }
	if err := yaml.Unmarshal([]byte(output), &read); err != nil || len(read.Versions) < 10 {
		t.Fatalf("%v: %s", err, output)
	}
	known.versions = read.Versions
	return known.versions
}

// known is asked for once.
var known struct {
	sync.Mutex
	versions []string
}

func write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// separator is where helm divides documents.
var separator = regexp.MustCompile(`(?m)^---[ \t]*`)

// objectsOf are the objects in the output of `helm template`, sorted: each with the file
// that it is from, as JSON. Lists are taken apart, documents without an object left out.
func objectsOf(t testing.TB, output string) (objects []string) {
	t.Helper()
	file := ""
	for _, text := range separator.Split(output, -1) {
		if name, ok := strings.CutPrefix(strings.TrimLeft(text, "\n"), "# Source: "); ok {
			file, _, _ = strings.Cut(name, "\n")
		}
		object, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if string(object) == "null" {
			continue
		}
		var list struct {
			Kind  string
			Items []json.RawMessage
		}
		if err := json.Unmarshal(object, &list); err == nil && strings.HasSuffix(list.Kind, "List") && list.Items != nil {
			for _, item := range list.Items {
				objects = append(objects, identified(t, file, item))
			}
			continue
		}
		objects = append(objects, identified(t, file, object))
	}
	slices.Sort(objects)
	return objects
}

// identified is an object with its file: templates/... or crds/... of its chart.
func identified(t testing.TB, file string, object []byte) string {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"templates/", "crds/"} {
		if i := strings.LastIndex("/"+file, "/"+folder); i >= 0 {
			file = file[i:]
			break
		}
	}
	return file + " " + string(text)
}

// of are the objects of an answer in the same form. Those with hooks that Helm does not
// know are left out, as it does.
func of(t testing.TB, answer helm.Answer) (objects []string) {
	t.Helper()
	for _, o := range answer.Objects {
		if o.OfCRDs || !unknownHook(t, o.JSON) {
			objects = append(objects, identified(t, o.File, o.JSON))
		}
	}
	slices.Sort(objects)
	return objects
}

func unknownHook(t testing.TB, object []byte) bool {
	t.Helper()
	var read struct {
		Metadata struct{ Annotations map[string]any }
	}
	if json.Unmarshal(object, &read) != nil {
		return false // annotations of another form
	}
	hooks, _ := read.Metadata.Annotations["helm.sh/hook"].(string)
	known := []string{"pre-install", "post-install", "pre-delete", "post-delete", "pre-upgrade", "post-upgrade", "pre-rollback", "post-rollback", "test", "test-success"}
	for hook := range strings.SplitSeq(hooks, ",") {
		if hooks != "" && !slices.Contains(known, strings.ToLower(strings.TrimSpace(hook))) {
			return true
		}
	}
	return false
}

// problemsOf are the texts of an answer's problems, each with its place.
func problemsOf(answer helm.Answer) string {
	var lines []string
	for _, p := range answer.Problems {
		text := p.Text
		if len(p.Values) > 0 && p.Values[0] != "" {
			text += ": set " + strings.Join(p.Values, " or ")
		}
		if p.File != "" {
			text = p.File + ": " + text
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// existing says whether the files that objects are said to be from are in the chart.
func existing(t testing.TB, g given, answer helm.Answer) {
	t.Helper()
	for _, o := range answer.Objects {
		inside, _, packed := strings.Cut(o.File, ".tgz/")
		if packed {
			inside += ".tgz"
		}
		if _, err := os.Stat(filepath.Join(g.chart, inside)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		} else if err != nil {
			t.Errorf("an object is said to be from %s, which is not in the chart", o.File)
		}
	}
}
