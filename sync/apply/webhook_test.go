// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
