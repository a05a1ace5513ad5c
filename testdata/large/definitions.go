// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package large

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Operators is a monorepo with as many definitions of custom resources as it says, and one
// ConfigMap. A definition is as long as those of operators that hold templates of pods:
// about 66 KB, a third of it descriptions.
type Operators struct {
	Definitions int
	InUnit      bool // they stand in one unit, not in the folder of schemas
}

// Files calls each with all files of the monorepo: one definition a file.
func (o Operators) Files(each func(name, content string) error) error {
	folder := "schemas"
	if o.InUnit {
		folder = "services/operators"
	}
	for name, content := range map[string]string{
		"swell.yaml":              "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: operators}\nspec: {}\n",
		"fleet/fleet.yaml":        operatorsFleet,
		"services/swell.yaml":     "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: all, placement: {topology: cluster}}\n",
		"services/settings/a.yml": ConfigMap("default", "settings"),
	} {
		if err := each(name, content); err != nil {
			return err
		}
	}
	for i := range o.Definitions {
		if err := each(fmt.Sprintf("%s/definition%03d.yaml", folder, i), Definition(i)); err != nil {
			return err
		}
	}
	return nil
}

const operatorsFleet = `apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: dev-1}
spec: {}
---
apiVersion: swell.sh/v1
kind: Rollout
metadata: {name: default}
spec: {waves: [{name: all}]}
`

// definitionSize is about the length of a definition, in bytes.
const definitionSize = 66_000

// Definition is a CustomResourceDefinition of a kind Thing<i>, the same each time.
func Definition(i int) string {
	d := definition{random: rand.New(rand.NewPCG(uint64(i), 1))}
	d.write(i, definitionSize)
	return d.text.String()
}

// write writes definition i, of about size bytes.
func (d *definition) write(i, size int) {
	d.line(0, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations: {controller-gen.kubebuilder.io/version: v0.17.0}
  name: thing%03ds.group%02d.example.com
spec:
  group: group%02d.example.com
  names: {kind: Thing%03d, listKind: Thing%03dList, plural: thing%03ds, singular: thing%03d}
  scope: Namespaced
  versions:`, i, i/10, i/10, i, i, i, i)
	versions := 1 + (i%4)/3
	for v := range versions {
		d.line(1, "- name: v%d\n    served: true\n    storage: %t\n    subresources: {status: {}}\n    schema:\n      openAPIV3Schema:", v+1, v == 0)
		d.line(4, "description: %s", d.words(12))
		d.line(4, "type: object\n        required: [spec]\n        properties:\n          apiVersion: {type: string}\n          kind: {type: string}\n          metadata: {type: object}\n          spec:")
		d.line(6, "type: object")
		if i%10 == 0 {
			d.line(6, "x-kubernetes-validations:\n            - {rule: \"!has(self.paused) || !self.paused || self.replicas == 0\", message: paused with replicas}")
		}
		d.line(6, "properties:\n              paused: {type: boolean}\n              replicas: {type: integer, format: int32, minimum: 0, default: 1}")
		d.end = size*(v+1)/versions - 1500
		for n := 0; d.text.Len() < d.end; n++ {
			d.property(7, n, 5)
		}
		d.line(5, statusSchema)
	}
}

const statusSchema = `status:
            type: object
            properties:
              observedGeneration: {type: integer, format: int64}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  required: [lastTransitionTime, message, reason, status, type]
                  properties:
                    lastTransitionTime: {type: string, format: date-time}
                    message: {type: string, maxLength: 32768}
                    reason: {type: string, maxLength: 1024, minLength: 1, pattern: "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"}
                    status: {type: string, enum: ["True", "False", Unknown]}
                    type: {type: string, maxLength: 316}`

// definition is one that is being written.
type definition struct {
	random *rand.Rand
	text   strings.Builder
	end    int // from here on, fields have none of their own
}

func (d *definition) line(depth int, format string, args ...any) {
	d.text.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&d.text, format, args...)
	d.text.WriteByte('\n')
}

var vocabulary = strings.Fields(`the of a to container pod volume name secret must be that which is field this object
	when set defaults used by controller reference specifies key value list optional resource namespace more info
	labels selector policy time seconds number port path mounted image node affinity scheduling toleration`)

func (d *definition) words(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = vocabulary[d.random.IntN(len(vocabulary))]
	}
	return strings.Join(words, " ")
}

// property writes the schema of a field, with fields of its own down to a depth.
func (d *definition) property(depth, n, levels int) {
	d.line(depth, "%s%d:", d.words(1), n)
	d.line(depth+1, "description: |-\n%s%s\n%s%s", strings.Repeat("  ", depth+2), d.words(8), strings.Repeat("  ", depth+2), d.words(6))
	if d.text.Len() > d.end {
		levels = 0
	}
	switch kind := d.random.IntN(10); {
	case levels > 0 && kind < 3:
		d.line(depth+1, "type: object\n%sproperties:", strings.Repeat("  ", depth+1))
		for i := range 2 + d.random.IntN(6) {
			d.property(depth+2, i, levels-1)
		}
	case levels > 0 && kind < 5:
		d.line(depth+1, "type: array")
		d.line(depth+1, "items:")
		d.line(depth+2, "type: object")
		d.line(depth+2, "properties:")
		for i := range 2 + d.random.IntN(5) {
			d.property(depth+3, i, levels-1)
		}
	case kind < 6:
		d.line(depth+1, "type: object")
		d.line(depth+1, "additionalProperties: {type: string}")
	case kind < 7:
		d.line(depth+1, "type: integer")
		d.line(depth+1, "format: int32")
	case kind < 8:
		d.line(depth+1, "type: string\n%senum: [Always, IfNotPresent, Never]", strings.Repeat("  ", depth+1))
	case kind < 9:
		d.line(depth+1, "anyOf: [{type: integer}, {type: string}]")
		d.line(depth+1, "x-kubernetes-int-or-string: true")
	default:
		d.line(depth+1, "type: string")
	}
}
