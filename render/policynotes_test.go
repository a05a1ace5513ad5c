// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// TestPolicyNotes: what warns, what changes objects and what cannot be judged is a note
// and holds nothing; a verdict that needs no answer to what is not known is given.
func TestPolicyNotes(t *testing.T) {
	files := judgedFiles()
	files["policies/a.yaml"] = &fstest.MapFile{Data: []byte(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: asks}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps, pods]}]}
  matchConditions:
  - {name: no-pods, expression: object.kind != 'Pod'}
  - {name: not-us, expression: "!request.userInfo.username.startsWith('system:')"}
  validations: [{expression: "false"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: asks}
spec: {policyName: asks, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: partly}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  variables: [{name: may, expression: "authorizer.group('').resource('pods').check('create').allowed()"}]
  validations:
  - {expression: variables.may}
  - {expression: object.metadata.name != 'two', message: not two}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: partly}
spec: {policyName: partly, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: warns}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "!object.spec.hostNetwork", message: the network of the host}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: warns}
spec: {policyName: warns, validationActions: [Warn]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: secret}
spec:
  paramKind: {apiVersion: v1, kind: Secret}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: params.data.x == 'y'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: secret}
spec: {policyName: secret, validationActions: [Deny], paramRef: {name: x, namespace: shop, parameterNotFoundAction: Deny}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: sidecar}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  matchConditions: [{name: host, expression: object.spec.hostNetwork == true}]
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: sidecar}
spec: {policyName: sidecar}
`)}
	files["services/two/two.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, namespace: shop}\n")}
	var c Compiler
	s := c.Snapshot("", config.Files(files))
	if got, want := s.Problems.String(), `services/two/two.yaml:3:12: metadata.name: refused by policy "partly" (binding "partly"): not two`; got != want {
		t.Errorf("problems: got %s, want %s", got, want)
	} else if s.Problems[0].Basis != document.Modelled {
		t.Errorf("basis %q", s.Problems[0].Basis)
	}
	got := s.Units.Get("services/app").Notes.String()
	want := strings.TrimSpace(`
policies/a.yaml:2:1: policy "asks" (binding "asks"): not judged: it asks for request.userInfo
policies/a.yaml:17:1: policy "partly" (binding "partly"): not judged: one of its validations asks for authorizer
policies/a.yaml:44:1: policy "secret" (binding "secret"): not judged: its parameters are Secrets
services/app: objects of kind Pod will be changed by MutatingAdmissionPolicy "sidecar" (binding "sidecar")
services/app/app.yaml:8:8: spec.hostNetwork: policy "warns" (binding "warns") warns: the network of the host`)
	if diff := differ(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestPolicyTellsNoSecret: neither a message nor an error of a policy has what a Secret
// holds.
func TestPolicyTellsNoSecret(t *testing.T) {
	files := judgedFiles()
	files["swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\nspec: {checks: {plainSecrets: pass}}\n")}
	files["services/app/app.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: one, namespace: shop}\nstringData: {password: hunter2hunter2}\n")}
	files["policies/a.yaml"] = &fstest.MapFile{Data: []byte(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: tells}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]}
  validations:
  - {expression: "false", messageExpression: "'it is ' + object.stringData.password"}
  - {expression: int(object.stringData.password) > 1}
  - {expression: "object[object.stringData.password] == 1"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: tells}
spec: {policyName: tells, validationActions: [Deny]}
`)}
	var c Compiler
	s := c.Snapshot("", config.Files(files))
	if len(s.Problems) != 3 {
		t.Errorf("got %s", s.Problems)
	}
	if text := s.Problems.String(); strings.Contains(text, "hunter2") {
		t.Error(text)
	}
}
