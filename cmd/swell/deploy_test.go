// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rbac"
)

// manifestsValues are those that deploy/manifests is rendered with.
const manifestsValues = `
      config:
        repository: {url: https://git.example.com/platform/monorepo.git, branch: main}
        state: /var/lib/swell
        clusters: [{name: dev-1, inCluster: true}]
`

// moreValues take each branch of the chart that the others leave out.
const moreValues = `
      image: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
      imagePullSecrets: [{name: registry}]
      config:
        repository: {url: https://git.example.com/platform/monorepo.git, tokenFile: /etc/swell/git/token}
        kubeconfigDir: /etc/swell/clusters
        lease: {namespace: swell}
        health: {listen: ""}
        web: {listen: ":8090", url: https://swell.example.com, hookSecretFile: /etc/swell/forge/hook}
        previews: {forge: {type: gitea, tokenFile: /etc/swell/forge/token}}
      secrets: {git: swell-git, clusters: swell-clusters, forge: swell-forge}
      service: {annotations: {example.com/public: "false"}}
      state: {storageClassName: fast}
      serviceAccount: {annotations: {example.com/role: swell}}
      rbac: {create: false}
      podAnnotations: {example.com/a: b}
      nodeSelector: {kubernetes.io/os: linux}
      tolerations: [{key: infra, operator: Exists}]
      affinity: {nodeAffinity: {}}
`

// chartMonorepo is a monorepo whose one unit is deploy/chart.
func chartMonorepo(t *testing.T, values string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: ops}\nspec: {}\n")
	write("fleet/dev-1.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: dev-1}\nspec: {tenants: [\"*\"]}\n---\n"+
		"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n")
	write("services/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {placement: {topology: cluster}}\n")
	write("services/swell/chart.yaml", "apiVersion: swell.sh/v1\nkind: HelmChart\nmetadata: {name: swell}\nspec:\n  chart: ../../chart\n  namespace: swell\n  values:"+values)
	write("services/swell/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: swell, labels: {pod-security.kubernetes.io/enforce: restricted}}\n")
	if err := os.CopyFS(filepath.Join(dir, "chart"), os.DirFS("../../deploy/chart")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// chartObjects are the objects of the chart, less what marks them as swell's.
func chartObjects(t *testing.T, values string) (objects []*unstructured.Unstructured) {
	t.Helper()
	dir := chartMonorepo(t, values)
	var stdout, stderr bytes.Buffer
	if code := execute(t.Context(), writingTo(&stdout, &stderr), []string{"check", dir, "--cache", "none"}); code != 0 {
		t.Fatalf("swell check of the chart: %d\n%s%s", code, &stdout, &stderr)
	}
	stdout.Reset()
	if code := execute(t.Context(), writingTo(&stdout, &stderr), []string{"render", dir, "--cache", "none", "-o", "json"}); code != 0 {
		t.Fatalf("swell render of the chart: %d\n%s", code, &stderr)
	}
	for line := range strings.Lines(stdout.String()) {
		var one struct{ Object map[string]any }
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{Object: one.Object}
		o.SetLabels(withoutOurs(o.GetLabels()))
		o.SetAnnotations(withoutOurs(o.GetAnnotations()))
		objects = append(objects, o)
	}
	return objects
}

// withoutOurs are labels or annotations without swell's own; nil where none are left.
func withoutOurs(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, "swell.sh/") || key == config.LabelManagedBy })
	if len(all) == 0 {
		return nil
	}
	return all
}

// TestManifests: swell check takes the chart, in a namespace with the strictest Pod Security,
// with few values and with many; deploy/manifests is what Helm makes of it.
func TestManifests(t *testing.T) {
	t.Parallel()
	chartObjects(t, moreValues)
	b := bytes.NewBufferString("# SPDX-FileCopyrightText: The swell authors\n# SPDX-License-Identifier: Apache-2.0\n\n" +
		"# What deploy/chart renders to, made by make manifests. Set the image and the ConfigMap.\n")
	for _, o := range chartObjects(t, manifestsValues) {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(b, "---\n%s", text)
	}
	file := filepath.Join("..", "..", "deploy", "manifests", "swell.yaml")
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content, b.Bytes()) {
		t.Errorf("%s is not what the chart renders to: run make manifests", file)
	}
}

// TestChartConfiguration: what the chart makes of its values is a configuration that the
// daemon reads, and a chart without a repository says so.
func TestChartConfiguration(t *testing.T) {
	t.Parallel()
	found := false
	for _, o := range chartObjects(t, manifestsValues) {
		if o.GetKind() != "ConfigMap" {
			continue
		}
		text, _, err := unstructured.NestedString(o.Object, "data", "daemon.yaml")
		if err != nil {
			t.Fatal(err)
		}
		d, problems := config.ReadDaemon("/etc/swell/config/daemon.yaml", []byte(text))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		found = d.State == "/var/lib/swell" && d.Health.Listen == ":8080" && d.Clusters["dev-1"].InCluster
	}
	if !found {
		t.Error("not the configuration of the values")
	}
	var stdout, stderr bytes.Buffer
	execute(t.Context(), writingTo(&stdout, &stderr), []string{"check", chartMonorepo(t, " {}\n"), "--cache", "none"})
	if !strings.Contains(stdout.String()+stderr.String(), "config.repository.url: missing") {
		t.Errorf("a chart without a repository:\n%s%s", &stdout, &stderr)
	}
}

// TestChartWeb: where forges and people are to reach the daemon, the pod has a port and a
// Service leads to it; an address that nobody reaches is refused.
func TestChartWeb(t *testing.T) {
	t.Parallel()
	service, port := false, false
	for _, o := range chartObjects(t, moreValues) {
		switch o.GetKind() {
		case "Service":
			service = true
		case "Deployment":
			containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			ports, _, _ := unstructured.NestedSlice(containers[0].(map[string]any), "ports")
			port = fmt.Sprint(ports) == "[map[containerPort:8090 name:web]]"
		}
	}
	if !service || !port {
		t.Errorf("a Service: %t, the port: %t", service, port)
	}
	var stdout, stderr bytes.Buffer
	dir := chartMonorepo(t, strings.Replace(moreValues, `":8090"`, `"127.0.0.1:8090"`, 1))
	if code := execute(t.Context(), writingTo(&stdout, &stderr), []string{"check", dir, "--cache", "none"}); code == 0 || !strings.Contains(stdout.String()+stderr.String(), "nobody outside the pod reaches this address") {
		t.Errorf("an address of the pod alone: %d\n%s%s", code, &stdout, &stderr)
	}
}

// TestChartRights: the chart's rules are those of [rbac.Reading]: it lets nothing be written but Leases, and
// no Secrets be read. It once let any kind be applied, Roles among them.
func TestChartRights(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../deploy/chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		RBAC struct{ Rules, LeaseRules []rbacv1.PolicyRule } `json:"rbac"`
	}
	if err := yaml.Unmarshal(content, &values); err != nil {
		t.Fatal(err)
	}
	roles := rbac.Reading(rbac.Options{Account: rbac.Account{Namespace: "swell", Name: "swell"}, LeaseNamespace: config.DefaultLeaseNamespace})
	if got, want := values.RBAC.Rules, roles[0].Object().(*rbacv1.ClusterRole).Rules; !reflect.DeepEqual(got, want) {
		t.Errorf("rbac.rules %v, want %v", got, want)
	}
	if got, want := values.RBAC.LeaseRules, roles[1].Object().(*rbacv1.Role).Rules; !reflect.DeepEqual(got, want) {
		t.Errorf("rbac.leaseRules %v, want %v", got, want)
	}
	for _, rule := range values.RBAC.Rules {
		asks := slices.Equal(rule.Resources, []string{"selfsubjectaccessreviews"})
		for _, verb := range rule.Verbs {
			if !slices.Contains([]string{"get", "list", "watch"}, verb) && !asks {
				t.Errorf("the verb %s: %v", verb, rule)
			}
		}
		for _, resource := range rule.Resources {
			if resource == "*" || resource == "secrets" || len(rule.APIGroups) != 1 || rule.APIGroups[0] == "*" {
				t.Errorf("Secrets: %v", rule)
			}
		}
	}
}

// TestManifestsOnAServer: a real API server takes the manifests.
func TestManifestsOnAServer(t *testing.T) {
	t.Parallel()
	cfg, err := shared.Clusters(t).Config("dev-3")
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	known, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("../../deploy/manifests/swell.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for text := range strings.SplitSeq(string(content), "\n---\n") {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		if o.Object == nil {
			continue // the comment
		}
		resource, err := resourceOf(known, o.GetKind())
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resource(resource).Namespace(o.GetNamespace()).Patch(t.Context(), o.GetName(), types.ApplyPatchType, body,
			metav1.PatchOptions{FieldManager: "kubectl", FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		n++
	}
	if n != 9 {
		t.Errorf("%d objects, want 9", n)
	}
}

// TestSystemdUnit: systemd understands the unit, every line of it.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	unit, err := os.ReadFile("../../deploy/systemd/swell.service")
	if err != nil {
		t.Fatal(err)
	}
	verify := func(text string) (string, error) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "swell.service")
		text = strings.Replace(text, "/usr/bin/swell", os.Args[0], 1) // it looks for the program
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput()
		return string(out), err
	}
	if out, err := verify(string(unit)); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	if out, _ := verify(strings.Replace(string(unit), "NoNewPrivileges=", "NoNewPrivilege=", 1)); !strings.Contains(out, "NoNewPrivilege") {
		t.Errorf("a misspelt line is not found: %s", out)
	}
}
