// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
)

// policySpaces are the namespaces of TestPolicies. Each has a twin without policies,
// where the pods of its controllers are tried.
var policySpaces = map[string]map[string]string{
	"pol-free":       {"swell-policies": "yes"},
	"pol-dmz":        {"swell-policies": "yes", "zone": "dmz"},
	"pol-baseline":   {"swell-policies": "yes", "zone": "inside", "pod-security.kubernetes.io/enforce": "baseline"},
	"pol-restricted": {"swell-policies": "yes", "pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "v1.30"},
	"pol-warn":       {"zone": "dmz", "pod-security.kubernetes.io/warn": "restricted"},
	"pol-limits":     {},
	"pol-quota":      {},
	"pol-params":     {},
}

// policyLimits hold in pol-limits, in pol-quota and, with SUFFIX, in their twins.
const policyLimits = `
apiVersion: v1
kind: LimitRange
metadata: {name: sizes, namespace: pol-limitsSUFFIX}
spec:
  limits:
  - {type: Container, max: {memory: 1Gi}, default: {memory: 64Mi, cpu: 100m}, min: {cpu: 50m}}
  - {type: Pod, max: {memory: 1500Mi}, min: {cpu: 150m}}
  - {type: PersistentVolumeClaim, max: {storage: 10Gi}, min: {storage: 2Gi}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: little, namespace: pol-limitsSUFFIX}
spec: {hard: {requests.storage: 6Gi, count/secrets: "0", services.nodeports: "9", limits.memory: 100Gi}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: some, namespace: pol-quotaSUFFIX}
spec: {hard: {requests.memory: 100Gi}}
`

// TestPolicies asks a real API server for a dry run of random objects that are valid by
// their schemas, in namespaces with admission policies and with levels of Pod Security,
// and holds the offline check with the same policies against it. SWELL_POLICIES=20000
// tries as many objects; SWELL_SEED repeats a run.
func TestPolicies(t *testing.T) {
	n := 700
	if s := os.Getenv("SWELL_POLICIES"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(4711)
	if s := os.Getenv("SWELL_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	judge := newPolicyJudge(t)
	random := rand.New(rand.NewPCG(seed, 1))
	objects := make([]map[string]any, n)
	for i := range objects {
		objects[i] = randomObject(random, i)
	}
	ours := judgedOffline(t, objects, policyFiles(t))
	judge.wait(t, objects, ours)
	for i, v := range judgedOffline(t, objects, factFiles(t)) {
		if diff := cmpDiff(ours[i], v); diff != "" {
			t.Errorf("object %d, by the files and by the facts of the cluster: %s\n%s", i, diff, jsonOf(t, objects[i]))
		}
	}
	theirs := make([]verdict, n)
	var g errgroup.Group
	g.SetLimit(8)
	for i := range objects {
		g.Go(func() error { theirs[i] = judge.ask(objects[i]); return nil })
	}
	_ = g.Wait()
	counts := map[string]int{}
	for i := range objects {
		mine, real := ours[i], theirs[i]
		switch {
		case real.other != "":
			t.Errorf("object %d is not valid: %s\n%s", i, real.other, jsonOf(t, objects[i]))
		case mine.other != "":
			t.Errorf("object %d is not valid offline: %s\n%s", i, mine.other, jsonOf(t, objects[i]))
		case len(mine.refused) == 0 && len(real.refused) == 0:
			counts["taken by both"]++
		case len(mine.refused) == 0:
			t.Errorf("object %d is taken offline, the API server says %v\n%s", i, real.refused, jsonOf(t, objects[i]))
		case len(real.refused) == 0:
			t.Errorf("object %d is taken by the API server, offline %v\n%s", i, mine.refused, jsonOf(t, objects[i]))
		default:
			counts["refused by both"]++
			for by, why := range real.refused { // the API server tells the first one
				counts["refused by "+by]++
				if !strings.Contains(mine.refused[by], why) {
					t.Errorf("object %d: %s: the API server says %q, offline %q\n%s", i, by, why, mine.refused, jsonOf(t, objects[i]))
				}
			}
		}
		if got, want := slices.Sorted(maps.Keys(mine.warned)), slices.Sorted(maps.Keys(real.warned)); len(mine.refused) == 0 && !slices.Equal(got, want) {
			t.Errorf("object %d: warnings of the API server %q, offline %q\n%s", i, want, got, jsonOf(t, objects[i]))
		}
		for by := range mine.warned {
			counts["warned by "+by]++
		}
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%6d %s", counts[what], what)
	}
	if counts["refused by both"] < n/5 || counts["taken by both"] < n/5 {
		t.Errorf("too few of one sort to show anything")
	}
}

// verdict is who refuses an object or warns of it, and why. other is what has nothing
// to do with policies.
type verdict struct {
	refused, warned map[string]string
	other           string
}

func cmpDiff(a, b verdict) string {
	if maps.Equal(a.refused, b.refused) && maps.Equal(a.warned, b.warned) && a.other == b.other {
		return ""
	}
	return fmt.Sprintf("%v, %v", a, b)
}

// policyFiles have the policies and the namespaces in the monorepo.
func policyFiles(t *testing.T) fstest.MapFS {
	t.Helper()
	policies, err := os.ReadFile("testdata/policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spaces := ""
	for name, labels := range policySpaces {
		spaces += fmt.Sprintf("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: %s}\n", name, jsonOf(t, anyLabels(labels)))
	}
	spaces += "---" + strings.ReplaceAll(policyLimits, "SUFFIX", "")
	return fstest.MapFS{"policies/policies.yaml": {Data: policies}, "services/spaces/spaces.yaml": {Data: []byte(spaces)}}
}

// factFiles have what the cluster says of itself.
func factFiles(t *testing.T) fstest.MapFS {
	t.Helper()
	c, _ := connect(t, Options{})
	facts, err := c.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	facts.Cluster = "dev-1"
	content, err := facts.Write()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"managedFields", "description", "last-applied"} {
		if strings.Contains(string(content), `"`+secret) {
			t.Errorf("the facts have %s", secret)
		}
	}
	if facts.Kubernetes != "v1.36.3" || len(facts.Policies) < 20 || len(facts.Params) != 3 {
		t.Errorf("%s, %d policies and bindings, %d parameters", facts.Kubernetes, len(facts.Policies), len(facts.Params))
	}
	return fstest.MapFS{"facts/dev-1.yaml": {Data: content}}
}

// judgedOffline renders a monorepo with a unit for each object, and what judges them.
func judgedOffline(t *testing.T, objects []map[string]any, files fstest.MapFS) []verdict {
	t.Helper()
	for name, content := range map[string]string{
		"swell.yaml":          "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\nspec: {checks: {plainSecrets: pass}}\n",
		"fleet/fleet.yaml":    "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: dev-1}\nspec: {kubernetes: \"1.36\"}\n---\napiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n",
		"services/swell.yaml": "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {placement: {topology: cluster}}\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	for i, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		files[fmt.Sprintf("services/u%d/object.yaml", i)] = &fstest.MapFile{Data: text}
	}
	var c render.Compiler
	s := c.Snapshot("", config.Files(files))
	if s.Held {
		t.Fatal(s.Problems)
	}
	all := make([]verdict, len(objects))
	for i := range objects {
		unit := s.Units.Get(config.UnitPath(fmt.Sprintf("services/u%d", i)))
		v := verdict{refused: map[string]string{}, warned: map[string]string{}}
		for _, p := range unit.Problems {
			if p.Code != document.CodePolicy {
				v.other = p.String()
				continue
			}
			_, text, _ := strings.Cut(p.Message, "refused by ")
			by, why := byWhom(text)
			v.refused[by] += why + "\n"
		}
		for _, p := range unit.Notes {
			text := p.Message[max(strings.Index(p.Message, "policy \""), strings.Index(p.Message, "PodSecurity"), 0):]
			by, why := byWhom(text)
			v.warned[by] += why
		}
		all[i] = v
	}
	return all
}

// byWhom splits a finding.
func byWhom(text string) (by, why string) {
	for _, by := range []string{"LimitRange", "ResourceQuota"} {
		if strings.HasPrefix(text, by) {
			return by, ""
		}
	}
	if strings.HasPrefix(text, "PodSecurity") {
		_, why, _ = strings.Cut(text, ": ")
		_, why, _ = strings.Cut(why, ": ")
		return "PodSecurity", why
	}
	parts := strings.SplitN(text, `"`, 3)
	if len(parts) < 3 {
		return text, ""
	}
	_, why, _ = strings.Cut(parts[2], "): ")
	if _, warned, ok := strings.Cut(parts[2], ") warns: "); ok {
		why = warned
	}
	return parts[1], why
}

// policyJudge asks the API server.
type policyJudge struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

type warnings struct {
	mu   sync.Mutex
	list []string
}

type warningsKey struct{}

func (policyJudge) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if w, ok := ctx.Value(warningsKey{}).(*warnings); ok {
		w.mu.Lock()
		w.list = append(w.list, text)
		w.mu.Unlock()
	}
}

// newPolicyJudge brings the policies and namespaces to the cluster.
func newPolicyJudge(t *testing.T) *policyJudge {
	t.Helper()
	cfg := apiServer(t)
	cfg.QPS = -1
	cfg.WarningHandlerWithContext = policyJudge{}
	lookup, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	j := &policyJudge{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(lookup))}
	var docs []map[string]any
	for name, labels := range policySpaces {
		twin := maps.Clone(labels)
		delete(twin, "swell-policies")
		for name, labels := range map[string]map[string]string{name: labels, name + "-twin": twin} {
			docs = append(docs, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": anyLabels(labels)}})
		}
	}
	text, err := os.ReadFile("testdata/policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-twin"} {
		text = append(text, "---"+strings.ReplaceAll(policyLimits, "SUFFIX", suffix)...)
	}
	written, problems := document.ReadDocuments("policies.yaml", text)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, doc := range written {
		value, _ := doc.Plain(doc.Node)
		docs = append(docs, value.(map[string]any))
	}
	for _, doc := range docs {
		u := &unstructured.Unstructured{Object: doc}
		if _, err := j.resource(t, u).Create(t.Context(), u, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
		t.Cleanup(func() {
			if u.GetKind() != "Namespace" { // other tests go on
				_ = j.resource(t, u).Delete(context.Background(), u.GetName(), metav1.DeleteOptions{})
			}
		})
	}
	return j
}

func anyLabels(labels map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range labels {
		all[key] = value
	}
	return all
}

func (j *policyJudge) resource(t *testing.T, u *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	gvk := u.GroupVersionKind()
	m, err := j.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	if u.GetNamespace() == "" {
		return j.client.Resource(m.Resource)
	}
	return j.client.Resource(m.Resource).Namespace(u.GetNamespace())
}

// wait until the policies hold: an API server takes them up after a while.
func (j *policyJudge) wait(t *testing.T, objects []map[string]any, ours []verdict) {
	t.Helper()
	open := map[string]int{} // an object by each of our policies that is refused by it alone
	for i, v := range ours {
		for by := range v.refused {
			if len(v.refused) == 1 {
				open[by] = i
			}
		}
	}
	for end := time.Now().Add(time.Minute); len(open) > 0 && time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		for by, i := range open {
			if len(j.ask(objects[i]).refused) > 0 {
				delete(open, by)
			}
		}
	}
	if len(open) > 0 {
		t.Logf("not seen to hold: %v", open)
	}
}

// ask for a dry run of an object and, for what makes pods, of its pod in the twin of
// its namespace.
func (j *policyJudge) ask(object map[string]any) verdict {
	v := verdict{refused: map[string]string{}, warned: map[string]string{}}
	j.dryRun(&v, marked(object), true)
	if pod := podFrom(object); pod != nil {
		j.dryRun(&v, pod, false)
	}
	return v
}

func (j *policyJudge) dryRun(v *verdict, u *unstructured.Unstructured, whole bool) {
	w := &warnings{}
	gvk := u.GroupVersionKind()
	m, err := j.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		v.other = err.Error()
		return
	}
	client := dynamic.ResourceInterface(j.client.Resource(m.Resource))
	if u.GetNamespace() != "" {
		client = j.client.Resource(m.Resource).Namespace(u.GetNamespace())
	}
	_, err = client.Create(context.WithValue(context.Background(), warningsKey{}, w), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: FieldManager})
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case err == nil:
	case strings.Contains(text, "violates PodSecurity"):
		_, why, _ := strings.Cut(text, `violates PodSecurity "`)
		_, why, _ = strings.Cut(why, ": ")
		v.refused["PodSecurity"] = why
	case strings.Contains(text, "ValidatingAdmissionPolicy '"):
		_, rest, _ := strings.Cut(text, "ValidatingAdmissionPolicy '")
		by, rest, _ := strings.Cut(rest, "'")
		_, why, found := strings.Cut(rest, "denied request: ")
		if !found {
			_, why, _ = strings.Cut(rest, ": ")
		}
		v.refused[by] = why
	case strings.Contains(text, "usage per"), strings.Contains(text, "must be less than or equal to"), strings.Contains(text, "aggregate container requests"):
		v.refused["LimitRange"] = ""
	case strings.Contains(text, "quota"):
		v.refused["ResourceQuota"] = ""
	default:
		v.other = text
	}
	for _, text := range w.list {
		if _, rest, ok := strings.Cut(text, "Validation failed for ValidatingAdmissionPolicy '"); ok && whole {
			by, why, _ := strings.Cut(rest, "'")
			v.warned[by] = why
		}
		if strings.Contains(text, "would violate PodSecurity") && whole {
			v.warned["PodSecurity"] = text
		}
	}
}

// marked is an object with what swell adds to it.
func marked(object map[string]any) *unstructured.Unstructured {
	u := (&unstructured.Unstructured{Object: object}).DeepCopy()
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[config.LabelManagedBy], labels[config.LabelRepository], labels[config.LabelUnit] = config.ManagedBy, "shop", "services.u"
	u.SetLabels(labels)
	u.SetAnnotations(map[string]string{config.AnnotationUnit: "services/u"})
	return u
}

// podFrom is the pod of a controller, in the twin of its namespace; nil for others.
func podFrom(object map[string]any) *unstructured.Unstructured {
	path := []string{"spec", "template"}
	if object["kind"] == "CronJob" {
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	template, ok, _ := unstructured.NestedMap(object, path...)
	if !ok {
		return nil
	}
	namespace, _, _ := unstructured.NestedString(object, "metadata", "namespace")
	metadata, _ := template["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"], metadata["namespace"] = "pod", namespace+"-twin"
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}}
}

// randomObject is one that is valid by its schema.
func randomObject(r *rand.Rand, i int) map[string]any {
	kinds := []func(*chance) map[string]any{(*chance).pod, (*chance).pod, (*chance).deployment, (*chance).deployment, (*chance).statefulSet, (*chance).daemonSet, (*chance).job, (*chance).cronJob,
		(*chance).service, (*chance).service, (*chance).configMap, (*chance).configMap, (*chance).secret, (*chance).claim, (*chance).autoscaler, (*chance).networkPolicy, (*chance).roleBinding}
	c := &chance{r}
	object := kinds[r.IntN(len(kinds))](c)
	metadata := map[string]any{"name": fmt.Sprintf("object-%d", i), "namespace": pick(c, "pol-free", "pol-dmz", "pol-baseline", "pol-restricted", "pol-warn", "pol-limits", "pol-quota")}
	labels := map[string]any{}
	for _, label := range []string{"owner", "strict", "ask", "level", "system", "exempt", "swell-policies"} {
		if c.is(35) && !(c.is(60) && (label == "system" || label == "exempt")) {
			labels[label] = pick(c, "yes", "yes", "no")
		}
	}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	object["metadata"] = metadata
	if object["kind"] == "ClusterRoleBinding" {
		delete(metadata, "namespace")
	}
	return object
}

// chance makes choices.
type chance struct{ *rand.Rand }

// is says yes in so many percent.
func (c *chance) is(percent int) bool { return c.IntN(100) < percent }

func pick[T any](c *chance, from ...T) T { return from[c.IntN(len(from))] }

// some has each of the fields in so many percent.
func (c *chance) some(percent int, fields map[string]any) map[string]any {
	chosen := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if c.is(percent) {
			chosen[name] = fields[name]
		}
	}
	return chosen
}

func (c *chance) container(name string) map[string]any {
	container := map[string]any{"name": name, "image": pick(c, "registry.example.com/a:1", "registry.example.com/a:1", "registry.example.com/a:1", "registry.example.com/a", "registry.example.com/a:latest",
		"registry.example.com/a@sha256:"+strings.Repeat("a", 64), "docker.io/a:2")}
	if c.is(30) {
		container["resources"] = map[string]any{"limits": map[string]any{"memory": pick(c, "128Mi", "1Gi", "1.5Gi", "2048Mi", "4Gi")}}
	}
	if c.is(20) {
		container["resources"] = map[string]any{"requests": map[string]any{"cpu": pick(c, "20m", "60m", "120m"), "memory": pick(c, "64Mi", "700Mi")}}
	}
	if c.is(20) {
		container["ports"] = []any{map[string]any{"containerPort": pick[any](c, int64(80), int64(8080))}}
	}
	if c.is(60) {
		container["securityContext"] = map[string]any{"allowPrivilegeEscalation": c.is(20), "capabilities": map[string]any{"drop": []any{"ALL"}}, "runAsNonRoot": c.is(90)}
	}
	if c.is(5) {
		container["securityContext"] = map[string]any{"privileged": true}
	}
	return container
}

func (c *chance) podSpec(restart ...string) map[string]any {
	spec := c.some(12, map[string]any{"hostNetwork": true, "hostPID": true, "initContainers": []any{c.container("first")},
		"volumes": []any{map[string]any{"name": "v", "hostPath": map[string]any{"path": "/"}}}})
	spec["containers"] = []any{c.container("main")}
	if c.is(15) {
		sidecar := c.container("beside")
		sidecar["restartPolicy"] = "Always"
		first, _ := spec["initContainers"].([]any)
		spec["initContainers"] = pick(c, append([]any{sidecar}, first...), append(first[:len(first):len(first)], sidecar))
	}
	if c.is(10) {
		spec["resources"] = pick(c, map[string]any{"requests": map[string]any{"memory": "4Gi"}}, map[string]any{"limits": map[string]any{"memory": "8Gi", "cpu": "2"}},
			map[string]any{"requests": map[string]any{"cpu": "1"}, "limits": map[string]any{"memory": "4Gi"}})
	}
	if c.is(60) {
		spec["securityContext"] = map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}
	}
	if len(restart) > 0 {
		spec["restartPolicy"] = restart[0]
	}
	return spec
}

func (c *chance) pod() map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": c.podSpec()}
}

func (c *chance) template() map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "a"}}, "spec": c.podSpec()}
}

func (c *chance) workload(kind string, fields map[string]any) map[string]any {
	spec := c.some(50, fields)
	spec["selector"], spec["template"] = map[string]any{"matchLabels": map[string]any{"app": "a"}}, c.template()
	return map[string]any{"apiVersion": "apps/v1", "kind": kind, "spec": spec}
}

func (c *chance) deployment() map[string]any {
	return c.workload("Deployment", map[string]any{"replicas": int64(c.IntN(7)), "strategy": map[string]any{"type": "Recreate"}})
}

func (c *chance) statefulSet() map[string]any {
	object := c.workload("StatefulSet", map[string]any{"replicas": int64(c.IntN(7))})
	object["spec"].(map[string]any)["serviceName"] = "a"
	return object
}

func (c *chance) daemonSet() map[string]any { return c.workload("DaemonSet", nil) }

func (c *chance) jobSpec() map[string]any {
	spec := c.some(40, map[string]any{"backoffLimit": int64(c.IntN(10)), "parallelism": int64(2)})
	spec["template"] = map[string]any{"spec": c.podSpec("Never")}
	return spec
}

func (c *chance) job() map[string]any {
	return map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": c.jobSpec()}
}

func (c *chance) cronJob() map[string]any {
	spec := c.some(60, map[string]any{"concurrencyPolicy": pick(c, "Allow", "Forbid", "Replace")})
	spec["schedule"], spec["jobTemplate"] = "* * * * *", map[string]any{"spec": c.jobSpec()}
	return map[string]any{"apiVersion": "batch/v1", "kind": "CronJob", "spec": spec}
}

func (c *chance) service() map[string]any {
	port := c.some(40, map[string]any{"protocol": pick(c, "TCP", "UDP"), "targetPort": pick[any](c, "http", int64(80), int64(8080))})
	port["port"] = pick[any](c, int64(80), int64(8443))
	spec := c.some(40, map[string]any{"type": pick(c, "ClusterIP", "NodePort", "LoadBalancer")})
	spec["ports"], spec["selector"] = []any{port}, map[string]any{"app": "a"}
	return map[string]any{"apiVersion": "v1", "kind": "Service", "spec": spec}
}

func (c *chance) configMap() map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": c.some(50, map[string]any{"level": pick(c, "high", "low"), "other": pick(c, "x", "y")})}
}

func (c *chance) secret() map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"password": "hunter2"}}
}

func (c *chance) claim() map[string]any {
	spec := c.some(40, map[string]any{"volumeMode": pick(c, "Filesystem", "Block")})
	spec["accessModes"] = []any{"ReadWriteOnce"}
	spec["resources"] = map[string]any{"requests": map[string]any{"storage": pick(c, "1Gi", "5Gi", "7Gi", "20Gi")}}
	return map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec}
}

func (c *chance) autoscaler() map[string]any {
	spec := c.some(60, map[string]any{"minReplicas": int64(1 + c.IntN(3))})
	spec["maxReplicas"], spec["scaleTargetRef"] = int64(9), map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
	return map[string]any{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": spec}
}

func (c *chance) networkPolicy() map[string]any {
	spec := c.some(50, map[string]any{"policyTypes": []any{pick(c, "Ingress", "Egress")}, "egress": []any{map[string]any{"ports": []any{map[string]any{"port": int64(53)}}}}})
	spec["podSelector"] = map[string]any{}
	return map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": spec}
}

func (c *chance) roleBinding() map[string]any {
	subject := map[string]any{"kind": "User", "name": pick(c, "a@example.com", "b")}
	if c.is(50) {
		subject["apiGroup"] = "rbac.authorization.k8s.io"
	}
	kind := cmp.Or(pick(c, "", "ClusterRoleBinding"), "RoleBinding")
	return map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
		"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": pick(c, "view", "view", "cluster-admin")}, "subjects": []any{subject}}
}
