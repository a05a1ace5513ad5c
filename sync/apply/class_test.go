// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/render/object"
)

// classes are all that an [Error] can be.
var classes = []error{ErrUnreachable, ErrThrottled, ErrRefused, ErrDistress, ErrRights, ErrMissing, ErrFailed}

// TestClasses: what is a verdict on the object, and what is trouble of the target.
// Texts are those of API servers, of etcd and of admission.
func TestClasses(t *testing.T) {
	conflict := `{"kind":"Status","status":"Failure","reason":"Conflict","code":409,"message":"Apply failed with 1 conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"x\"","field":".data.a"}]}}`
	type row struct {
		code    int
		reason  string // empty: the message is the whole body
		message string
		audited bool
		class   error
	}
	rows := []row{
		// verdicts
		{422, "Invalid", `ConfigMap "x" is invalid: data[a b]: Invalid value: "a b": a valid key`, true, ErrRefused},
		{422, "Invalid", `ConfigMap "x" is invalid: data.run: Invalid value: "curl: connect: connection refused": no`, true, ErrRefused},
		{400, "BadRequest", `error strict decoding YAML: unknown field "spec.x"`, true, ErrRefused},
		{400, "", `admission webhook "x.example.com" denied the request: not today`, true, ErrRefused},
		{403, "Forbidden", `admission webhook "x.example.com" denied the request: not today`, true, ErrRefused},
		{418, "", `admission webhook "x.example.com" denied the request: not today`, true, ErrRefused},
		{422, "Invalid", `deployments.apps "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: object.spec.replicas < 3`, true, ErrRefused},
		{422, "Invalid", `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed to configure binding: no params found for policy binding with ` + "`Deny`" + ` parameterNotFoundAction`, true, ErrDistress},
		{500, "", `etcdserver: request is too large`, true, ErrRefused},
		{404, "", `admission webhook "x.example.com" denied the request: not today`, true, ErrRefused},
		{422, "Invalid", `configmaps "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, true, ErrRefused},
		{403, "Forbidden", `configmaps "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, true, ErrRefused},
		{413, "RequestEntityTooLarge", `configmaps "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, true, ErrRefused},
		{403, "Forbidden", `pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged`, true, ErrRefused},
		{403, "Forbidden", `pods "x" is forbidden: maximum cpu usage per Container is 1, but limit is 2`, true, ErrRefused},
		{413, "RequestEntityTooLarge", `Request entity too large: limit is 3145728`, true, ErrRefused},
		{500, "", `failed to create typed patch object (shop/x; apps/v1, Kind=Deployment): errors: .spec.template.spec.containers: duplicate entries for key [name="main"]`, true, ErrRefused},
		{409, "", conflict, true, ErrRefused},
		// rights
		{401, "Unauthorized", "Unauthorized", true, ErrRights},
		{403, "Forbidden", `configmaps "x" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "configmaps" in API group "" in the namespace "shop"`, true, ErrRights},
		{403, "Forbidden", `configmaps "x" is forbidden: User "u" cannot create resource "configmaps" in API group "" in the namespace "shop": RBAC: role.rbac.authorization.k8s.io "r" not found`, true, ErrRights},
		{403, "Forbidden", `forbidden: User "u" cannot get path "/apis"`, true, ErrRights},
		{403, "Forbidden", `users "u" is forbidden: User "x" cannot impersonate resource "users" in API group "" at the cluster scope`, true, ErrRights},
		{403, "Forbidden", `roles.rbac.authorization.k8s.io "x" is forbidden: user "u" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held: {}`, true, ErrRights},
		// distress
		{403, "Forbidden", `configmaps "x" is forbidden: not yet ready to handle request`, true, ErrDistress},
		{403, "Forbidden", `pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2`, true, ErrDistress},
		{403, "Forbidden", `pods "x" is forbidden: status unknown for quota: q, resources: pods`, true, ErrDistress},
		{403, "Forbidden", `services "x" is forbidden: insufficient quota to consume: services`, true, ErrDistress},
		{403, "Forbidden", `admission webhook "x" denied the request: Get "https://10.0.0.1": dial tcp 10.0.0.1:443: connect: connection refused`, true, ErrDistress},
		{400, "", `admission webhook "x" denied the request: failed to list: context deadline exceeded`, true, ErrDistress},
		{500, "", `admission webhook "x" denied the request: cache not started`, true, ErrDistress},
		{500, "", "etcdserver: mvcc: database space exceeded", true, ErrDistress},
		{500, "", "etcdserver: leader changed", true, ErrDistress},
		{500, "", "etcdserver: no leader", true, ErrDistress},
		{500, "", "etcdserver: request timed out", true, ErrDistress},
		{500, "InternalError", "Internal error occurred: resource quota evaluation timed out", true, ErrDistress},
		{500, "InternalError", `Internal error occurred: failed calling webhook "x": failed to call webhook: Post "https://x": context deadline exceeded`, true, ErrDistress},
		{500, "InternalError", `Internal error occurred: failed calling webhook "x": an error on the server ("service unavailable") has prevented the request from succeeding`, true, ErrDistress},
		{500, "", `conversion webhook for example.com/v1, Kind=Box failed: Post "https://x": EOF`, true, ErrDistress},
		{500, "InternalError", `Internal error occurred: whatever it may be`, true, ErrDistress},
		{501, "", "not implemented", true, ErrDistress},
		{405, "MethodNotAllowed", "the server does not allow this method on the requested resource", true, ErrDistress},
		{408, "Timeout", "late", true, ErrDistress},
		{410, "Expired", "too old", true, ErrDistress},
		{409, "Conflict", "the object has been modified; please apply your changes to the latest version and try again", true, ErrDistress},
		{409, "AlreadyExists", `configmaps "x" already exists`, true, ErrDistress},
		{415, "UnsupportedMediaType", "the body of the request was in an unknown format", true, ErrDistress},
		{423, "", "locked", true, ErrDistress},
		{429, "TooManyRequests", "slow down", true, ErrThrottled},
		{429, "", `admission webhook "x" denied the request: slow down`, true, ErrThrottled},
		{502, "", "bad gateway", true, ErrUnreachable},
		{503, "ServiceUnavailable", "apiserver is shutting down", true, ErrUnreachable},
		{504, "Timeout", "request did not complete within requested timeout", true, ErrDistress}, // of a slow webhook
		{429, "TooManyRequests", "storage is (re)initializing", true, ErrDistress},               // of one kind
		{429, "TooManyRequests", "storage is (re)initializing", false, ErrThrottled},             // a proxy says so
		{404, "NotFound", `namespaces "shop" not found`, true, ErrMissing},
		// who is in between: a word of a server without its header, and pages
		{403, "Forbidden", `[00] access denied to perform action`, false, ErrRights},
		{422, "Invalid", "the tunnel does not like it", false, ErrDistress},
		{400, "BadRequest", "The plain HTTP request was sent to HTTPS port", false, ErrDistress},
	}
	for _, code := range []int{400, 401, 403, 404, 409, 413, 422, 500, 503} {
		rows = append(rows, row{code, "page", "<html>" + http.StatusText(code), false, ErrUnreachable})
	}
	for _, row := range rows {
		t.Run(fmt.Sprintf("%d %.60s", row.code, row.message), func(t *testing.T) {
			t.Parallel()
			c := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
					answer(w, 201, jsonType, `{"kind":"SelfSubjectAccessReview","status":{"allowed":true}}`)
				case row.reason == "page":
					answer(w, row.code, "text/html", row.message)
				default:
					if row.audited {
						w.Header().Set("Audit-Id", "1")
					}
					body, _ := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Status: "Failure", Code: int32(row.code), Reason: metav1.StatusReason(row.reason), Message: row.message})
					if strings.HasPrefix(row.message, "{") {
						body = []byte(row.message)
					}
					answer(w, row.code, jsonType, string(body))
				}
			})
			got := applyOne(t, c).Err
			for _, class := range classes {
				if errors.Is(got, class) != (class == row.class) {
					t.Errorf("%v: is %v: %t", got, class, errors.Is(got, class))
				}
			}
		})
	}
}

// TestADenialNeedsTheRight: a 403 is a verdict on the object only when the server
// says that we have the right. Whoever cannot be asked has said nothing.
func TestADenialNeedsTheRight(t *testing.T) {
	const denial = `pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged`
	review := func(allowed bool) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			answer(w, 201, jsonType, fmt.Sprintf(`{"kind":"SelfSubjectAccessReview","status":{"allowed":%t}}`, allowed))
		}
	}
	for name, test := range map[string]struct {
		review func(http.ResponseWriter)
		class  error
	}{
		"allowed":   {review(true), ErrRefused},
		"denied":    {review(false), ErrRights},
		"forbidden": {func(w http.ResponseWriter) { answerStatus(w, 403, "Forbidden", "no") }, ErrRights},
		"a page":    {func(w http.ResponseWriter) { answer(w, 200, "text/html", page) }, ErrRights},
		"a timeout": {func(w http.ResponseWriter) { answerStatus(w, 504, "Timeout", "late") }, ErrRights},
		"cut off":   {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, ErrRights},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			c := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
					answerStatus(w, 403, "Forbidden", denial)
					return
				}
				var got authorizationv1.SelfSubjectAccessReview
				want := &authorizationv1.ResourceAttributes{Verb: "patch", Version: "v1", Resource: "configmaps", Namespace: "shop", Name: "cart"}
				if asked.Add(1) == 2 {
					want.Verb = "create"
				}
				if err := json.NewDecoder(r.Body).Decode(&got); err != nil || got.Spec.ResourceAttributes == nil || *got.Spec.ResourceAttributes != *want || r.Header.Get("Impersonate-User") != "somebody" {
					t.Errorf("asked for %+v as %s, %v", got.Spec.ResourceAttributes, r.Header.Get("Impersonate-User"), err)
				}
				test.review(w)
			})
			for range 2 { // the second time from memory, where it is known
				if err := applyOne(t, c.As("somebody")).Err; !errors.Is(err, test.class) {
					t.Errorf("got %v, want %v", err, test.class)
				}
				if test.class != ErrRefused {
					break
				}
			}
			if test.class == ErrRefused && asked.Load() != 2 {
				t.Errorf("asked %d times", asked.Load())
			}
		})
	}
}

// TestRightsAndDenialsOfARealServer: what a real API server says of a missing
// right, for swell and for a tenant's account, and of admission, which is both 403.
func TestRightsAndDenialsOfARealServer(t *testing.T) {
	c, _ := connect(t, Options{})
	namespace := space(t)
	enforce := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	if _, err := somebody(t).Resource(namespaces).Patch(t.Context(), namespace, types.MergePatchType, enforce, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	var pod *object.Object
	tries := 0
	eventually(t, func() (bool, string) { // the plugin has to hear of the label first
		tries++
		pod = newObject(t, `
apiVersion: v1
kind: Pod
metadata: {name: bad-%d, namespace: %s}
spec:
  serviceAccountName: default
  containers: [{name: main, image: x, securityContext: {privileged: true}}]
`, tries, namespace)
		err := c.bring(t.Context(), []*object.Object{pod}, nil)[0].Err
		return errors.Is(err, ErrRefused) && strings.Contains(err.Error(), "violates PodSecurity"), fmt.Sprint(err)
	})
	create(t, schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}, fmt.Sprintf(`
apiVersion: v1
kind: ResourceQuota
metadata: {name: few, namespace: %s}
spec: {hard: {count/configmaps: "0"}}
`, namespace))
	cm := configMap(t, namespace, "cart", "1")
	eventually(t, func() (bool, string) { // a new one each time: only creations are counted
		tries++
		err := c.bring(t.Context(), []*object.Object{configMap(t, namespace, fmt.Sprintf("cart-%d", tries), "1")}, nil)[0].Err
		return errors.Is(err, ErrDistress) && !errors.Is(err, ErrRefused) && strings.Contains(err.Error(), "exceeded quota"), fmt.Sprint(err)
	})
	view := c.As("system:serviceaccount:" + namespace + ":nobody")
	for _, o := range []*object.Object{cm, pod} {
		if err := view.bring(t.Context(), []*object.Object{o}, nil)[0].Err; !errors.Is(err, ErrRights) {
			t.Errorf("without a right: %v", err)
		}
	}
	duplicates := newObject(t, `
apiVersion: v1
kind: Pod
metadata: {name: twice, namespace: %s}
spec: {containers: [{name: main, image: x}, {name: main, image: y}]}
`, namespace)
	if err := c.bring(context.WithoutCancel(t.Context()), []*object.Object{duplicates}, nil)[0].Err; !errors.Is(err, ErrRefused) {
		t.Errorf("a key that is there twice: %v", err)
	}
}

// TestOwnWebhook: a webhook that does not answer is held against the bundle that
// brings it, and against no other.
func TestOwnWebhook(t *testing.T) {
	hook := newObject(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: x}
webhooks: [{name: a.example.com}, {name: b.example.com}]
`)
	definition := newObject(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec: {group: example.com, names: {kind: Box, plural: boxes}}
`)
	failing := func(message string) error {
		return &Error{Code: 500, class: ErrDistress, cause: ErrWebhook, Message: message}
	}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{failing(`Internal error occurred: failed calling webhook "b.example.com": failed to call webhook: EOF`), true},
		{failing(`Internal error occurred: failed calling webhook "c.example.com": failed to call webhook: EOF`), false},
		{failing(`conversion webhook for example.com/v1, Kind=Box failed: Post "https://x": EOF`), true},
		{failing(`conversion webhook for example.org/v1, Kind=Box failed: Post "https://x": EOF`), false},
		{&Error{Code: 500, class: ErrDistress, Message: "etcdserver: no leader"}, false},
		{errors.New(`failed calling webhook "a.example.com"`), false},
	} {
		if got := IsOwnWebhook(test.err, []*object.Object{configMap(t, "a", "b", "c"), hook, definition}); got != test.want {
			t.Errorf("%v: %t", test.err, got)
		}
	}
}

func TestAttributesOfPaths(t *testing.T) {
	for path, want := range map[string]authorizationv1.ResourceAttributes{
		"/api/v1/namespaces/shop":                                      {Version: "v1", Resource: "namespaces", Namespace: "shop", Name: "shop"},
		"/api/v1/namespaces/shop/configmaps/cart":                      {Version: "v1", Resource: "configmaps", Namespace: "shop", Name: "cart"},
		"/api/v1/nodes/n":                                              {Version: "v1", Resource: "nodes", Name: "n"},
		"/apis/apps/v1/namespaces/shop/deployments":                    {Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop"},
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/system:basic": {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Name: "system:basic"},
	} {
		want.Verb = "patch"
		if got := attributesOf(path, "patch"); got != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
