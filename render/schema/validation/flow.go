// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
)

const flow = "io.k8s.api.flowcontrol.v1."

var flowTypes = types{
	flow + "FlowSchema": {Self: mapping(func(m map[string]any) Flaws {
		if n := integer(object(m, "spec"), "matchingPrecedence", 0); n == 1 && text(object(m, "metadata"), "name") != "exempt" {
			return want("at least 2").at("matchingPrecedence").at("spec")
		}
		return needs("spec")(m)
	})},
	flow + "FlowSchemaSpec":                      {Self: mapping(needs("priorityLevelConfiguration")), Fields: map[string]Rule{"matchingPrecedence": between(0, 10000)}},
	flow + "PriorityLevelConfigurationReference": {Fields: map[string]Rule{"name": dnsName}},
	flow + "PolicyRulesWithSubjects": {Self: mapping(func(m map[string]any) Flaws {
		if len(list(m, "resourceRules")) == 0 && len(list(m, "nonResourceRules")) == 0 {
			return say("want resourceRules or nonResourceRules")
		}
		return nil
	}), Fields: map[string]Rule{"subjects": some("subject")}},
	flow + "Subject": {Self: mapping(flowSubject)},
	flow + "ResourcePolicyRule": {Self: mapping(func(m map[string]any) Flaws {
		if len(list(m, "namespaces")) == 0 && !isTrue(m, "clusterScope") {
			return missing("namespaces", ", or clusterScope: true")
		}
		return nil
	}), Fields: map[string]Rule{"verbs": every(some("verb"), starAlone, each(oneText("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy", "*"))), "apiGroups": every(some("group"), starAlone), "resources": every(some("resource"), starAlone),
		"namespaces": every(starAlone, each(except("*", dnsLabel)))}},
	flow + "NonResourcePolicyRule":             {Fields: map[string]Rule{"verbs": every(some("verb"), starAlone, each(oneText("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy", "*"))), "nonResourceURLs": every(some("URL"), starAlone, each(texts(urlPath)))}},
	flow + "ServiceAccountSubject":             {Fields: map[string]Rule{"name": except("*", dnsName), "namespace": dnsLabel}},
	flow + "UserSubject":                       {Fields: map[string]Rule{"name": nonEmpty}},
	flow + "GroupSubject":                      {Fields: map[string]Rule{"name": nonEmpty}},
	flow + "PriorityLevelConfiguration":        {Self: mapping(needs("spec"))},
	flow + "PriorityLevelConfigurationSpec":    {Self: mapping(priorityLevel)},
	flow + "LimitedPriorityLevelConfiguration": {Fields: map[string]Rule{"nominalConcurrencyShares": count, "lendablePercent": between(0, 100), "borrowingLimitPercent": count}},
	flow + "ExemptPriorityLevelConfiguration":  {Fields: map[string]Rule{"nominalConcurrencyShares": count, "lendablePercent": between(0, 100)}},
	flow + "FlowDistinguisherMethod":           {Fields: map[string]Rule{"type": oneText("ByUser", "ByNamespace")}},
	flow + "QueuingConfiguration":              {Self: mapping(queues), Fields: map[string]Rule{"queues": between(0, 10_000_000), "handSize": count, "queueLengthLimit": count}},
	flow + "LimitResponse": {Self: mapping(func(m map[string]any) Flaws {
		if kind, isText := m["type"].(string); isText && kind != "Reject" && kind != "Queue" {
			return want("Queue or Reject").at("type")
		}
		if m["type"] == "Reject" && m["queuing"] != nil {
			return say("only with type: Queue").at("queuing")
		}
		if m["type"] == "Queue" && m["queuing"] == nil {
			return missing("queuing", ", as the type is Queue")
		}
		return nil
	})},
}

// urlPath is the path of a request, perhaps with /* at its end.
func urlPath(s string) string {
	switch {
	case s == "*" || s == "/":
		return ""
	case !strings.HasPrefix(s, "/") || strings.Contains(s, " ") || strings.Contains(s, "//") || strings.Contains(strings.TrimSuffix(s, "/*"), "*"):
		return "a path that starts with /, and may end with /*"
	}
	return ""
}

// starAlone is for lists in which * stands for all.
func starAlone(v any) Flaws {
	if l, _ := v.([]any); len(l) > 1 && slices.Contains(l, any("*")) {
		return say("want * alone")
	}
	return nil
}

func flowSubject(m map[string]any) (found Flaws) {
	fields := map[string]string{"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}
	kind, isText := m["kind"].(string)
	field := fields[kind]
	switch {
	case !isText:
		return nil
	case field == "":
		return want("one of User, Group, ServiceAccount").at("kind")
	case m[field] == nil:
		found = append(found, missing(field, ", as the kind is "+kind)...)
	}
	for _, other := range [...]string{"user", "group", "serviceAccount"} {
		if other != field && m[other] != nil {
			found = append(found, say("remove it: the kind is "+kind).at(other)...)
		}
	}
	return found
}

func priorityLevel(m map[string]any) Flaws {
	switch m["type"] {
	case "Limited":
		if m["exempt"] != nil {
			return say("only with type: Exempt").at("exempt")
		}
		limited := object(m, "limited")
		if m["limited"] == nil {
			return missing("limited", ", as the type is Limited")
		} else if limited != nil && limited["limitResponse"] == nil {
			return missing("limitResponse", "").at("limited")
		}
	case "Exempt":
		if m["limited"] != nil {
			return say("only with type: Limited").at("limited")
		}
	case nil:
	default:
		if _, isText := m["type"].(string); isText {
			return want("Limited or Exempt").at("type")
		}
	}
	return nil
}

// queues are 64 by default, a hand 8.
func queues(m map[string]any) Flaws {
	queues, hand := integer(m, "queues", 0), integer(m, "handSize", 0)
	if queues == 0 {
		queues = 64
	}
	if hand == 0 {
		hand = 8
	}
	if queues > 0 && hand > queues {
		return want("at most the number of queues").at("handSize")
	}
	return nil
}
