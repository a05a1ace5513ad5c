// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var mutatingWebhooks = schema.GroupVersionResource{
	Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations",
}

// review is what an API server asks a webhook, as far as tests need it.
type review struct {
	UID       string `json:"uid"`
	Operation string `json:"operation"`
	Name      string `json:"name"`
}

// admit registers a real webhook that mutates the objects of a resource in a
// namespace: mutate returns a JSON patch, or "" to leave the object. It is in
// force when admit returns.
func admit(t *testing.T, namespace, group, version, resource string, mutate func(review) string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Request review `json:"request"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		answer := map[string]any{"uid": asked.Request.UID, "allowed": true}
		patch := mutate(asked.Request)
		if asked.Request.Name == "is-the-webhook-there" {
			patch = `[{"op":"add","path":"/metadata/labels","value":{"yes":"it-is"}}]`
		}
		if patch != "" {
			answer["patchType"], answer["patch"] = "JSONPatch", base64.StdEncoding.EncodeToString([]byte(patch))
		}
		w.Header().Set("Content-Type", jsonType)
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	create(t, mutatingWebhooks, strings.NewReplacer(
		"NAME", namespace, "GROUP", group, "VERSION", version, "RESOURCE", resource,
		"URL", server.URL, "CA", base64.StdEncoding.EncodeToString(ca),
	).Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: NAME}
webhooks:
- name: mutate.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 30
  failurePolicy: Fail
  clientConfig: {url: "URL", caBundle: CA}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
  rules:
  - {apiGroups: ["GROUP"], apiVersions: [VERSION], operations: [CREATE, UPDATE], resources: [RESOURCE, configmaps]}
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
`))
	probe := configMap(t, namespace, "is-the-webhook-there", "1")
	eventually(t, func() (bool, string) {
		client := somebody(t).Resource(configMaps).Namespace(namespace)
		_ = client.Delete(t.Context(), probe.ID.Name, metav1.DeleteOptions{})
		made, err := client.Create(t.Context(), unstructuredOf(t, probe), metav1.CreateOptions{})
		if err != nil {
			return false, err.Error()
		}
		return made.GetLabels()["yes"] != "", "the webhook is not asked"
	})
}

// TestAWebhookThatRenames: an object that a webhook gives another name is not deleted to make
// it anew, though Git allows that: neither where the server refuses the name of the live one,
// nor where what it tried out became another object.
func TestAWebhookThatRenames(t *testing.T) {
	for name, renames := range map[string]func(review) bool{
		"at updates": func(asked review) bool { return asked.Operation == "UPDATE" },
		"of trials":  func(asked review) bool { return strings.Contains(asked.Name, "-trial-") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := connect(t, Options{})
			ns := space(t)
			s := newState(t, c)
			s.apply("x", newObject(t, selecting, ns, "one", "one"))
			before := liveOf(t, deployments, ns, "web").GetUID()
			admit(t, ns, "apps", "v1", "deployments", func(asked review) string {
				if !renames(asked) || asked.Name == "" {
					return ""
				}
				return `[{"op":"replace","path":"/metadata/name","value":"renamed"}]`
			})
			got := s.apply("y", newObject(t, selecting, ns, "two", "two"))
			if !errors.Is(got[0].Err, ErrRefused) || !strings.Contains(got[0].Reason+got[0].Err.Error(), "admission") {
				t.Errorf("got %+v", got[0])
			}
			if after := liveOf(t, deployments, ns, "web").GetUID(); after != before {
				t.Error("the live Deployment was deleted")
			}
		})
	}
}

// TestASlowWebhook: a webhook takes longer than a request may that nobody judges.
func TestASlowWebhook(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{Timeout: time.Second, WriteTimeout: 30 * time.Second})
	ns := space(t)
	admit(t, ns, "", "v1", "configmaps", func(r review) string {
		if r.Name == "slow" {
			time.Sleep(3 * time.Second)
		}
		return ""
	})
	applied(t, c, configMap(t, ns, "slow", "1"))
}
