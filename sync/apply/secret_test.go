// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/line"
)

var manyLines = []string{"-----BEGIN-----\nc2VjcmV0\n-----END-----\n", `{"password":"s3cret"}`}

const oneSecret = "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: %s}, stringData: {key: %q}}"

// A refusal may quote a value as it is sent, which is not as Git has it.
func TestRefusalThatQuotesASecret(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	create(t, policies, strings.ReplaceAll(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [secrets]}]
  validations: [{expression: "false", messageExpression: "'bad key: ' + object.data.key"}]
`, "NAME", ns))
	create(t, bindings, strings.ReplaceAll(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`, "NAME", ns))
	for _, value := range manyLines {
		eventually(t, func() (bool, string) {
			got := c.bring(t.Context(), []*object.Object{newObject(t, oneSecret, ns, value)}, nil)[0]
			if got.Err != nil && !strings.Contains(got.Err.Error(), "the text is withheld") {
				t.Errorf("the secret stands in %q", got.Err)
			}
			return errors.Is(got.Err, ErrRefused), "the policy does not hold yet"
		})
	}
}

// Line breaks and quotation marks stand escaped between others.
func TestHiderKnowsWhatIsQuoted(t *testing.T) {
	for _, value := range manyLines {
		hide := hider(newObject(t, oneSecret, "ns", value))
		asJSON, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range []string{line.Fold("got " + value), fmt.Sprintf("got %q", value), "got " + string(asJSON)} {
			if !hide(message) {
				t.Errorf("not hidden: %s", message)
			}
		}
		if hide("no value at all") {
			t.Errorf("hidden for nothing")
		}
	}
}
