// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package crdrule

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

const (
	// maxRules bounds the rules of one version of a definition: each takes about a
	// millisecond to compile. Those in use stay below 500.
	maxRules = 2000
	// ruleCost and totalCost are the estimated costs above which a server refuses a
	// rule and all rules of a schema: StaticEstimatedCostLimit and
	// StaticEstimatedCRDCostLimit of apiextensions-apiserver's validation, a package
	// that would link clients of the network.
	ruleCost  = 10_000_000
	totalCost = 100_000_000
)

// Check finds what an API server of a Kubernetes minor version like "1.36" would refuse
// in the rules of a schema, given as JSON, which is structural: rules that do not compile
// against it, and such as may cost too much. Problems come in the order of their paths.
func Check(schema []byte, kubernetes string) []Problem {
	props, err := decode(schema)
	if err != nil {
		return []Problem{{Message: err.Error()}}
	}
	minor, err := version.ParseMajorMinor(kubernetes)
	if err != nil {
		return []Problem{{Message: err.Error()}}
	}
	// A server takes only what the release before it knows too, so that it can be rolled back.
	c := check{environment: environment.MustBaseEnvSet(minor.SubtractMinor(1))}
	one := uint64(1)
	c.visit(place{schema: props, times: &one})
	if c.total > totalCost && len(c.problems) == 0 {
		c.add(nil, "%s", tooMuch("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", c.total, totalCost))
		for _, rule := range c.dear() {
			c.add(rule, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema")
		}
	}
	return c.problems
}

type check struct {
	environment *environment.EnvSet
	problems    []Problem
	rules       int
	total       uint64
	costs       []cost
}

type cost struct {
	path []any
	cost uint64
}

// place is one schema of the whole.
type place struct {
	schema *apiextensions.JSONSchemaProps
	path   []any
	parent *place
	// typeOf is the type of self, and its schema; nil as long as no rule needs it.
	typeOf *typeInfo
	below  func(*typeInfo) *typeInfo // the place's type from the parent's
	ruled  bool                      // here or above are rules
	times  *uint64                   // how often a value of the schema may be in an object; nil is unbounded
	// apart is the schema above whose values have no old ones to compare with.
	apart *place
}

type typeInfo struct {
	schema *structural.Structural
	decl   *apiservercel.DeclType
}

func (c *check) add(path []any, format string, args ...any) {
	c.problems = append(c.problems, Problem{slices.Clone(path), stable(fmt.Sprintf(format, args...))})
}

func (c *check) visit(p place) {
	if c.rules > maxRules {
		return
	}
	p.ruled = len(p.schema.XValidations) > 0 || p.parent != nil && p.parent.ruled
	if len(p.schema.XValidations) > 0 {
		c.texts(&p)
		c.compile(&p)
	}
	c.defaultOf(&p)
	times := multiply(p.times, p.most())
	for _, name := range slices.Sorted(maps.Keys(p.schema.Properties)) {
		below := p.schema.Properties[name]
		c.visit(place{schema: &below, path: append(slices.Clip(p.path), "properties", name), parent: &p, times: times,
			apart: p.apartIf(!cel.MapIsCorrelatable(p.schema.XMapType)), below: func(t *typeInfo) *typeInfo { return t.field(name) }})
	}
	if a := p.schema.AdditionalProperties; a != nil && a.Schema != nil {
		c.visit(place{schema: a.Schema, path: append(slices.Clip(p.path), "additionalProperties"), parent: &p, times: times, apart: p.apart, below: (*typeInfo).value})
	}
	if items := p.schema.Items; items != nil && items.Schema != nil {
		keyed := p.schema.XListType != nil && *p.schema.XListType == "map"
		c.visit(place{schema: items.Schema, path: append(slices.Clip(p.path), "items"), parent: &p, times: times, apart: p.apartIf(!keyed), below: (*typeInfo).item})
	}
}

// defaultOf evaluates the rules for a default and what is in it: as for a value that was
// there before, and as for one that was not.
func (c *check) defaultOf(p *place) {
	if p.schema.Default == nil || len(c.problems) > 0 {
		return
	}
	s, err := structural.NewStructural(p.schema)
	if err != nil {
		return
	}
	v := cel.NewValidator(s, s.XEmbeddedResource, celconfig.PerCallLimit)
	if v == nil {
		return
	}
	value := s.Default.Object
	found, _ := v.Validate(context.Background(), nil, s, value, value, celconfig.RuntimeCELCostBudget)
	if len(found) == 0 {
		found, _ = v.Validate(context.Background(), nil, s, value, nil, celconfig.RuntimeCELCostBudget)
	}
	var texts []string
	for _, err := range found {
		text := err.Type.String() + ": " + err.Detail
		if err.Field != "<nil>" {
			text = err.Field + ": " + text
		}
		texts = append(texts, text)
	}
	if slices.Sort(texts); len(texts) > 0 { // the server finds them in any order
		c.add(append(slices.Clip(p.path), "default"), "%s", texts[0])
	}
}

func (p *place) apartIf(apart bool) *place {
	if apart {
		return p
	}
	return p.apart
}

// most is how many values of the schemas directly below one of this may have.
func (p *place) most() *uint64 {
	one := uint64(1)
	limit := &one
	switch {
	case p.schema.Type == "object" && p.schema.AdditionalProperties != nil:
		limit = natural(p.schema.MaxProperties)
	case p.schema.Type == "array":
		limit = natural(p.schema.MaxItems)
	}
	return limit
}

func natural(n *int64) *uint64 {
	if n == nil {
		return nil
	}
	u := uint64(max(*n, 0))
	return &u
}

func multiply(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return nil
	}
	product := times(*a, *b)
	return &product
}

func times(a, b uint64) uint64 {
	over, product := bits.Mul64(a, b)
	if over > 0 {
		return math.MaxUint64
	}
	return product
}

// info is the type of self at a place: from the outermost schema with rules.
func (p *place) info() (*typeInfo, error) {
	if p == nil || !p.ruled || p.typeOf != nil {
		return p.known(), nil
	}
	above, err := p.parent.info()
	if err != nil {
		return nil, err
	}
	if above != nil {
		if p.typeOf = p.below(above); p.typeOf != nil {
			return p.typeOf, nil
		}
	}
	s, err := structural.NewStructural(p.schema)
	if err != nil {
		return nil, err
	}
	decl := model.SchemaDeclType(s, p.parent == nil || p.schema.XEmbeddedResource)
	if decl == nil {
		return nil, fmt.Errorf("the schema has no type that rules could be about: give it a type, without x-kubernetes-preserve-unknown-fields")
	}
	p.typeOf = &typeInfo{s, decl}
	return p.typeOf, nil
}

func (p *place) known() *typeInfo {
	if p == nil {
		return nil
	}
	return p.typeOf
}

func (t *typeInfo) field(name string) *typeInfo {
	s := t.schema.Properties[name]
	escaped, ok := apiservercel.Escape(name)
	if !ok || t.decl.Fields[escaped] == nil {
		return nil
	}
	return &typeInfo{&s, t.decl.Fields[escaped].Type}
}

func (t *typeInfo) item() *typeInfo {
	if t.schema.Items == nil || t.decl.ElemType == nil {
		return nil
	}
	return &typeInfo{t.schema.Items, t.decl.ElemType}
}

func (t *typeInfo) value() *typeInfo {
	if t.schema.AdditionalProperties == nil || t.schema.AdditionalProperties.Structural == nil || t.decl.ElemType == nil {
		return nil
	}
	return &typeInfo{t.schema.AdditionalProperties.Structural, t.decl.ElemType}
}

var (
	lineBreak = regexp.MustCompile(`[\n\r]`)
	reasons   = []string{"FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"}
)

// texts checks what stands beside the expressions.
func (c *check) texts(p *place) {
	for i, rule := range p.schema.XValidations {
		at := func(field string) []any { return append(slices.Clip(p.path), Keyword, i, field) }
		expression, message := strings.TrimSpace(rule.Rule), strings.TrimSpace(rule.Message)
		switch {
		case expression == "":
			c.add(append(slices.Clip(p.path), Keyword, i), "rule: missing")
		case rule.Message != "" && message == "":
			c.add(at("message"), "want a text, or no message at all")
		case lineBreak.MatchString(message):
			c.add(at("message"), "must not contain line breaks")
		case lineBreak.MatchString(expression) && message == "":
			c.add(at("rule"), "message: missing, a rule with line breaks has one")
		}
		if rule.MessageExpression != "" && strings.TrimSpace(rule.MessageExpression) == "" {
			c.add(at("messageExpression"), "want an expression, or none at all")
		}
		if r := rule.Reason; r != nil && !slices.Contains(reasons, string(*r)) {
			c.add(at("reason"), "want one of %s, got %q", strings.Join(reasons, ", "), *r)
		}
		c.fieldPath(p, rule.FieldPath, at("fieldPath"))
	}
}

func (c *check) fieldPath(p *place, path string, at []any) {
	switch {
	case path == "":
	case strings.TrimSpace(path) == "":
		c.add(at, "want a path, or none at all")
	case lineBreak.MatchString(path):
		c.add(at, "must not contain line breaks")
	default:
		s, err := structural.NewStructural(p.schema)
		if err != nil {
			return
		}
		if _, _, err := cel.ValidFieldPath(path, s); err != nil {
			c.add(at, "%q: not the path of a field: %s", path, err)
		}
	}
}

// compile compiles the rules of one schema, and adds up what they may cost.
func (c *check) compile(p *place) {
	if c.rules += len(p.schema.XValidations); c.rules > maxRules {
		c.add(append(slices.Clip(p.path), Keyword), "more than %d rules up to here", maxRules)
		return
	}
	info, err := p.info()
	if err == nil {
		var results []cel.CompilationResult
		results, err = cel.Compile(info.schema, info.decl, celconfig.PerCallLimit, c.environment, cel.NewExpressionsEnvLoader())
		for i, result := range results {
			c.result(p, i, result)
		}
	}
	if err != nil {
		c.add(append(slices.Clip(p.path), Keyword), "%s", err)
	}
}

func (c *check) result(p *place, i int, result cel.CompilationResult) {
	at := func(field string) []any { return append(slices.Clip(p.path), Keyword, i, field) }
	rule := p.schema.XValidations[i]
	if result.Error != nil {
		c.add(at("rule"), "%s", compilation(rule.Rule, result.Error.Detail))
		return
	}
	n := result.MaxCardinality
	if p.times != nil {
		n = *p.times
	}
	c.charge(at("rule"), "estimated rule cost", times(result.MaxCost, n))
	switch {
	case result.MessageExpressionError != nil:
		c.add(at("messageExpression"), "%s", compilation(rule.MessageExpression, result.MessageExpressionError.Detail))
	case result.MessageExpression != nil:
		c.charge(at("messageExpression"), "estimated messageExpression cost", result.MessageExpressionMaxCost)
	}
	switch {
	case result.UsesOldSelf && p.apart != nil:
		c.add(at("rule"), "oldSelf cannot be used on the uncorrelatable portion of the schema within %s", strings.TrimPrefix(toPath(p.apart.path).String(), "."))
	case !result.UsesOldSelf && rule.OptionalOldSelf != nil:
		c.add(at("optionalOldSelf"), "may not be set if oldSelf is not used in rule")
	}
}

func (c *check) charge(path []any, what string, spent uint64) {
	if spent > ruleCost {
		c.add(path, "%s", tooMuch(what, spent, ruleCost))
	}
	if c.total += spent; c.total < spent {
		c.total = math.MaxUint64
	}
	if spent >= totalCost/100 {
		c.costs = append(c.costs, cost{path, spent})
	}
}

// dear are the four rules that cost most.
func (c *check) dear() (paths [][]any) {
	slices.SortStableFunc(c.costs, func(a, b cost) int { return cmp.Compare(b.cost, a.cost) })
	for _, one := range c.costs[:min(len(c.costs), 4)] {
		paths = append(paths, one.path)
	}
	return paths
}

// tooMuch is the server's text.
func tooMuch(what string, spent, limit uint64) string {
	factor := fmt.Sprintf("%.1fx", float64(spent)/float64(limit))
	switch times := float64(spent) / float64(limit); {
	case times > 100:
		factor = "more than 100x"
	case times < 1.5:
		factor = fmt.Sprintf("%fx", times)
	}
	return fmt.Sprintf("%s exceeds budget by factor of %s (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)", what, factor)
}

// compileError is one line of what CEL says, before the lines that show the place.
var compileError = regexp.MustCompile(`(?m)ERROR: <input>:(\d+):(\d+): (.*)$`)

// compilation is what the compiler says of an expression, in one line.
func compilation(expression, detail string) string {
	const longest = 60
	if expression = strings.Join(strings.Fields(expression), " "); len(expression) > longest {
		expression = strings.ToValidUTF8(expression[:longest], "") + "..."
	}
	var errors []string
	for _, m := range compileError.FindAllStringSubmatch(detail, 3) {
		errors = append(errors, fmt.Sprintf("%s:%s: %s", m[1], m[2], m[3]))
	}
	if len(errors) == 0 {
		errors = []string{strings.Join(strings.Fields(detail), " ")}
	}
	return fmt.Sprintf("%q: %s", expression, strings.Join(errors, "; "))
}
