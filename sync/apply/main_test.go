// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/devcluster/devtest"
	"github.com/swell-sh/swell/sync/store"
)

// shared has the one real API server of this package.
var shared = &devtest.Shared{Names: []string{"dev-4"}}

func TestMain(m *testing.M) { os.Exit(devtest.Main(m, shared)) }

// apiServer is the configuration for the real API server.
func apiServer(t testing.TB) *rest.Config {
	t.Helper()
	cfg, err := shared.Clusters(t).Config("dev-4")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// connect returns a Cluster and what it sends.
func connect(t testing.TB, opt Options) (*Cluster, *wire) {
	t.Helper()
	w := &wire{}
	cfg := apiServer(t)
	cfg.Wrap(w.wrap)
	c, err := Connect(cfg, testRepository, opt)
	if err != nil {
		t.Fatal(err)
	}
	return c, w
}

// wire records requests.
type wire struct {
	mu  sync.Mutex
	all []sent
}

type sent struct{ method, path, query, accept string }

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		w.mu.Lock()
		w.all = append(w.all, sent{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Accept")})
		w.mu.Unlock()
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// take returns what was sent since the last take, discovery left out.
func (w *wire) take() []sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	var kept []sent
	for _, s := range w.all {
		if s.accept != jsonType || strings.Count(s.path, "/") > 3 {
			kept = append(kept, s)
		}
	}
	w.all = nil
	return kept
}

// methods counts what take returns by method.
func (w *wire) methods() map[string]int {
	counts := map[string]int{}
	for _, s := range w.take() {
		counts[s.method]++
	}
	return counts
}

const (
	testUnit       = "services/shop/cart"
	testRepository = "shop"
)

// object makes a hard object of YAML as render would.
func newObject(t testing.TB, format string, args ...any) *object.Object {
	t.Helper()
	var u unstructured.Unstructured
	if err := yaml.Unmarshal(fmt.Appendf(nil, format, args...), &u.Object); err != nil {
		t.Fatal(err)
	}
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[config.LabelManagedBy], labels[config.LabelRepository] = config.ManagedBy, testRepository
	u.SetLabels(labels)
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[config.AnnotationUnit] = testUnit
	u.SetAnnotations(annotations)
	body, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	gvk := u.GroupVersionKind()
	return &object.Object{
		ID:      object.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()},
		Version: gvk.Version, JSON: body, Digest: object.Digest(hex.EncodeToString(sum[:])),
	}
}

// configMap has one key, "value".
func configMap(t testing.TB, namespace, name, value string) *object.Object {
	return newObject(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s}
data: {value: %q}
`, name, namespace, value)
}

// inventory is what a daemon would keep of results; all must be without error.
func inventory(t testing.TB, results []Result) map[object.ID]store.Entry {
	t.Helper()
	known := map[object.ID]store.Entry{}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		r.Entry.Unit, r.Entry.Target = testUnit, "dev-1"
		known[r.ID] = r.Entry
	}
	return known
}

// applied applies objects that are new to the cluster and returns the entries.
// bring applies objects by the default policy.
func (c *Cluster) bring(ctx context.Context, objects []*object.Object, known map[object.ID]store.Entry) []Result {
	return c.Apply(ctx, Work{Objects: objects, Known: known})
}

func applied(t testing.TB, c *Cluster, objects ...*object.Object) []store.Entry {
	t.Helper()
	known := inventory(t, c.bring(t.Context(), objects, nil))
	entries := make([]store.Entry, len(objects))
	for i, o := range objects {
		entries[i] = known[o.ID]
	}
	return entries
}

func actions(results []Result) []Action {
	var all []Action
	for _, r := range results {
		all = append(all, r.Action)
	}
	return all
}

// Resources that tests write to as somebody else.
var (
	configMaps          = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces          = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	deployments         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	crds                = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	clusterRoles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	apiServices         = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// somebody is another client of the same API server.
func somebody(t testing.TB) dynamic.Interface {
	t.Helper()
	cfg := apiServer(t)
	cfg.QPS = -1
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// create makes an object as somebody, and removes it after the test.
func create(t testing.TB, resource schema.GroupVersionResource, text string) {
	t.Helper()
	u := put(t, resource, text)
	discard(t, resource, u.GetNamespace(), u.GetName())
}

// put makes an object as somebody. It stays until the servers end.
func put(t testing.TB, resource schema.GroupVersionResource, text string) *unstructured.Unstructured {
	t.Helper()
	client := somebody(t)
	var u unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(resource).Namespace(u.GetNamespace()).Create(t.Context(), &u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return &u
}

// discard deletes an object after the test.
func discard(t testing.TB, resource schema.GroupVersionResource, namespace, name string) {
	client := somebody(t)
	t.Cleanup(func() {
		_ = client.Resource(resource).Namespace(namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// space makes a namespace for one test and returns its name. It is left there:
// to delete one takes seventy requests, more than most tests make.
func space(t testing.TB) string {
	t.Helper()
	name := "t-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	name = fmt.Sprintf("%.50s-%06x", name, time.Now().UnixNano()&0xffffff)
	put(t, namespaces, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}")
	return name
}

// eventually polls until ok, and fails the test with the last thing said. What
// takes a second may take a minute on a machine that is shared.
func eventually(t testing.TB, ok func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var last string
	err := poll(ctx, func() (done bool, err error) {
		done, last = ok()
		return done, nil
	})
	if err != nil {
		t.Fatalf("%v: %s", err, last)
	}
}
