// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"maps"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
)

const goneMask = "apiVersion: swell.sh/v1\nkind: Mask\nmetadata: {name: m}\nspec: {reason: r, where: {units: [services/gone]}}\n"

// withMask is the example with a mask of a unit that there is not.
func withMask(t *testing.T, text string) fstest.MapFS {
	files := maps.Clone(exampleFiles(t, "swell.yaml", "fleet", "data", "kinds", "services"))
	files["fleet/mask.yaml"] = &fstest.MapFile{Data: []byte(text)}
	return files
}

// TestWhoNamesNothing: what counts as the same document, and what it is compared with.
func TestWhoNamesNothing(t *testing.T) {
	unmasked := exampleFiles(t, "swell.yaml", "fleet", "data", "kinds", "services")
	masked := withMask(t, goneMask)
	for name, c := range map[string]struct {
		before fs.FS
		text   string
		held   bool
	}{
		"no commit before":          {nil, goneMask, true},
		"a new document":            {unmasked, goneMask, true},
		"the same":                  {masked, goneMask, false},
		"a comment":                 {masked, "# calm\n" + goneMask, false},
		"another order of keys":     {masked, "kind: Mask\napiVersion: swell.sh/v1\nspec: {where: {units: [services/gone]}, reason: r}\nmetadata: {name: m}\n", false},
		"another document before":   {masked, strings.ReplaceAll(goneMask, "name: m}", "name: other}") + "---\n" + goneMask, true},
		"another reason":            {masked, strings.ReplaceAll(goneMask, "reason: r", "reason: s"), true},
		"another unit":              {masked, strings.ReplaceAll(goneMask, "services/gone", "services/gnoe"), true},
		"a disk that fails":         {failing{masked, "fleet/mask.yaml"}, goneMask, false},
		"without it before, and it": {unmasked, strings.ReplaceAll(goneMask, "services/gone", "services/shop/"), false},
	} {
		compiler := Compiler{}
		if c.before != nil {
			compiler.Before = config.Files(c.before)
		}
		s := compiler.Snapshot("", config.Files(withMask(t, c.text)))
		if s.Held != c.held {
			t.Errorf("%s: held %t, want %t: %v, notes %v", name, s.Held, c.held, s.Problems, s.Notes)
		}
	}
}

// failing is a tree in which a file cannot be read.
type failing struct {
	fs.FS
	file string
}

func (f failing) Open(name string) (fs.File, error) {
	if name == f.file {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EIO}
	}
	return f.FS.Open(name)
}

// TestAcceptedIsNeverHeldByNames: the base of a change, also where the compiler rendered another
// change between the two.
func TestAcceptedIsNeverHeldByNames(t *testing.T) {
	unmasked, masked := exampleFiles(t, "swell.yaml", "fleet", "data", "kinds", "services"), withMask(t, goneMask)
	var c Compiler
	if base := c.Accepted("a", config.Files(masked)); base.Held || len(base.Idle) != 1 {
		t.Fatalf("the base: held %t, idle %v, %v", base.Held, base.Idle, base.Problems)
	}
	c.Base = config.Load(config.Files(masked), nil)
	if head := c.Snapshot("b", config.Files(unmasked)); head.Held {
		t.Fatalf("without the mask: %v", head.Problems)
	}
	c.Base = nil
	if base := c.Accepted("c", config.Files(masked)); base.Held {
		t.Errorf("the next base: %v", base.Problems)
	}
}

// TestIdlePolicies: who takes away what a policy names holds nobody; who edits the policy then has a
// problem. What a cluster has by its facts is there.
func TestIdlePolicies(t *testing.T) {
	files := judgedFiles()
	const constraints = `{resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}`
	doc := func(kind, name, spec string) string {
		return "---\napiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
	}
	policy := doc("ValidatingAdmissionPolicy", "replicas", "{matchConstraints: "+constraints+`, validations: [{expression: "true"}]}`)
	other := doc("ValidatingAdmissionPolicyBinding", "other", "{policyName: of-cluster, validationActions: [Deny]}")
	binding := doc("ValidatingAdmissionPolicyBinding", "replicas", "{policyName: replicas, validationActions: [Deny]}")
	write := func(texts ...string) {
		files["policies/a.yaml"] = &fstest.MapFile{Data: []byte(strings.Join(texts, ""))}
	}
	files["facts/sas-1.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: ClusterFacts\nmetadata: {name: sas-1}\n" +
		"spec:\n  kubernetes: v1.36.3\n  policies:\n" +
		"  - {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: of-cluster}, " +
		"spec: {matchConstraints: " + constraints + `, validations: [{expression: "true"}]}}` + "\n")}
	c := &Compiler{}
	write(policy, other, binding)
	if s := snapshot(c, files); len(s.Problems)+len(s.Idle) > 0 {
		t.Fatalf("at first: %v %v", s.Problems, s.Idle)
	}
	write(policy, other)
	const want = `policies/a.yaml:4:18: metadata.name: "replicas": no ValidatingAdmissionPolicyBinding puts it in force`
	if s := snapshot(c, files); s.Held || !strings.HasPrefix(s.Idle.String(), want) || len(s.Idle) != 1 {
		t.Errorf("without its binding: held %t, %v, idle %v", s.Held, s.Problems, s.Idle)
	}
	write(strings.Replace(policy, `"true"`, `"false"`, 1), other)
	if s := snapshot(c, files); !s.Held || !strings.HasPrefix(s.Problems.String(), want) {
		t.Errorf("edited: held %t, %v", s.Held, s.Problems)
	}
	delete(files, "facts/sas-1.yaml")
	write(policy, other, binding)
	const unknown = `spec.policyName: "of-cluster": no such`
	if s := snapshot(c, files); s.Held || len(s.Problems) > 0 || !strings.Contains(s.Idle.String(), unknown) {
		t.Errorf("without facts: held %t, %v, idle %v", s.Held, s.Problems, s.Idle)
	}
}
