// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/schema"
)

// leastCaught is the share of a real API server's refusals that the offline
// check has to find, of Kubernetes' own kinds and of custom resources.
var leastCaught = map[bool]float64{false: 0.97, true: 0.99}

// TestRefusals asks a real API server for a dry run of random objects and holds
// the offline check against it: what the server takes is never refused, and of
// what it refuses most is found. SWELL_REFUSALS=100000 tries as many objects. Two thirds of
// them are the same each time, and the share is that of them: of a few hundred others it is a
// matter of luck. The others are made from a new seed, or from SWELL_SEED; without
// SWELL_REFUSALS they are the same, too.
// SWELL_REFUSALS_REPORT is a file for what was found; testdata/refusals.md is such a one.
func TestRefusals(t *testing.T) {
	t.Parallel()
	n, seed := 2100, uint64(1)
	if s := os.Getenv("SWELL_REFUSALS"); s != "" {
		seed = uint64(time.Now().UnixNano())
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	if s := os.Getenv("SWELL_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SWELL_SEED=%d", seed)
	definitions, custom := customKinds(t)
	server := newReferee(t, definitions)
	valid := slices.Concat(validObjects(t), custom, definitions)
	for i, reason := range offline(t, definitions, slices.Concat(validObjects(t), custom)) {
		if reason != "" {
			t.Errorf("valid object %d, offline: %s", i, reason)
		}
	}
	for i, object := range valid {
		if reason, _ := server.refuses(object); reason != "" {
			t.Errorf("valid object %d, API server: %s", i, reason)
		}
	}
	if t.Failed() {
		return
	}
	set := definedSet(t, definitions)
	objects, changes := generated(set, valid, "fixed", 1, n-n/3)
	more, other := generated(set, valid, "new", seed, n/3)
	same := len(objects)
	objects, changes = append(objects, more...), append(changes, other...)
	ours := offline(t, definitions, objects)
	theirs, judged := make([]string, n), make([]bool, n)
	var g errgroup.Group
	g.SetLimit(8)
	for i, object := range objects {
		g.Go(func() error {
			theirs[i], judged[i] = server.refuses(withoutNulls(set, object))
			return nil
		})
	}
	_ = g.Wait()
	tallies := map[string]*tally{}
	for i := range objects {
		of := tallies[sortOf(objects[i])]
		if of == nil {
			of = &tally{passed: map[string]int{}}
			tallies[sortOf(objects[i])] = of
		}
		switch {
		case !judged[i]:
			of.unjudged++
		case theirs[i] == "" && ours[i] == "":
			of.taken++
		case theirs[i] == "":
			of.wrong++
			t.Errorf("object %d, %s: a real API server takes it; offline: %s\n%s", i, changes[i], ours[i], jsonOf(t, objects[i]))
		case ours[i] != "":
			of.caught++
			if i < same {
				of.sameCaught++
			}
		default:
			if i < same {
				of.samePassed++
			}
			of.passed[class(objects[i], theirs[i])]++
			if testing.Verbose() {
				t.Logf("passed offline: %s: %s: %s", objects[i]["kind"], changes[i], theirs[i])
			}
		}
	}
	report := reportOf(tallies)
	t.Log("\n" + report)
	if name := os.Getenv("SWELL_REFUSALS_REPORT"); name != "" {
		if err := os.WriteFile(name, []byte(report), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for sort, of := range tallies {
		share := float64(of.sameCaught) / float64(max(of.sameCaught+of.samePassed, 1))
		if least := leastCaught[sort != ownKinds]; share < least {
			t.Errorf("%s: %.1f %% of what the API server refused is refused offline, want at least %.0f %%", sort, 100*share, 100*least)
		}
	}
}

const (
	ownKinds   = "Kubernetes' own kinds"
	customSort = "custom resources"
	crdSort    = "CustomResourceDefinitions"
)

// sortOf is a sort of objects that are counted apart.
func sortOf(object map[string]any) string {
	apiVersion, _ := object["apiVersion"].(string)
	switch {
	case object["kind"] == "CustomResourceDefinition":
		return crdSort
	case strings.Contains(apiVersion, ".example.com/"):
		return customSort
	}
	return ownKinds
}

// tally is what became of the objects of one sort.
type tally struct {
	taken, caught, wrong, unjudged int
	passed                         map[string]int // by class
	sameCaught, samePassed         int            // of the objects that are the same each time
}

func (t *tally) refused() int {
	n := t.caught
	for _, passed := range t.passed {
		n += passed
	}
	return n
}

func (t *tally) share() float64 { return float64(t.caught) / float64(max(t.refused(), 1)) }

// class is the class of a mistake that only the server found: the place without
// indexes, and how the server calls it.
func class(object map[string]any, reason string) string {
	_, reason, _ = strings.Cut(reason, " is invalid: ")
	place, reason, ok := strings.Cut(strings.TrimPrefix(reason, "["), ": ")
	if !ok {
		return fmt.Sprintf("%s: other", object["kind"])
	}
	what, detail, _ := strings.Cut(reason, ": ")
	if strings.Contains(detail, "compilation failed") {
		what = "an expression that does not compile"
	}
	return fmt.Sprintf("%s: %s: %s", object["kind"], regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(place, ""), what)
}

// reportOf is a table of what was found, and the classes of what was not.
func reportOf(tallies map[string]*tally) string {
	var b strings.Builder
	b.WriteString("| objects | tried | taken by both | refused by the server | of them offline | share | refused offline only | judged by other objects |\n|---|---|---|---|---|---|---|---|\n")
	for _, sort := range slices.Sorted(maps.Keys(tallies)) {
		of := tallies[sort]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %.1f %% | %d | %d |\n", sort, of.taken+of.wrong+of.refused()+of.unjudged, of.taken, of.refused(), of.caught, 100*of.share(), of.wrong, of.unjudged)
	}
	b.WriteString("\n| refused by the server only | times | share of its refusals |\n|---|---|---|\n")
	for _, sort := range slices.Sorted(maps.Keys(tallies)) {
		of := tallies[sort]
		for _, class := range slices.Sorted(maps.Keys(of.passed)) {
			fmt.Fprintf(&b, "| %s | %d | %.2f %% |\n", class, of.passed[class], 100*float64(of.passed[class])/float64(of.refused()))
		}
	}
	return b.String()
}

// withoutNulls is the object as it is sent: see TestNullsOnAServer and TestUnsetOnAServer.
func withoutNulls(set *schema.Set, object map[string]any) map[string]any {
	apiVersion, _ := object["apiVersion"].(string)
	kindName, _ := object["kind"].(string)
	kind := set.Kind(apiVersion, kindName).Type()
	return schema.WithoutUnset(kind, schema.WithoutNulls(kind, object)).(map[string]any)
}

func definedSet(t *testing.T, definitions []map[string]any) *schema.Set {
	t.Helper()
	set, err := schema.Kubernetes("1.36")
	if err != nil {
		t.Fatal(err)
	}
	var all []*schema.Definition
	for _, d := range definitions {
		definition := set.Define("definitions.yaml", schema.AppendJSON(nil, d), false)
		if problems := definition.Violations(); len(problems) > 0 {
			t.Fatal(problems)
		}
		all = append(all, definition)
	}
	return set.With(all)
}

// generated are n changed objects and what was changed; the same ones for a seed.
// Every second one is a custom resource or a definition.
func generated(set *schema.Set, valid []map[string]any, name string, seed uint64, n int) (objects []map[string]any, changes []string) {
	m := newMutator(set, valid)
	sorts := map[string][]map[string]any{}
	for _, object := range valid {
		sorts[sortOf(object)] = append(sorts[sortOf(object)], object)
	}
	for i := range n {
		m.Rand = rand.New(rand.NewPCG(seed, uint64(i)))
		from := sorts[[]string{ownKinds, customSort, ownKinds, crdSort, ownKinds, customSort}[i%6]]
		object := deepCopy(from[m.IntN(len(from))]).(map[string]any)
		change := m.mutate(object)
		if m.IntN(4) == 0 {
			change += ", " + m.mutate(object)
		}
		objects, changes = append(objects, object), append(changes, change+m.name(object, fmt.Sprintf("%s-%d", name, i)))
	}
	return objects, changes
}

// name gives the object a name of its own, sometimes an odd one.
func (m *mutator) name(object map[string]any, suffix string) (change string) {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return ""
	}
	if sortOf(object) == crdSort {
		spec, _ := object["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		plural, isText := names["plural"].(string)
		kind, isKind := names["kind"].(string)
		if name := fmt.Sprintf("%s.%s", plural, spec["group"]); isText && isKind && metadata["name"] == name {
			names["plural"], names["kind"] = plural+suffix, kind+suffix
			metadata["name"] = fmt.Sprintf("%s.%s", names["plural"], spec["group"])
		} else { // a change of one that is there would be another question
			metadata["name"] = suffix + ".example.com"
		}
		return ""
	}
	metadata["name"] = fmt.Sprintf("%s-%s", metadata["name"], suffix)
	if m.IntN(60) == 0 {
		name := someTexts[m.IntN(len(someTexts))]
		if name != "" && !strings.ContainsAny(name, "/% ä") { // the last ones are no names for swell, whoever takes them
			metadata["name"] = fmt.Sprintf("%s%s", suffix, name)
			return ", renamed"
		}
	}
	return ""
}

// offline says of each object why it is refused; empty when it is not.
func offline(t *testing.T, definitions, objects []map[string]any) []string {
	files := fstest.MapFS{}
	write := func(name, content string) { files[name] = &fstest.MapFile{Data: []byte(content)} }
	write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: test}\nspec: {fleet: fleet, units: [services], schemas: schemas, checks: {plainSecrets: pass}}\n")
	write("fleet/c.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: c}\nspec: {kubernetes: \"1.36\", tenants: [\"*\"]}\n---\n"+
		"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n")
	write("services/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {placement: {topology: cluster}}\n")
	for i, object := range definitions {
		write(fmt.Sprintf("schemas/%d.yaml", i), jsonOf(t, object))
	}
	reasons := make([]string, len(objects))
	for i, object := range objects {
		switch object["kind"] {
		case "CustomResourceDefinition": // in a monorepo each kind has one definition
			reasons[i] = offlineDefinition(t, object)
			continue
		case "LimitRange", "ResourceQuota", "Namespace", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			if len(objects) > 1 { // alone, since they judge others
				reasons[i] = offline(t, nil, objects[i:i+1])[0]
				continue
			}
		}
		write(fmt.Sprintf("services/u%d/object.yaml", i), jsonOf(t, object))
	}
	var c render.Compiler
	s := c.Snapshot("", config.Files(files))
	if s.Held {
		t.Fatal(s.Problems)
	}
	for _, unit := range s.Units.All() {
		i, err := strconv.Atoi(strings.TrimPrefix(string(unit.Path), "services/u"))
		if err != nil {
			t.Fatal(err)
		}
		if len(unit.Problems) > 0 {
			reasons[i] = unit.Problems.String()
		}
	}
	return reasons
}

// offlineDefinition says why a CustomResourceDefinition is refused.
func offlineDefinition(t *testing.T, object map[string]any) string {
	t.Helper()
	set := definedSet(t, nil)
	object = withoutNulls(set, object)
	if found := set.Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").Check(object, false); len(found) > 0 {
		return fmt.Sprint(found)
	}
	if problems := set.Define("it", schema.AppendJSON(nil, object), false).Violations(); len(problems) > 0 {
		return fmt.Sprint(problems)
	}
	return ""
}

func jsonOf(t *testing.T, object map[string]any) string {
	t.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// referee asks a real API server.
type referee struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// newReferee asks a real API server that knows these definitions.
func newReferee(t *testing.T, definitions []map[string]any) *referee {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(apiServer(t))
	if err != nil {
		t.Fatal(err)
	}
	j := &referee{client: somebody(t), mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))}
	objects := []map[string]any{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "valid"}},
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default", "namespace": "valid"}},
	}
	for _, object := range slices.Concat(objects, definitions) {
		u := &unstructured.Unstructured{Object: deepCopy(object).(map[string]any)}
		if _, err := j.apply(u, metav1.PatchOptions{FieldManager: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, definition := range definitions {
		name := definition["metadata"].(map[string]any)["name"].(string)
		t.Cleanup(func() { _ = j.client.Resource(crds).Delete(context.Background(), name, metav1.DeleteOptions{}) })
		established(t, j.client, name)
	}
	j.mapper.Reset()
	t.Cleanup(func() {
		_ = j.client.Resource(namespaces).Delete(context.Background(), "valid", metav1.DeleteOptions{})
	})
	return j
}

// established waits until the API server serves a definition.
func established(t *testing.T, client dynamic.Interface, name string) {
	t.Helper()
	w, err := client.Resource(crds).Watch(t.Context(), metav1.SingleObject(metav1.ObjectMeta{Name: name}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		u, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatal(event.Object)
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		if slices.ContainsFunc(conditions, func(c any) bool {
			m, _ := c.(map[string]any)
			return m["type"] == "Established" && m["status"] == "True"
		}) {
			return
		}
	}
	t.Fatalf("%s is not established", name)
}

func (r *referee) apply(u *unstructured.Unstructured, opt metav1.PatchOptions) (*unstructured.Unstructured, error) {
	gvk := u.GroupVersionKind()
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	body, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var client dynamic.ResourceInterface = r.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = r.client.Resource(mapping.Resource).Namespace(u.GetNamespace())
	}
	return client.Patch(context.Background(), u.GetName(), types.ApplyPatchType, body, opt)
}

// beside are refusals that depend on other objects or on how the cluster was
// set up; ok is false then.
var beside = []int32{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests}

// refuses says why the API server refuses an object, empty when it does not. ok
// is false when the reason is not in the object.
func (r *referee) refuses(object map[string]any) (reason string, ok bool) {
	force := true
	u := &unstructured.Unstructured{Object: deepCopy(object).(map[string]any)}
	_, err := r.apply(u, metav1.PatchOptions{FieldManager: FieldManager, FieldValidation: "Strict", Force: &force, DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return "", true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || slices.Contains(beside, status.Status().Code) {
		return err.Error(), false
	}
	return err.Error(), true
}
