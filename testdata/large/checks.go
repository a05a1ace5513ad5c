// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package large

import (
	"errors"
	"fmt"
	"strings"
)

// Checks calls each with the files that judge the units of a checked monorepo.
func (m Monorepo) Checks(each func(name, content string) error) error {
	var tenants strings.Builder
	for team := range (m.Specs + 99) / 100 {
		fmt.Fprintf(&tenants, `apiVersion: swell.sh/v1
kind: Tenant
metadata: {name: team%04d}
spec:
  folders: [services/team%04d]
  namespaces: ["team%04d-*"]
  kinds: ["*", "!RoleBinding.rbac.authorization.k8s.io"]
  clusterKinds: [Namespace]
  labels: ["*", "!secret.example.com/*"]
  annotations: ["*", "!nginx.ingress.kubernetes.io/*-snippet"]
  images: ["registry.example.com/*"]
  podSecurity: privileged
---
`, team, team, team)
	}
	return errors.Join(each("fleet/tenants.yaml", tenants.String()), each("policies/large.yaml", policies))
}

// policies are of the sort that platforms have: labels, images, resources, no host.
const policies = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: labels}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: ["*"]}
  validations:
  - {expression: "has(object.metadata.labels) && 'app.kubernetes.io/managed-by' in object.metadata.labels", message: no label}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: labels}
spec: {policyName: labels, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: containers}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments, statefulsets, daemonsets]}
  variables:
  - {name: containers, expression: "object.spec.template.spec.containers"}
  validations:
  - {expression: "variables.containers.all(c, c.image.startsWith('registry.example.com/'))", message: another registry}
  - {expression: "variables.containers.all(c, !c.image.endsWith(':latest'))", message: no fixed tag}
  - {expression: "!has(object.spec.template.spec.hostNetwork) || !object.spec.template.spec.hostNetwork", message: the network of the host}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: containers}
spec: {policyName: containers, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: services}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [services]}
  validations:
  - {expression: "!has(object.spec.type) || object.spec.type != 'NodePort'", message: no node ports}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: services}
spec: {policyName: services, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: autoscaling}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [autoscaling], apiVersions: [v2], operations: [CREATE, UPDATE], resources: [horizontalpodautoscalers]}
  validations:
  - {expression: "object.spec.maxReplicas <= 50", message: too many}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: autoscaling}
spec: {policyName: autoscaling, validationActions: [Deny]}
`
