// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

const admission = "io.k8s.api.admissionregistration.v1."

var admissionTypes = types{
	admission + "ValidatingWebhook":                    {Fields: webhookFields},
	admission + "MutatingWebhook":                      {Fields: webhookFields},
	admission + "WebhookClientConfig":                  {Self: mapping(func(m map[string]any) Flaws { return oneOf(m, []string{"url", "service"}, "of url and service") }), Fields: map[string]Rule{"url": texts(webhookURL)}},
	admission + "ServiceReference":                     {Fields: map[string]Rule{"name": nonEmpty, "namespace": nonEmpty, "port": port, "path": texts(webhookPath)}},
	admission + "RuleWithOperations":                   {Self: mapping(admissionRule)},
	admission + "NamedRuleWithOperations":              {Self: mapping(admissionRule), Fields: map[string]Rule{"resourceNames": each(segment)}},
	admission + "MatchCondition":                       {Fields: map[string]Rule{"name": labelKey, "expression": nonBlank}},
	admission + "ValidatingAdmissionPolicy":            {Self: Both(mapping(needs("spec")), mapping(auditKeys))},
	admission + "ValidatingAdmissionPolicySpec":        {Self: mapping(admissionPolicy), Fields: policyFields},
	admission + "ValidatingAdmissionPolicyBinding":     {Self: mapping(needs("spec"))},
	admission + "ValidatingAdmissionPolicyBindingSpec": {Self: mapping(policyBinding), Fields: map[string]Rule{"policyName": dnsName}},
	admission + "ParamKind":                            {Self: mapping(paramKind)},
	admission + "ParamRef":                             {Self: mapping(paramRef), Fields: map[string]Rule{"name": except("", segment)}},
	admission + "Validation":                           {Fields: validationFields},
	admission + "AuditAnnotation":                      {Fields: map[string]Rule{"valueExpression": auditExpression}},
	admission + "Variable":                             {Fields: map[string]Rule{"name": variableName, "expression": nonBlank}},
	admission + "MutatingAdmissionPolicy":              {Self: mapping(needs("spec"))},
	admission + "MutatingAdmissionPolicySpec":          {Self: mapping(mutatingPolicy), Fields: policyFields},
	admission + "MutatingAdmissionPolicyBinding":       {Self: mapping(needs("spec"))},
	admission + "MutatingAdmissionPolicyBindingSpec":   {Self: mapping(mutatingBinding), Fields: map[string]Rule{"policyName": dnsName}},
	admission + "Mutation":                             {Self: mapping(mutation)},
	admission + "ApplyConfiguration":                   {Fields: map[string]Rule{"expression": nonBlank}},
	admission + "JSONPatch":                            {Fields: map[string]Rule{"expression": nonBlank}},
}

// validationFields are those of an expression of a policy, and of what it says.
var validationFields = map[string]Rule{
	"expression": nonBlank,
	"reason":     oneText("Forbidden", "Invalid", "RequestEntityTooLarge"),
	"message": texts(func(s string) string {
		return unless(s == "" || strings.TrimSpace(s) != "" && !strings.ContainsAny(strings.TrimSpace(s), "\n\r"), "one line of text")
	}),
	"messageExpression": texts(func(s string) string {
		return unless(s == "" || strings.TrimSpace(s) != "", "an expression, or no field")
	}),
}

var matchConditions = atMost(64, "conditions")

var policyFields = map[string]Rule{"matchConditions": matchConditions}

// maxAuditExpression is how long the expression of an audit annotation may be, in bytes.
const maxAuditExpression = 5 << 10

var auditExpression = Both(nonBlank, texts(func(s string) string {
	return unless(len(strings.TrimSpace(s)) <= maxAuditExpression, "at most 5120 bytes")
}))

// celName is an identifier of CEL.
var celName = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

// notVariables are words that CEL keeps for itself.
var notVariables = strings.Fields(`true false null in as break const continue else for function if import let loop package namespace
	return var void while`)

var variableName = texts(func(s string) string {
	isName := celName.MatchString(s) && !slices.Contains(notVariables, s)
	return unless(isName, "a name of letters, digits and _ that is no word of CEL")
})

// auditKeys are about the keys of audit annotations: the policy's name comes before each.
func auditKeys(m map[string]any) (found Flaws) {
	policy := text(object(m, "metadata"), "name")
	seen := map[string]bool{}
	for i, item := range list(object(m, "spec"), "auditAnnotations") {
		annotation, _ := item.(map[string]any)
		key, isText := annotation["key"].(string)
		var flaws Flaws
		switch {
		case policy == "" || !isText:
			continue
		case !document.IsKey(policy + "/" + key):
			flaws = want("at most 63 letters, digits, -, _ and .")
		case seen[key]:
			flaws = say("this key is there already: remove one of them")
		}
		found = append(found, flaws.at("key").item(i).at("auditAnnotations").at("spec")...)
		seen[key] = true
	}
	return found
}

// mutatingPolicy is about a policy that changes objects.
func mutatingPolicy(m map[string]any) (found Flaws) {
	if m["matchConstraints"] == nil {
		found = append(found, missing("matchConstraints", "")...)
	} else if match := object(m, "matchConstraints"); match != nil && len(list(match, "resourceRules")) == 0 {
		found = append(found, missing("resourceRules", "").at("matchConstraints")...)
	}
	if mutations := list(m, "mutations"); len(mutations) == 0 && (m["mutations"] == nil || mutations != nil) {
		found = append(found, missing("mutations", "")...)
	}
	if m["reinvocationPolicy"] == nil {
		found = append(found, missing("reinvocationPolicy", ", want Never or IfNeeded")...)
	}
	return append(found, noDeletions(object(m, "matchConstraints")).at("matchConstraints")...)
}

func mutatingBinding(m map[string]any) (found Flaws) {
	if m["policyName"] == nil {
		found = append(found, missing("policyName", "")...)
	}
	return append(found, noDeletions(object(m, "matchResources")).at("matchResources")...)
}

// noDeletions finds rules for deletions, in which nothing can be changed.
func noDeletions(match map[string]any) (found Flaws) {
	for i, item := range list(match, "resourceRules") {
		rule, _ := item.(map[string]any)
		for j, operation := range list(rule, "operations") {
			if operation == "DELETE" {
				flaw := want("another operation: nothing can be changed in a deletion")
				found = append(found, flaw.item(j).at("operations").item(i).at("resourceRules")...)
			}
		}
	}
	return found
}

// mutation has the field that its type names, and no other.
func mutation(m map[string]any) (found Flaws) {
	fields := map[string]string{"JSONPatch": "jsonPatch", "ApplyConfiguration": "applyConfiguration"}
	wanted := fields[text(m, "patchType")]
	if wanted == "" {
		return nil // told by the schema
	}
	for _, field := range [...]string{"applyConfiguration", "jsonPatch"} {
		switch {
		case field == wanted && m[field] == nil:
			found = append(found, missing(field, ", as the patchType says")...)
		case field != wanted && m[field] != nil:
			found = append(found, say("remove it: the patchType is "+text(m, "patchType")).at(field)...)
		}
	}
	return found
}

var webhookFields = map[string]Rule{"name": texts(fullName), "timeoutSeconds": between(1, 30),
	"matchConditions": matchConditions, "admissionReviewVersions": reviewVersions,
	"sideEffects": texts(func(s string) string {
		return unless(s == "None" || s == "NoneOnDryRun", "None or NoneOnDryRun")
	})}

var nonBlank = texts(func(s string) string { return unless(strings.TrimSpace(s) != "", "an expression") })

// fullName is a name of at least three parts.
func fullName(s string) string {
	return unless(document.IsName(s) && strings.Count(s, ".") >= 2, "a name of at least three parts, like hook.example.com")
}

func reviewVersions(v any) (found Flaws) {
	l, ok := v.([]any)
	if !ok {
		return nil
	}
	known := false
	for i, item := range l {
		s, isText := item.(string)
		if !isText {
			return nil
		}
		known = known || s == "v1" || s == "v1beta1"
		for _, other := range l[:i] {
			if other == item {
				found = append(found, say("this version is there already: remove one of them").item(i)...)
			}
		}
		if !document.IsLabel(s) || s[0] >= '0' && s[0] <= '9' {
			found = append(found, want("a version like v1").item(i)...)
		}
	}
	if !known {
		found = append(found, say("want v1 or v1beta1 among them")...)
	}
	return found
}

func webhookURL(s string) string {
	u, err := url.Parse(s)
	return unless(err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.Fragment == "" && u.RawQuery == "",
		"an https address without a user, a query and a fragment")
}

func webhookPath(s string) string {
	if s == "" {
		return ""
	}
	if !strings.HasPrefix(s, "/") {
		return "a path that starts with /"
	}
	if s == "/" {
		return ""
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(s[1:], "/"), "/") {
		if !document.IsName(part) {
			return "a path whose parts are DNS names"
		}
	}
	return ""
}

// admissionRule is about what a webhook or a policy looks at.
func admissionRule(m map[string]any) (found Flaws) {
	for _, field := range [...]string{"operations", "apiGroups", "apiVersions", "resources"} {
		l := list(m, field)
		if len(l) == 0 && (m[field] == nil || l != nil) {
			found = append(found, missing(field, "")...)
			continue
		}
		if len(l) > 1 && field != "resources" && slices.Contains(l, any("*")) {
			found = append(found, say("want * alone").at(field)...)
		}
		for i, item := range l {
			if item == "" && field != "apiGroups" {
				found = append(found, want("a string that is not empty").item(i).at(field)...)
			}
		}
	}
	return append(found, admissionResources(list(m, "resources")).at("resources")...)
}

// admissionResources finds resources that * among them has already.
func admissionResources(l []any) Flaws {
	if len(l) > 1 && slices.Contains(l, any("*/*")) {
		return say("want */* alone")
	}
	if !slices.Contains(l, any("*")) {
		return nil
	}
	// Only the last of those without a subresource counts for API servers.
	last := ""
	for _, item := range l {
		if s, _ := item.(string); !strings.Contains(s, "/") {
			last = s
		}
	}
	if last != "*" && last != "" {
		return say("want * without others but subresources")
	}
	return nil
}

func admissionPolicy(m map[string]any) (found Flaws) {
	if m["matchConstraints"] == nil {
		found = append(found, missing("matchConstraints", "")...)
	} else if match := object(m, "matchConstraints"); match != nil && len(list(match, "resourceRules")) == 0 {
		found = append(found, missing("resourceRules", "").at("matchConstraints")...)
	}
	if len(list(m, "validations")) == 0 && len(list(m, "auditAnnotations")) == 0 {
		found = append(found, say("want validations or auditAnnotations")...)
	}
	return append(found, atMost(20, "items")(m["auditAnnotations"]).at("auditAnnotations")...)
}

func policyBinding(m map[string]any) (found Flaws) {
	if m["policyName"] == nil {
		found = append(found, missing("policyName", "")...)
	}
	actions := list(m, "validationActions")
	switch {
	case len(actions) == 0 && (m["validationActions"] == nil || actions != nil):
		found = append(found, missing("validationActions", "")...)
	case slices.Contains(actions, any("Deny")) && slices.Contains(actions, any("Warn")):
		found = append(found, say("not Deny and Warn together").at("validationActions")...)
	}
	for i, item := range actions {
		if s, isText := item.(string); isText && s != "Deny" && s != "Warn" && s != "Audit" {
			found = append(found, want("one of Deny, Warn, Audit").item(i).at("validationActions")...)
		}
	}
	return found
}

func paramKind(m map[string]any) (found Flaws) {
	version, isText := m["apiVersion"].(string)
	group, v, ok := strings.Cut(version, "/")
	if !ok {
		group, v = "", version
	}
	switch {
	case m["apiVersion"] == nil || isText && version == "":
		found = append(found, missing("apiVersion", "")...)
	case isText && (group != "" && !document.IsName(group) || !document.IsLabel(v) || v[0] >= '0' && v[0] <= '9'):
		found = append(found, want("an apiVersion, like apps/v1").at("apiVersion")...)
	}
	kind, isText := m["kind"].(string)
	switch lower := strings.ToLower(kind); {
	case m["kind"] == nil || isText && kind == "":
		found = append(found, missing("kind", "")...)
	case isText && (!document.IsLabel(lower) || lower[0] >= '0' && lower[0] <= '9'):
		found = append(found, want("the name of a kind").at("kind")...)
	}
	return found
}

func paramRef(m map[string]any) (found Flaws) {
	name := text(m, "name")
	switch {
	case name != "" && m["selector"] != nil:
		found = append(found, say("remove it, or name: only one of them").at("selector")...)
	case name == "" && m["selector"] == nil && (m["name"] == nil || m["name"] == ""):
		found = append(found, say("want name or selector")...)
	}
	if action := m["parameterNotFoundAction"]; action == nil || action == "" {
		found = append(found, missing("parameterNotFoundAction", ", want Allow or Deny")...)
	} else if s, isText := action.(string); isText && s != "Allow" && s != "Deny" {
		found = append(found, want("Allow or Deny").at("parameterNotFoundAction")...)
	}
	return found
}
