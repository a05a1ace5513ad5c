// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// TestAuditLogOfSecrets: what the API server itself wrote down of a release, a
// sweep, a watch, a deep sweep and corrections, over a namespace with Secrets of
// ours and of others. Whatever was asked of Secrets, only metadata was answered,
// and each body that was sent is one of Git's.
func TestAuditLogOfSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.audit()
	w.withOrder(6000)
	theirs := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"theirs","labels":{"app.kubernetes.io/managed-by":"swell","swell.sh/repository":%q}},"data":{"token":%q}}`,
		w.tenant, base64.StdEncoding.EncodeToString([]byte("not for swell")))
	w.createAs("dev-2/c", secrets, theirs)
	w.sweeping(config.Drift{Deep: 6000, Watch: true})
	w.pass()
	w.nextSweep()
	w.until("the watches", w.quiet)

	value := func() string {
		data, _ := w.get("dev-2/c", secrets, "password").Object["data"].(map[string]any)
		text, _ := data["password"].(string)
		plain, err := base64.StdEncoding.DecodeString(text)
		w.must(err)
		return string(plain)
	}
	edited := fmt.Sprintf(`{"data":{"password":%q}}`, base64.StdEncoding.EncodeToString([]byte("edited by hand")))
	w.edit("dev-2/c", secrets, "password", edited, "kubectl-edit")
	w.until("the correction that the watch led to", func() bool { w.pass(); return value() == "hunter2" })
	w.until("rest", w.quiet)
	w.must(w.client("dev-2").Resource(secrets).Namespace(w.tenant+"-c").Delete(t.Context(), "password", metav1.DeleteOptions{}))
	w.until("the one after the deletion", func() bool { return w.get("dev-2/c", secrets, "password") != nil })
	w.until("rest", w.quiet)
	for range 12 {
		w.now = w.now.Add(10 * time.Second)
		w.pass()
	}
	w.nextSweep()
	w.stop()

	verbs := map[string]int{}
	for _, event := range w.audit() {
		if event.ObjectRef.Resource != "secrets" || event.Stage != "ResponseComplete" && event.Verb != "watch" {
			continue
		}
		verbs[event.Verb]++
		var answer struct{ Kind string }
		if len(event.ResponseObject) > 0 {
			w.must(json.Unmarshal(event.ResponseObject, &answer))
		}
		switch {
		case event.Verb == "watch": // events are not in the log; what is no metadata ends the watch, see sync/apply
		case event.ResponseStatus.Code >= 300 && answer.Kind == "Status":
		case answer.Kind != "PartialObjectMetadata" && answer.Kind != "PartialObjectMetadataList":
			t.Errorf("%s %s was answered with a %q", event.Verb, event.RequestURI, answer.Kind)
		}
		for _, plain := range []string{"hunter2", "edited by hand", "not for swell"} {
			if bytes.Contains(event.ResponseObject, []byte(base64.StdEncoding.EncodeToString([]byte(plain)))) || bytes.Contains(event.ResponseObject, []byte(plain)) {
				t.Errorf("%s %s was answered with a value", event.Verb, event.RequestURI)
			}
		}
		if strings.Contains(event.RequestURI, "dryRun") {
			t.Errorf("a dry run of a Secret: %s", event.RequestURI)
		}
	}
	for verb, least := range map[string]int{"list": 2, "watch": 1, "get": 1, "patch": 3} {
		if verbs[verb] < least {
			t.Errorf("%d %s requests of Secrets in the log, want %d at least: %v", verbs[verb], verb, least, verbs)
		}
	}
	if len(verbs) != 4 {
		t.Errorf("verbs %v", verbs)
	}
	t.Logf("requests of Secrets: %v", verbs)
	w.nowhere("hunter2", "edited by hand", "not for swell")
}

// nowhere fails the test when the state file holds one of the texts.
func (w *world) nowhere(texts ...string) {
	for _, name := range []string{"state.db", "state.db-wal"} {
		content, err := os.ReadFile(filepath.Join(w.dir, "state", name))
		if os.IsNotExist(err) {
			continue
		}
		w.must(err)
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) || bytes.Contains(content, []byte(base64.StdEncoding.EncodeToString([]byte(text)))) {
				w.Errorf("%s holds %q", name, text)
			}
		}
	}
}

// createAs makes an object of the tenant as somebody.
func (w *world) createAs(target string, resource schema.GroupVersionResource, content string) {
	w.Helper()
	cluster, cell, _ := strings.Cut(target, "/")
	object := &unstructured.Unstructured{}
	w.must(object.UnmarshalJSON([]byte(content)))
	_, err := w.client(cluster).Resource(resource).Namespace(w.tenant+"-"+cell).Create(w.Context(), object, metav1.CreateOptions{})
	w.must(err)
}
