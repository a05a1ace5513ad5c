// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/crdrule"
)

// Check is [Check] of an object of the kind, and then of the rules that its definition
// has in x-kubernetes-validations, as the API server evaluates them when it creates the
// object. As there, they are not evaluated for an object that lacks required fields, or
// has values that are too long or of a wrong type. With secret, no value is in a message.
func (k *Kind) Check(object map[string]any, secret bool) []Violation {
	k.named.Do(func() {
		kindName, _ := object["kind"].(string)
		k.secret = config.MaySecret(kindName)
	})
	secret = secret || k.secret
	found := check(k.Type(), object, secret)
	for i := range found {
		found[i].Modelled = found[i].Modelled && k.definition == ""
	}
	if k.ruled == nil || slices.ContainsFunc(found, func(v Violation) bool { return v.Blocks }) {
		return found
	}
	rules, err := k.compiled()
	if err != nil {
		return append(found, Violation{Code: document.CodeInternal, Message: "the rules of its definition: " + err.Error()})
	}
	value, _ := wholeNumbers(withDefaults(k.Type(), object)).(map[string]any)
	for _, flaw := range rules.Broken(value) {
		found = append(found, Violation{Path: flaw.Path, Code: document.CodeObject, Message: brokenRule(flaw, secret)})
	}
	slices.SortStableFunc(found, compareViolations)
	return found
}

// Defaulted is an object with the defaults of its definition, as an API server keeps it;
// the object itself where there are none. It may share parts with the object.
func (k *Kind) Defaulted(object map[string]any) map[string]any {
	if k.definition == "" {
		return object
	}
	defaulted, ok := wholeNumbers(withDefaults(k.Type(), object)).(map[string]any)
	if !ok {
		return object
	}
	return defaulted
}

// brokenRule is what the API server says, less the path.
func brokenRule(flaw crdrule.Flaw, secret bool) string {
	parts := []string{flaw.Reason}
	if flaw.Value != nil && !secret {
		parts = append(parts, Describe(flaw.Value))
	}
	switch {
	case flaw.Detail == "":
	case secret && !flaw.Static:
		parts = append(parts, "a rule of its definition, which does not hold or could not be evaluated")
	default:
		parts = append(parts, flaw.Detail)
	}
	return strings.Join(parts, ": ")
}

// wholeNumbers is a value with its numbers as a reader of [AppendJSON] sees them: those
// without a fraction are integers.
func wholeNumbers(value any) any {
	if !hasWholeFloat(value) {
		return value
	}
	switch v := value.(type) {
	case float64:
		return int64(v)
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = wholeNumbers(item)
		}
		return l
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, item := range v {
			m[name] = wholeNumbers(item)
		}
		return m
	}
	return value
}

func hasWholeFloat(value any) bool {
	switch v := value.(type) {
	case float64:
		const exact = 1 << 53
		return v == math.Trunc(v) && math.Abs(v) <= exact
	case []any:
		return slices.ContainsFunc(v, hasWholeFloat)
	case map[string]any:
		for _, item := range v {
			if hasWholeFloat(item) {
				return true
			}
		}
	}
	return false
}

// maxCompiled bounds the definitions whose rules are kept, for those that are in use no
// more. A version with a hundred rules takes about a megabyte.
const maxCompiled = 1000

// compiledRules keeps what compiling the rules of definitions gave: most are the same in
// the next commit.
type compiledRules struct {
	mu       sync.Mutex
	problems map[string][]crdrule.Problem // by the hash of the schema
	rules    map[string]func() (*crdrule.Rules, error)
}

// checkRules is [crdrule.Check] for the set's Kubernetes version.
func (s *Set) checkRules(schema []byte) []crdrule.Problem {
	key := hash("rules", schema)
	c := &s.compiled
	c.mu.Lock()
	problems, known := c.problems[key]
	c.mu.Unlock()
	if known {
		return problems
	}
	problems = crdrule.Check(schema, s.minor)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.problems == nil || len(c.problems) > maxCompiled {
		c.problems = map[string][]crdrule.Problem{}
	}
	c.problems[key] = problems
	return problems
}

// compiled are the rules of a custom resource, compiled when the first object needs them.
func (k *Kind) compiled() (*crdrule.Rules, error) {
	if rules := k.rules.Load(); rules != nil {
		return rules, nil
	}
	schema := k.ruled()
	key, c := hash("rules", schema), &k.of.base.compiled
	c.mu.Lock()
	if c.rules == nil || len(c.rules) > maxCompiled {
		c.rules = map[string]func() (*crdrule.Rules, error){}
	}
	compile := c.rules[key]
	if compile == nil {
		compile = sync.OnceValues(func() (*crdrule.Rules, error) { return crdrule.Compile(schema) })
		c.rules[key] = compile
	}
	c.mu.Unlock()
	rules, err := compile()
	if err != nil {
		return nil, fmt.Errorf("they do not compile: %w", err)
	}
	k.rules.Store(rules)
	return rules, nil
}
