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

	"github.com/google/go-cmp/cmp"

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

// TestIdleDenials: a Tenant's denial of a kind that there is not let all through. Its units stay as they
// are in the commit that writes it; later it is a note, as other names that match nothing are.
func TestIdleDenials(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/space")
	write := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	tenants := func(shop string) {
		text := ""
		for _, doc := range []string{"shop}\nspec: {" + shop + "}", "pay}", "idle}\nspec: {kinds: [\"*\", \"!Role\"], optional: true}"} {
			text += "---\napiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: " + doc + "\n"
		}
		write("fleet/tenants.yaml", text)
	}
	for _, unit := range []string{"shop/a", "shop/b", "pay/a"} {
		tenant, _, _ := strings.Cut(unit, "/")
		write("services/"+tenant+"/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\n"+
			"spec: {tenant: "+tenant+", placement: {topology: cluster}}\n")
		name := strings.ReplaceAll(unit, "/", "-")
		write("services/"+unit+"/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: shop}\n")
	}
	settings := string(files["swell.yaml"].Data)
	tenants("")
	c := &Compiler{}
	const denial = `fleet/tenants.yaml:5:21: spec.kinds[1]: "!": no cluster has such a kind, so this says nothing`
	for _, step := range []struct {
		name, shop, settings string
		problems, idle, held string
	}{
		{"at first", "", settings, "", "", ""},
		{"mistyped", `kinds: ["*", "!rolebindings"]`, settings,
			strings.Replace(denial, "!", "rolebindings", 1) + ", did you mean RoleBinding.rbac.authorization.k8s.io? (holds 2 units)", "",
			"services/shop/a services/shop/b"},
		{"as it stood", `kinds: ["*", "!rolebindings"]`, settings, "", strings.Replace(denial, "!", "rolebindings", 1), ""},
		{"optional", `optional: true, kinds: ["*", "!rolebindings"], clusters: [sas-1, none]`, settings, "", "", ""},
		{"unknown", `kinds: ["*", "!Cat.example.org"]`, settings,
			strings.Replace(denial, "!", "Cat.example.org", 1) + " (holds 2 units)", "",
			"services/shop/a services/shop/b"},
		{"unknown, which passes", `kinds: ["*", "!Cat.example.org"] `, settings + "  checks: {unknownKinds: pass}\n", "", "", ""},
		{"mistyped, where unknown ones pass", `kinds: ["*", "!Roles"]`, settings + "  checks: {unknownKinds: pass}\n",
			strings.Replace(denial, "!", "Roles", 1) + ", did you mean Role.rbac.authorization.k8s.io? (holds 2 units)", "",
			"services/shop/a services/shop/b"},
	} {
		tenants(step.shop)
		write("swell.yaml", step.settings)
		s := snapshot(c, files)
		var held []string
		for _, unit := range s.Units.Sorted() {
			if unit.Placements[0].Digest == "" {
				held = append(held, string(unit.Path))
			}
		}
		got := []string{strings.TrimSpace(s.Problems.String()), strings.TrimSpace(s.Idle.String()), strings.Join(held, " ")}
		if diff := cmp.Diff([]string{step.problems, step.idle, step.held}, got); diff != "" || s.Held {
			t.Errorf("%s: held %t, -want +got:\n%s", step.name, s.Held, diff)
		}
	}
}

// TestWhatMatchesNothing: each field of documents.proto that says what a name in it has to match is
// held to it. The cases are the documents in which the name matches nothing, and where that is told.
func TestWhatMatchesNothing(t *testing.T) {
	doc := func(kind, spec string) string {
		return "apiVersion: swell.sh/v1\nkind: " + kind + "\nmetadata: {name: x}\nspec: " + spec + "\n"
	}
	wave := func(spec string) string { return doc("Rollout", "{waves: [{name: a, "+spec+"}, {name: rest}]}") }
	from := func(spec string) string {
		return doc("Checker", "{program: sh, from: [{"+spec+"}]}")
	}
	cases := map[string]struct{ doc, want string }{
		"ClusterSpec.tenants": {doc("Cluster", "{tenants: [none]}") + "---\n" + doc("Tenant", "{clusterKinds: [Namespace]}"),
			"spec.tenants[0]: "},
		"Wave.match":   {wave("match: {labels: {region: none}}"), "spec.waves[0].match: "},
		"Wave.targets": {wave("targets: [none]"), "spec.waves[0].targets[0]: "},
		"JobGate.name": {strings.Replace(wave("targets: [sas-1], gates: [{job: {name: none}}]"), "name: x", "name: slow", 1),
			"spec.waves[0].gates[0].job.name: "},
		"AfterGate.unit":          {wave("gates: [{after: {unit: services/none}}]"), "spec.waves[0].gates[0].after.unit: "},
		"Where.match":             {doc("Mask", "{where: {match: {labels: {region: none}}}}"), "spec.where.match: "},
		"Where.targets":           {doc("Mask", "{where: {targets: [none]}}"), "spec.where.targets[0]: "},
		"Where.units":             {doc("Mask", "{where: {units: [services/none]}}"), "spec.where.units[0]: "},
		"Where.tenants":           {doc("Mask", "{where: {tenants: [none]}}"), "spec.where.tenants[0]: "},
		"Where.waves":             {doc("Mask", "{where: {waves: [none]}}"), "spec.where.waves[0]: "},
		"TenantSpec.folders":      {doc("Tenant", "{folders: [none]}"), "spec.folders[0]: "},
		"TenantSpec.clusters":     {doc("Tenant", "{clusters: [none]}"), "spec.clusters[0]: "},
		"TenantSpec.kinds":        {doc("Tenant", `{kinds: ["!None"]}`), "spec.kinds[0]: "},
		"TenantSpec.clusterKinds": {doc("Tenant", "{clusterKinds: [None]}"), "spec.clusterKinds[0]: "},
		"HealthRuleSpec.match":    {doc("HealthRule", `{match: {kind: None}, healthy: "true"}`), "spec.match.kind: "},
		"CheckerSpec.schema": {doc("Checker", "{program: jsonschema, schema: none.json, from: [{kind: ConfigMap, key: a}]}"),
			"spec.schema: "},
		"CheckedTexts.group": {from("kind: ConfigMap, group: none, key: a"), "spec.from[0].group: "},
		"CheckedTexts.kind":  {from("kind: None, path: spec"), "spec.from[0].kind: "},
		"CheckedTexts.name":  {from("kind: ConfigMap, name: none, key: a"), "spec.from[0].name: "},
		"CheckedTexts.match": {from("kind: ConfigMap, match: {labels: {a: none}}, key: a"), "spec.from[0].match: "},
		"CheckedTexts.key":   {from("kind: ConfigMap, key: none"), "spec.from[0].key: "},
		"CheckedTexts.path":  {from("kind: Service, path: spec.none"), "spec.from[0].path: "},
	}
	files := exampleFiles(t, "swell.yaml", "fleet/sas-1.yaml", "fleet/rollout.yaml")
	defaults := doc("Defaults", "{tenant: a, rollout: slow, placement: {topology: cluster}}")
	files["services/swell.yaml"] = &fstest.MapFile{Data: []byte(defaults)}
	files["services/a/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: a}\n")}
	fields := map[string]bool{}
	for _, field := range config.ProtectiveFields() {
		matches, name := config.MatchesOf(field), strings.TrimPrefix(string(field.FullName()), "swell.v1.")
		if matches == "" || matches == config.MatchesNothing {
			continue
		}
		fields[name] = true
		c, known := cases[name]
		if !known {
			t.Errorf("%s: want a case in which it does not match %s", name, matches)
			continue
		}
		files["fleet/x.yaml"] = &fstest.MapFile{Data: []byte(c.doc)}
		slow := strings.Replace(doc("Rollout", "{waves: [{name: a}]}"), "name: x", "name: slow", 1)
		files["fleet/slow.yaml"] = &fstest.MapFile{Data: []byte(slow)}
		if strings.Contains(c.doc, "name: slow") {
			delete(files, "fleet/slow.yaml")
		}
		s := snapshot(&Compiler{}, files)
		reported := false
		for _, p := range append(s.Problems, s.IdleRules("")...) {
			reported = reported || p.File == "fleet/x.yaml" && strings.HasPrefix(p.Message, c.want)
		}
		if !reported {
			t.Errorf("%s: want %q in fleet/x.yaml, got %v", name, c.want, s.Problems)
		}
	}
	for name := range cases {
		if !fields[name] {
			t.Errorf("%s: no such field of a document that protects", name)
		}
	}
}
