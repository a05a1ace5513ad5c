// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	strict "sigs.k8s.io/json"

	"github.com/swell-sh/swell/config/document"
)

// Facts are what a cluster had when somebody asked it, as far as checks need it. They
// stand in a ClusterFacts document of the folder of facts. No Secret is among them.
type Facts struct {
	Position document.Position
	Cluster  string
	// Pulled is when the cluster was asked.
	Pulled time.Time
	// Kubernetes is the version of the API server, like v1.36.3.
	Kubernetes string
	Namespaces []NamespaceFacts
	// Definitions are CustomResourceDefinitions, less what checks do not need.
	Definitions []map[string]any
	// Policies are admission policies and their bindings, Params the parameters of
	// those.
	Policies, Params []map[string]any
	// DefinitionsHash and PoliciesHash change when those do.
	DefinitionsHash, PoliciesHash string

	hash string // of the file
}

// NamespaceFacts is a namespace of a cluster.
type NamespaceFacts struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	LimitRanges []SpecFacts       `json:"limitRanges,omitempty"`
	Quotas      []SpecFacts       `json:"quotas,omitempty"`
}

// SpecFacts is an object of a namespace.
type SpecFacts struct {
	Name string         `json:"name"`
	Spec map[string]any `json:"spec,omitempty"`
}

// factsSpec is the spec of a ClusterFacts document.
type factsSpec struct {
	Pulled      string           `json:"pulled"`
	Kubernetes  string           `json:"kubernetes"`
	Namespaces  []NamespaceFacts `json:"namespaces,omitempty"`
	Definitions []map[string]any `json:"definitions,omitempty"`
	Policies    []map[string]any `json:"policies,omitempty"`
	Params      []map[string]any `json:"params,omitempty"`
}

// Minor is the minor version of Kubernetes, like 1.36; empty where it is not known.
func (f *Facts) Minor() string {
	parts := strings.SplitN(strings.TrimPrefix(f.Kubernetes, "v"), ".", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// seal computes the hashes.
func (f *Facts) seal() {
	f.DefinitionsHash, f.PoliciesHash = hashOf(f.Definitions), hashOf(f.Policies, f.Params)
}

// hashOf is empty for nothing.
func hashOf(lists ...[]map[string]any) string {
	if !slices.ContainsFunc(lists, func(l []map[string]any) bool { return len(l) > 0 }) {
		return ""
	}
	text, err := json.Marshal(lists)
	if err != nil {
		panic(err) // it was read from JSON or YAML
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Write is the content of the facts' file: JSON, which is YAML too and read many times
// as fast, with a line for each namespace, definition and policy.
func (f *Facts) Write() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"apiVersion\": %q, \"kind\": \"ClusterFacts\", \"metadata\": {\"name\": %q}, \"spec\": {\n", APIVersion, f.Cluster)
	fmt.Fprintf(&b, "\"pulled\": %q,\n\"kubernetes\": %q", f.Pulled.UTC().Format(time.RFC3339), f.Kubernetes)
	list := func(name string, n int, item func(i int) any) error {
		for i := range n {
			text, err := json.Marshal(item(i))
			if err != nil {
				return fmt.Errorf("facts of cluster %s: %s[%d]: %w", f.Cluster, name, i, err)
			}
			if i == 0 {
				fmt.Fprintf(&b, ",\n%q: [", name)
			} else {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "\n  %s", text)
		}
		if n > 0 {
			b.WriteString("\n]")
		}
		return nil
	}
	err := cmp.Or(
		list("namespaces", len(f.Namespaces), func(i int) any { return f.Namespaces[i] }),
		list("definitions", len(f.Definitions), func(i int) any { return f.Definitions[i] }),
		list("policies", len(f.Policies), func(i int) any { return f.Policies[i] }),
		list("params", len(f.Params), func(i int) any { return f.Params[i] }))
	b.WriteString("\n}}\n")
	return b.Bytes(), err
}

// ReadFacts reads a file of facts.
func ReadFacts(file string, content []byte) (*Facts, document.Problems) {
	if bytes.HasPrefix(content, []byte("{")) {
		return readWrittenFacts(file, content)
	}
	docs, problems := document.ReadDocuments(file, content)
	if len(problems) > 0 {
		return nil, problems
	}
	if p := WantOne(file, docs, "ClusterFacts", ""); p != nil {
		return nil, document.Problems{*p}
	}
	var spec factsSpec
	in := readOwn(docs[0], &spec)
	in.name("")
	if spec.Pulled != "" {
		if _, err := time.Parse(time.RFC3339, spec.Pulled); err != nil {
			in.at("spec", "pulled").problem(document.CodeType, "want a time like 2026-01-31T12:00:00Z, got %q", document.Shorten(spec.Pulled))
		}
	}
	if problems := in.problems(); len(problems) > 0 {
		return nil, problems
	}
	return spec.facts(docs[0].Position(), docs[0].Name), nil
}

// readWrittenFacts reads what [Facts.Write] has written.
func readWrittenFacts(file string, content []byte) (*Facts, document.Problems) {
	var doc struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec factsSpec `json:"spec"`
	}
	at := document.Position{File: file, Line: 1, Column: 1}
	wrong, err := strict.UnmarshalStrict(content, &doc)
	if err == nil && len(wrong) > 0 {
		err = wrong[0]
	}
	if err == nil && (doc.APIVersion != APIVersion || doc.Kind != "ClusterFacts" || !document.IsLabel(doc.Metadata.Name)) {
		err = fmt.Errorf("want ClusterFacts (%s) with the name of a cluster", APIVersion)
	}
	if err == nil && doc.Spec.Pulled != "" {
		_, err = time.Parse(time.RFC3339, doc.Spec.Pulled)
	}
	if err != nil {
		return nil, document.Problems{{Position: at, Code: document.CodeDocument, Message: document.Printable(fmt.Sprintf("no facts as swell facts pull writes them: %s", err))}}
	}
	return doc.Spec.facts(at, doc.Metadata.Name), nil
}

func (s *factsSpec) facts(at document.Position, cluster string) *Facts {
	f := &Facts{Position: at, Cluster: cluster, Kubernetes: s.Kubernetes, Namespaces: s.Namespaces,
		Definitions: integers(s.Definitions), Policies: integers(s.Policies), Params: integers(s.Params)}
	f.Pulled, _ = time.Parse(time.RFC3339, s.Pulled) // it was checked
	for i := range f.Namespaces {
		n := &f.Namespaces[i]
		for _, list := range [][]SpecFacts{n.LimitRanges, n.Quotas} {
			for j := range list {
				list[j].Spec, _ = integer(list[j].Spec).(map[string]any)
			}
		}
	}
	f.seal()
	return f
}

// integers gives whole numbers the type that checks want.
func integers(objects []map[string]any) []map[string]any {
	for _, object := range objects {
		integer(object)
	}
	return objects
}

func integer(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			v[key] = integer(below)
		}
	case []any:
		for i, below := range v {
			v[i] = integer(below)
		}
	case float64:
		const exact = 1 << 53
		if v == float64(int64(v)) && v < exact && v > -exact {
			return int64(v)
		}
	}
	return value
}

// loadFacts reads the folder of facts. Files that are as they were are not read again.
func (l *loader) loadFacts(folder string, previous map[string]*Facts) {
	if l.repository.FactsHash == "" {
		return
	}
	files := l.yamlFiles(folder)
	read := make([]*Facts, len(files))
	problems := make([]document.Problems, len(files))
	var group errgroup.Group
	for i, file := range files {
		group.Go(func() error {
			read[i], problems[i] = l.readFacts(file, previous)
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
	for i, f := range read {
		l.problem(problems[i]...)
		if f == nil {
			continue
		}
		if first := l.repository.Facts[f.Cluster]; first != nil {
			l.problem(document.Problem{Position: f.Position, Code: document.CodeDuplicate, Message: fmt.Sprintf("cluster %s has facts already, at %s", f.Cluster, first.Position)})
			continue
		}
		if !slices.ContainsFunc(l.repository.Clusters, func(c *Cluster) bool { return c.Name == f.Cluster }) {
			l.problem(document.Problem{Position: f.Position, Code: document.CodeReference, Message: fmt.Sprintf("facts of cluster %q, which the fleet does not have: remove the file", f.Cluster)})
			continue
		}
		l.repository.Facts[f.Cluster] = f
	}
}

func (l *loader) readFacts(file string, previous map[string]*Facts) (*Facts, document.Problems) {
	hash, err := l.tree.Hash(file)
	if err != nil {
		return nil, document.Problems{document.FileProblem(file, err)}
	}
	for _, known := range previous {
		if known.hash == hash && known.Position.File == file {
			return known, nil
		}
	}
	content, err := l.tree.ReadFile(file)
	if err != nil {
		return nil, document.Problems{document.FileProblem(file, err)}
	}
	f, problems := ReadFacts(file, content)
	if f != nil {
		f.hash = hash
	}
	return f, problems
}

// DefaultStaleFacts is after how long facts are said to be stale.
const DefaultStaleFacts = 7 * 24 * time.Hour

// StaleFacts are notes on facts that are older than the Repository says, at that time.
func (r *Repository) StaleFacts(now time.Time) (notes document.Problems) {
	for _, f := range r.Facts {
		age := now.Sub(f.Pulled)
		switch {
		case f.Pulled.IsZero():
			notes = append(notes, document.Problem{Position: f.Position, Code: document.CodeFleet,
				Message: fmt.Sprintf("facts of cluster %[1]s do not say in spec.pulled how old they are: swell facts pull %[1]s", f.Cluster)})
		case age > r.Checks.StaleFacts:
			notes = append(notes, document.Problem{Position: f.Position, Code: document.CodeFleet,
				Message: fmt.Sprintf("facts of cluster %s are %s old: swell facts pull %s", f.Cluster, days(age), f.Cluster)})
		}
	}
	return notes.Sorted()
}

func days(age time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case age < day:
		return age.Round(time.Hour).String()
	case age < 2*day:
		return "1 day"
	}
	return fmt.Sprintf("%d days", age/day)
}
