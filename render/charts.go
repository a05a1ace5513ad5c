// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/helm"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
)

// Charts render Helm charts. What they say of the same request is the same for one
// version of swell. They are safe for concurrent use.
type Charts interface {
	Render(helm.Request) helm.Answer
}

// chart is a HelmChart of a unit as it was read.
type chart struct {
	*config.HelmChart
	files                      helm.Chart
	valuesFiles                []helm.File
	release, namespace, values *kind.Values // values is nil where there are none
	texts                      func() map[string]string

	mu        sync.Mutex
	answers   map[[sha256.Size]byte]*charted // by request
	documents map[textKey]*chartText
}

// charted is the answer of one request, made ready.
type charted struct {
	helm.Answer
	objects []map[string]any
	placed  []helm.Placed
	dropped []helm.Dropped
	texts   []*chartText // by object
}

// readChart reads a HelmChart, its chart and its files of values.
func (u *unitRenderer) readChart(doc *document.Document) {
	written, problems := config.ReadHelmChart(doc)
	problems = append(problems, u.repeated(doc)...)
	if written == nil {
		u.problems = append(u.problems, problems...)
		return
	}
	c := &chart{HelmChart: written, answers: map[[sha256.Size]byte]*charted{}, documents: map[textKey]*chartText{}}
	at := func(path ...any) *yaml.Node { return document.NodeAt(doc.Node, path) }
	if c.Chart != "" {
		u.reads.note(readFile, c.Chart)
		u.charted = append(u.charted, c.Chart)
		files, err := helm.Read(u.repository.Tree, c.Chart)
		if err != nil {
			p := doc.Problem(at("spec", "chart"), document.CodeReference, "spec.chart: %s: %s%s", document.Shorten(c.Chart), document.Printable(err.Error()), u.fromRoot(doc, c.Chart))
			p.Retry = document.FileProblem("", err).Retry
			problems = append(problems, p)
		}
		c.files = files
	}
	for i, file := range c.ValuesFrom {
		if file == "" {
			continue // said
		}
		u.reads.note(readFile, file)
		content, err := u.repository.Tree.ReadFile(file)
		if err != nil {
			p := document.FileProblem(file, err)
			p.Position, p.Code, p.Message = doc.At(at("spec", "valuesFrom", i)), document.CodeReference, fmt.Sprintf("spec.valuesFrom[%d]: %s: %s%s", i, document.Shorten(file), p.Message, u.fromRoot(doc, file))
			problems = append(problems, p)
		}
		c.valuesFiles = append(c.valuesFiles, helm.File{Name: file, Content: content})
	}
	compile := func(n *yaml.Node, where string, text bool) *kind.Values {
		if n == nil {
			return nil
		}
		v, found := kind.CompileValues(doc, n, where, text, u.data)
		if len(found) > 0 {
			u.reads.note(readFolder, u.repository.Data) // a file that is missing may come
		}
		problems = append(problems, found...)
		return v
	}
	c.release, c.namespace = compile(c.Release, "spec.release", true), compile(c.Namespace, "spec.namespace", true)
	c.values = compile(c.Values, "spec.values", false)
	c.texts = sync.OnceValue(c.files.Texts)
	if u.problems = append(u.problems, problems...); len(problems) == 0 {
		u.sources = append(u.sources, source{doc: doc, chart: c})
	}
}

// fromRoot says that a path which leads nowhere from the document leads somewhere from the
// root of the tree; empty where it does not.
func (u *unitRenderer) fromRoot(doc *document.Document, file string) string {
	rooted, below := strings.CutPrefix(file, path.Dir(doc.File)+"/")
	if !below {
		return ""
	}
	if _, err := fs.Stat(u.repository.Tree, file); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	u.reads.note(readFile, rooted)
	if _, err := fs.Stat(u.repository.Tree, rooted); err != nil {
		return ""
	}
	return fmt.Sprintf("; paths begin at the folder of %s, or with / at the root: did you mean %q?", path.Base(doc.File), "/"+rooted)
}

// request is what is asked on one target; ok is false after a problem.
func (e *expansion) request(c *chart) (request helm.Request, ok bool) {
	evaluate := func(v *kind.Values) any {
		if v == nil {
			return nil
		}
		value, problems := v.In(e.templates)
		e.found.add(problems...)
		ok = ok && len(problems) == 0
		return value
	}
	ok = true
	request = helm.Request{Chart: c.files, Files: c.valuesFiles, Tenant: e.unit.Defaults.Tenant,
		Kubernetes: cmp.Or(e.cluster.Kubernetes, schema.Versions()[0])}
	release, namespace, values := evaluate(c.release), evaluate(c.namespace), evaluate(c.values)
	if !ok {
		return request, false
	}
	request.Release, _ = release.(string)
	request.Namespace, _ = namespace.(string)
	if c.namespace == nil {
		request.Namespace = e.space
	}
	if request.Namespace == "" {
		e.found.add(c.Doc.Problem(c.Doc.Node, document.CodeReference, "spec.namespace: missing, and no Defaults give one: name the namespace of the release"))
		return request, false
	}
	if !document.IsLabel(request.Namespace) {
		e.found.add(c.Doc.Problem(document.NodeAt(c.Doc.Node, []any{"spec", "namespace"}), document.CodeType, "spec.namespace: want at most 63 lower-case letters, digits and -, got %q", document.Shorten(request.Namespace)))
		return request, false
	}
	e.reads.note(readServed, e.on)
	request.APIVersions = e.hard.Served()
	text, err := json.Marshal(values)
	if err != nil { // a number that JSON does not have
		e.found.add(c.Doc.Problem(c.Values, document.CodeType, "spec.values: %s", err))
		return request, false
	}
	if values != nil {
		request.Values = text
	}
	return request, true
}

// ask renders the chart, once for equal requests.
func (e *expansion) ask(c *chart, request helm.Request) *charted {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %q %q", request.Release, request.Namespace, request.Values, request.Kubernetes, request.APIVersions)
	key := [sha256.Size]byte(sum.Sum(nil))
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.answers[key]; known != nil {
		return known
	}
	answer := &charted{}
	if e.charts == nil {
		answer.Problems = []helm.Finding{{Text: "no Helm charts can be rendered here"}}
	} else {
		answer.Answer = e.charts.Render(request)
		answer.Problems, answer.Notes = c.redacted(request.Values, answer.Problems), c.redacted(request.Values, answer.Notes)
	}
	for _, o := range answer.Objects {
		text := c.textOf(o)
		answer.texts = append(answer.texts, text)
		answer.objects = append(answer.objects, text.object(o))
	}
	answer.placed, answer.dropped = helm.Place(answer.objects, answer.Answer.Objects)
	c.answers[key] = answer
	return answer
}

// expandChart takes up the objects of a chart.
func (e *expansion) expandChart(src source) {
	c := src.chart
	request, ok := e.request(c)
	if !ok {
		return
	}
	answer := e.ask(c, request)
	for _, f := range answer.Problems {
		e.found.add(c.problem(f))
	}
	for _, f := range answer.Notes {
		e.note(c.problem(f))
	}
	if len(answer.Problems) > 0 {
		return
	}
	for _, d := range answer.dropped {
		if d.Why != "test" {
			p := c.problem(helm.Finding{File: answer.Answer.Objects[d.Index].File, Text: fmt.Sprintf("an object that Helm applies for the hooks %q is left out: swell has no such moment", d.Why)})
			e.note(p)
		}
	}
	for i := range answer.placed {
		placed := &answer.placed[i]
		if len(e.found.problems) > maxUnitProblems {
			return
		}
		from := answer.Answer.Objects[placed.Index]
		of := src
		of.rendered = &rendered{chart: c, object: from, text: answer.texts[placed.Index]}
		of.rendered.kind, _ = placed.Object["kind"].(string)
		metadata, _ := placed.Object["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		key := sealingKey{placedAs{writtenIn{of.rendered.text, from.Item}, placed.Marks()}, e.hard, request.Namespace}
		if known := e.sealedBefore(of, name, key); known != nil {
			e.takeUp(of, known)
			continue
		}
		if object, touched, ok := e.override(of, name, placed.Object); ok {
			d := &draft{repository: e.repository.Name, unit: e.unit, doc: src.doc, object: object, touched: touched, hard: e.hard, noKind: e.noKind, tenants: e.tenants, rendered: of.rendered, space: request.Namespace, anywhere: true}
			d.templateAt = of.rendered.at(nil)
			if e.steps != nil {
				d.step = e.stepOf(d, of, placed.Object, nil)
				d.step.Chart = of.rendered.blamed()
			}
			e.sealOnce(of, d, key)
		}
	}
}

// rendered is an object of a chart.
type rendered struct {
	chart  *chart
	kind   string
	object helm.Object
	text   *chartText
}

// at is the line of the template that the value at a path is from, as well as it can be
// told.
func (r *rendered) at(path []any) document.Position {
	if r.object.Item > 0 {
		path = append([]any{"items", r.object.Item - 1}, path...)
	}
	return document.Position{File: r.chart.fileOf(r.object.File), Line: r.text.templateLine(path)}
}

// fileOf is the path in the tree of a file of the chart.
func (c *chart) fileOf(name string) string { return path.Join(c.Chart, name) }

// problem is what is said of the chart or its values: at the value, where it is known, or
// else where the chart is named, via the file of the chart.
func (c *chart) problem(f helm.Finding) document.Problem {
	text := f.Text
	if len(f.Values) > 0 {
		text = c.aboutValues(f)
	}
	p := c.Doc.Problem(document.NodeAt(c.Doc.Node, []any{"spec", "chart"}), document.CodeChart, "%s %s: %s", config.HelmChartKind, c.Doc.Name, text)
	if f.File != "" {
		p.Via = []document.Position{{File: c.fileOf(f.File), Line: f.Line}}
	}
	switch at, found := c.valueAt(f.Values); {
	case f.ValuesFile != "":
		p.Via = []document.Position{p.Position}
		p.Position = document.Position{File: f.ValuesFile}
	case found:
		p.Position = at
	}
	p.Retry = f.Retry
	return p
}

// aboutValues says of a finding which values it is about.
func (c *chart) aboutValues(f helm.Finding) string {
	if path.Base(f.File) == "values.schema.json" || f.File == "" {
		if f.Values[0] == "" {
			return "values: " + f.Text
		}
		return "values." + f.Values[0] + ": " + f.Text
	}
	var named []string
	for _, name := range f.Values {
		named = append(named, "spec.values."+name)
	}
	return f.Text + ": set " + strings.Join(named, " or ")
}

// valueAt is where the first of these values is written: in the HelmChart, or else in the
// last file of values that has it.
func (c *chart) valueAt(values []string) (document.Position, bool) {
	for _, name := range values {
		steps := strings.Split(name, ".")
		if n := descend(c.Values, steps); n != nil {
			at := []any{"spec", "values"}
			for _, step := range steps {
				at = append(at, step)
			}
			return c.Doc.At(document.NodeAt(c.Doc.Node, at)), true
		}
		for _, f := range slices.Backward(c.valuesFiles) {
			if n := valueIn(f, steps); n != nil {
				return document.Position{File: f.Name, Line: n.Line, Column: n.Column}, true
			}
		}
	}
	return document.Position{}, false
}

// valueIn is a value of a file of values; nil where it has none.
func valueIn(f helm.File, steps []string) *yaml.Node {
	var root yaml.Node
	if yaml.Unmarshal(f.Content, &root) != nil || len(root.Content) == 0 {
		return nil
	}
	return descend(root.Content[0], steps)
}

// descend is the value at a path; nil where there is none.
func descend(n *yaml.Node, steps []string) *yaml.Node {
	for _, step := range steps {
		if n == nil {
			return nil
		}
		if i, err := strconv.Atoi(step); n.Kind == yaml.SequenceNode && err == nil && i >= 0 && i < len(n.Content) {
			n = n.Content[i]
			continue
		}
		n = document.Lookup(n, step)
	}
	return n
}

// takenBy are the files of a unit that its documents name, and that are therefore no documents
// themselves: the values of a HelmChart, and what a spec takes in a text from a file of JSON.
func takenBy(unit *config.Unit, docs []*document.Document) map[string]bool {
	files := map[string]bool{}
	hasJSON := slices.ContainsFunc(unit.Files, func(file string) bool { return path.Ext(file) == ".json" })
	for _, doc := range docs {
		if config.IsHelmChart(doc) {
			if c, _ := config.ReadHelmChart(doc); c != nil {
				for _, file := range c.ValuesFrom {
					files[file] = true
				}
			}
		}
		if hasJSON {
			for _, name := range document.FilesNamed(doc.Node) {
				if path.Ext(name) == ".json" {
					files[path.Join(string(unit.Path), name)] = true
				}
			}
		}
	}
	return files
}

// servedHash is the address of what charts see of the API versions of a unit's clusters,
// for the name of a read.
func (w *world) servedHash(on string) string {
	found, _ := w.places.groups.Load(on)
	clusters, _ := found.([]*config.Cluster)
	sum := sha256.New()
	for _, c := range clusters {
		fmt.Fprintf(sum, "%q %q\n", c.Name, w.hard.ofCluster(c).Served())
	}
	return hex.EncodeToString(sum.Sum(nil))
}
