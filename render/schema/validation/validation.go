// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package validation has the rules for Kubernetes' own objects that OpenAPI
// does not have: what each API server of the supported versions refuses,
// whatever its feature gates are. What only some of them refuse passes. A rule
// looks at values alone; it asks no cluster and does not know other objects.
//
// The source of the rules is the behaviour of real API servers and
// k8s.io/kubernetes/pkg/apis/*/validation of the versions 1.34 to 1.36.
package validation

// Rule finds what is wrong with a value, made of map[string]any, []any,
// string, int64, float64, bool and nil. What is of a wrong type is of no
// interest to it. A good value costs no allocation.
type Rule func(value any) Flaws

// Flaw is one thing that is wrong.
type Flaw struct {
	// Path leads from the value that was checked to the place; its elements are
	// string keys and int indexes.
	Path []any
	// Want is the rest of "want ..."; it has no part of a value. Empty when Say
	// is set.
	Want string
	// Say is the whole message; it has no part of a value but names of fields.
	Say string
	// Missing is a field below Path that has to be there and is not.
	Missing string
	// Got is set when the value at Path belongs into the message.
	Got bool
}

// Flaws is a list of what is wrong; nil is good.
type Flaws []Flaw

// at puts a key in front of each path.
func (f Flaws) at(key string) Flaws {
	for i := range f {
		f[i].Path = append([]any{key}, f[i].Path...)
	}
	return f
}

// item puts an index in front of each path.
func (f Flaws) item(index int) Flaws {
	for i := range f {
		f[i].Path = append([]any{index}, f[i].Path...)
	}
	return f
}

// want is a flaw of the value itself.
func want(text string) Flaws { return Flaws{{Want: text, Got: true}} }

// say is a flaw of the value itself, in words that tell what to do.
func say(text string) Flaws { return Flaws{{Say: text}} }

// missing is a flaw of a field that is not there.
func missing(field, why string) Flaws { return Flaws{{Missing: field, Say: field + ": missing" + why}} }

// Type is the rules of one type of Kubernetes' OpenAPI.
type Type struct {
	Self   Rule            // of the whole value; nil for none
	Fields map[string]Rule // of its fields
	// Lenient are fields below which API servers look at nothing but the types.
	Lenient []string
	// Optional are fields that OpenAPI requires and API servers do not.
	Optional []string
	Name     Rule // of the metadata.name of a kind, beyond that of all names; nil for none
}

// types are rules by the name of a type.
type types map[string]Type

// Of is the rules of a type of OpenAPI, such as io.k8s.api.core.v1.PodSpec. ok
// is false when there are none.
func Of(name string) (t Type, ok bool) {
	t, ok = all[name]
	return t, ok
}

var all = merged(metaTypes, podTypes, containerTypes, probeTypes, schedulingTypes, securityTypes, volumeTypes, claimTypes, workloadTypes,
	jobTypes, serviceTypes, configTypes, quotaTypes, autoscalingTypes, policyTypes, networkTypes, accessTypes, storageTypes,
	admissionTypes, flowTypes, endpointTypes, definitionTypes, miscellaneousTypes)

func merged(tables ...types) types {
	sum := types{}
	for _, table := range tables {
		for name, t := range table {
			old, ok := sum[name]
			if !ok {
				sum[name] = t
				continue
			}
			old.Self, old.Name = Both(old.Self, t.Self), Both(old.Name, t.Name)
			fields := make(map[string]Rule, len(old.Fields)+len(t.Fields))
			for field, rule := range old.Fields {
				fields[field] = rule
			}
			for field, rule := range t.Fields {
				fields[field] = Both(fields[field], rule)
			}
			old.Fields, old.Lenient = fields, append(old.Lenient, t.Lenient...)
			old.Optional = append(old.Optional, t.Optional...)
			sum[name] = old
		}
	}
	return sum
}

// Both applies two rules, either of which may be nil.
func Both(a, b Rule) Rule {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(value any) Flaws { return append(a(value), b(value)...) }
}
