// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// BenchmarkApply applies one ConfigMap again and again: with another value, and as it
// is.
func BenchmarkApply(b *testing.B) {
	for _, same := range []bool{false, true} {
		b.Run(map[bool]string{false: "changed", true: "unchanged"}[same], func(b *testing.B) {
			c := New()
			s := &side{client: &http.Client{Transport: c}, host: "http://simulator.invalid"}
			for i := range b.N {
				if same {
					i = 0
				}
				r, _ := http.NewRequest(http.MethodPatch, s.host+"/api/v1/namespaces/default/configmaps/a?fieldManager=swell&force=true", body(fmt.Sprintf(
					`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","labels":{"app.kubernetes.io/managed-by":"swell"},"annotations":{"swell.sh/unit":"services/shop"}},"data":{"value":"%d","other":"text"}}`, i)))
				r.Header.Set("Content-Type", "application/apply-patch+yaml")
				r.Header.Set("Accept", protobufType+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
				response, err := s.client.Do(r)
				if err != nil || response.StatusCode > 201 {
					b.Fatal(response, err)
				}
			}
		})
	}
}

func body(text string) *strings.Reader { return strings.NewReader(text) }

// do sends a request and returns the code and the answer.
func do(t *testing.T, c *Cluster, method, path, text string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.Config().Host+path, body(text))
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := json.NewDecoder(response.Body).Decode(&content); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, content
}

// must does the same and wants a code.
func must(t *testing.T, c *Cluster, want int, method, path, text string) map[string]any {
	t.Helper()
	code, content := do(t, c, method, path, text)
	if code != want {
		t.Fatalf("%s %s: got %d, want %d: %v", method, path, code, want, content)
	}
	return content
}

// compareDiscovery: discovery.json is what a real API server answers.
func compareDiscovery(t *testing.T, s *side) {
	documents := map[string]any{}
	var ask func(path string) map[string]any //lint:ignore S1021 it calls itself
	ask = func(path string) map[string]any {
		content, _ := s.send(t, operation{method: http.MethodGet, path: path}).Content.(map[string]any)
		documents[path] = content
		return content
	}
	ask("/version")
	ask("/api")["serverAddressByClientCIDRs"] = []any{}
	ask("/api/v1")
	for _, g := range ask("/apis")["groups"].([]any) {
		group := g.(map[string]any)
		ask("/apis/" + group["name"].(string))
		for _, v := range group["versions"].([]any) {
			ask("/apis/" + v.(map[string]any)["groupVersion"].(string))
		}
	}
	var want map[string]any
	if err := json.Unmarshal(discovery, &want); err != nil {
		t.Fatal(err)
	}
	for _, built := range []string{"goVersion", "platform"} { // are those of whoever built it
		delete(documents["/version"].(map[string]any), built)
		delete(want["/version"].(map[string]any), built)
	}
	for path, document := range documents {
		if d := gocmp.Diff(s.normalize(want[path]), document); d != "" {
			t.Errorf("%s: -discovery.json +server\n%s", path, d)
		}
	}
	if len(want) != len(documents) {
		t.Errorf("%d documents, want %d", len(want), len(documents))
	}
}

const (
	configMapsPath = "/api/v1/namespaces/default/configmaps"
	deploymentPath = "/apis/apps/v1/namespaces/default/deployments"
)

func deploymentText(name, image string) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q},"spec":{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"main","image":%q}]}}}}`, name, image)
}

// TestNamespaceEnds: with what is in it, once nobody holds that any more.
func TestNamespaceEnds(t *testing.T) {
	c := New()
	must(t, c, 201, "POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)
	must(t, c, 201, "POST", "/api/v1/namespaces/shop/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"free"}}`)
	must(t, c, 201, "POST", "/api/v1/namespaces/shop/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"held","finalizers":["example.com/hold"]}}`)
	must(t, c, 200, "DELETE", "/api/v1/namespaces/shop", "")
	must(t, c, 404, "GET", "/api/v1/namespaces/shop/configmaps/free", "")
	must(t, c, 403, "POST", "/api/v1/namespaces/shop/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"late"}}`)
	held := must(t, c, 200, "GET", "/api/v1/namespaces/shop/configmaps/held", "")
	delete(held["metadata"].(map[string]any), "finalizers")
	text, _ := json.Marshal(held)
	must(t, c, 200, "PUT", "/api/v1/namespaces/shop/configmaps/held", string(text))
	must(t, c, 404, "GET", "/api/v1/namespaces/shop", "")
	must(t, c, 403, "DELETE", "/api/v1/namespaces/kube-system", "")
}

// TestOwnedObjectsEnd: with their owner; or stay, when the policy says so.
func TestOwnedObjectsEnd(t *testing.T) {
	for policy, left := range map[string]int{"Background": 404, "Foreground": 404, "Orphan": 200} {
		c := New()
		owner := must(t, c, 201, "POST", configMapsPath, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owner"}}`)
		uid := owner["metadata"].(map[string]any)["uid"]
		must(t, c, 201, "POST", configMapsPath, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owned","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q,"blockOwnerDeletion":true}]}}`, uid))
		must(t, c, 200, "DELETE", configMapsPath+"/owner?propagationPolicy="+policy, "")
		if code, _ := do(t, c, "GET", configMapsPath+"/owned", ""); code != left {
			t.Errorf("%s: the owned object: got %d, want %d", policy, code, left)
		}
		must(t, c, 404, "GET", configMapsPath+"/owner", "")
	}
}

// TestReady: workloads become ready when they are to.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		c.Ready.After = time.Minute
		ready := func(name string) string {
			status := must(t, c, 200, "GET", deploymentPath+"/"+name, "")["status"].(map[string]any)
			return fmt.Sprint(status["readyReplicas"], " ", status["observedGeneration"])
		}
		must(t, c, 201, "POST", deploymentPath, deploymentText("good", "app:1"))
		must(t, c, 201, "POST", deploymentPath, deploymentText("bad", "app:broken"))
		for _, want := range []string{"<nil> 1", "1 1"} {
			if got := ready("good"); got != want {
				t.Errorf("ready: got %q, want %q", got, want)
			}
			time.Sleep(time.Minute)
		}
		if got := ready("bad"); got != "<nil> 1" {
			t.Errorf("with a broken image: got %q", got)
		}
		pods := must(t, c, 200, "GET", "/api/v1/namespaces/default/pods", "")
		if text := fmt.Sprint(pods); !strings.Contains(text, "ImagePullBackOff") {
			t.Errorf("pods: %s", text)
		}
		time.Sleep(10 * time.Minute)
		if text := fmt.Sprint(must(t, c, 200, "GET", deploymentPath+"/bad", "")); !strings.Contains(text, "ProgressDeadlineExceeded") {
			t.Errorf("after the deadline: %s", text)
		}
	})
}

// TestWatchExpires: what a watch cannot know any more is a 410, and a list too.
func TestWatchExpires(t *testing.T) {
	c := New()
	must(t, c, 201, "POST", configMapsPath, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
	must(t, c, 201, "POST", configMapsPath, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`)
	list := must(t, c, 200, "GET", configMapsPath+"?limit=1", "")
	next := list["metadata"].(map[string]any)["continue"].(string)
	c.Compact()
	must(t, c, 410, "GET", configMapsPath+"?limit=1&continue="+next, "")
	event := must(t, c, 200, "GET", configMapsPath+"?watch=true&resourceVersion=1", "")
	if event["type"] != "ERROR" || !strings.Contains(fmt.Sprint(event), "too old resource version: 1 ") {
		t.Errorf("got %v", event)
	}
}

// TestWatchWaits: a bookmark each minute, and the end after a while, with nobody at
// work but who reads.
func TestWatchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		r, _ := http.NewRequestWithContext(t.Context(), "GET", c.Config().Host+configMapsPath+"?watch=true&allowWatchBookmarks=true&timeoutSeconds=150&resourceVersion="+c.Version(), nil)
		response, err := c.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(30 * time.Second)
			must(t, c, 201, "POST", configMapsPath, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
		}()
		began, seen := time.Now(), ""
		for decoder := json.NewDecoder(response.Body); ; {
			var event struct{ Type string }
			if err := decoder.Decode(&event); err != nil {
				break
			}
			seen += fmt.Sprintf("%s %s\n", time.Since(began), event.Type)
		}
		if want := "30s ADDED\n1m0s BOOKMARK\n2m0s BOOKMARK\n2m30s BOOKMARK\n"; seen != want {
			t.Errorf("got %q, want %q", seen, want)
		}
	})
}

// TestNotModelled: what the simulator does not do, it says.
func TestNotModelled(t *testing.T) {
	c := New()
	for _, r := range []struct{ method, path, body string }{
		{"GET", "/openapi/v3", ""},
		{"POST", "/api/v1/namespaces/default/podtemplates", `{"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"a"}}`},
		{"POST", "/api/v1/namespaces/default/services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"type":"NodePort","ports":[{"port":80}]}}`},
		{"GET", "/api/v1/namespaces/default/pods/a/log", ""},
		{"GET", configMapsPath + "?resourceVersion=1&resourceVersionMatch=Exact", ""},
		{"GET", configMapsPath + "?sendInitialEvents=true&watch=true", ""},
		{"POST", "/apis/apiregistration.k8s.io/v1/apiservices", `{}`},
	} {
		if content := must(t, c, 501, r.method, r.path, r.body); !strings.HasPrefix(fmt.Sprint(content["message"]), "the simulator does not model ") {
			t.Errorf("%s: %v", r.path, content)
		}
	}
}

// TestFault: a fault stands before the cluster.
func TestFault(t *testing.T) {
	c, lost := New(), errors.New("lost")
	c.Fault = func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost {
			return nil, lost
		}
		return nil, nil
	}
	must(t, c, 200, "GET", configMapsPath, "")
	r, _ := http.NewRequestWithContext(t.Context(), "POST", c.Config().Host+configMapsPath, body("{}"))
	if _, err := c.RoundTrip(r); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
}
