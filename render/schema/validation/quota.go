// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

var quotaTypes = types{
	core + "ResourceQuotaSpec":                 {Self: mapping(quota)},
	core + "ScopedResourceSelectorRequirement": {Self: mapping(scopeRequirement)},
	core + "LimitRangeSpec":                    {Fields: map[string]Rule{"limits": onlyOnce("type", "this type is there already: put both into one item")}, Optional: []string{"limits"}},
	core + "LimitRangeItem":                    {Self: mapping(limitItem)},
}

// quotaResources are those without a domain that a quota can be about.
var quotaResources = []string{"cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
	"limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas", "services", "replicationcontrollers", "secrets",
	"persistentvolumeclaims", "configmaps", "services.nodeports", "services.loadbalancers"}

func quota(m map[string]any) (found Flaws) {
	for name, amount := range object(m, "hard") {
		switch {
		case !document.IsKey(name):
			found = append(found, Flaws{{Want: document.WantKey}}.at(name).at("hard")...)
		case !strings.Contains(name, "/") && !slices.Contains(quotaResources, name) && !strings.HasPrefix(name, hugePages) && !strings.HasPrefix(name, "requests."+hugePages):
			found = append(found, say("no such resource for a quota"+document.DidYouMean(name, quotaResources)).at(name).at("hard")...)
		case isNegative(amount):
			found = append(found, want("at least 0").at(name).at("hard")...)
		case isWholeResource(name):
			if q, ok := quantity(amount); ok && q.MilliValue()%1000 != 0 {
				found = append(found, want("a whole number").at(name).at("hard")...)
			}
		}
	}
	scopes := list(m, "scopes")
	for i, item := range scopes {
		scope, isText := item.(string)
		if !isText {
			continue
		}
		found = append(found, scopeOf(m, scope).item(i).at("scopes")...)
		found = append(found, opposite(scope, scopes[:i]).item(i).at("scopes")...)
	}
	var before []any
	for i, item := range list(object(m, "scopeSelector"), "matchExpressions") {
		e, _ := item.(map[string]any)
		scope := text(e, "scopeName")
		if scope == "" {
			continue
		}
		f := append(scopeOf(m, scope), opposite(scope, before)...)
		found = append(found, f.at("scopeName").item(i).at("matchExpressions").at("scopeSelector")...)
		before = append(before, scope)
	}
	return found
}

var podScopes = map[string]bool{"Terminating": true, "NotTerminating": true, "NotBestEffort": true, "PriorityClass": true, "CrossNamespacePodAffinity": true}

// scopeOf is about whether a scope goes with what a quota is about.
func scopeOf(m map[string]any, scope string) Flaws {
	var fits []string
	switch {
	case podScopes[scope]:
		fits = []string{"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"}
	case scope == "BestEffort":
		fits = []string{"pods"}
	case scope == "VolumeAttributesClass":
		fits = []string{"persistentvolumeclaims", "requests.storage"}
	default:
		return want("one of Terminating, NotTerminating, BestEffort, NotBestEffort, PriorityClass, CrossNamespacePodAffinity")
	}
	for _, name := range sortedKeys(object(m, "hard")) {
		if slices.Contains(quotaResources, name) && !slices.Contains(fits, name) {
			return say("this scope does not go with " + name + " in hard")
		}
	}
	return nil
}

var opposites = map[string]string{"BestEffort": "NotBestEffort", "NotBestEffort": "BestEffort", "Terminating": "NotTerminating", "NotTerminating": "Terminating"}

func opposite(scope string, before []any) Flaws {
	for _, other := range before {
		if o := opposites[scope]; o != "" && other == o {
			return say("not with " + o + ": remove one of them")
		}
	}
	return nil
}

func scopeRequirement(m map[string]any) Flaws {
	operator, values := text(m, "operator"), list(m, "values")
	scope := text(m, "scopeName")
	switch {
	case operator == "":
		return nil
	case scope != "" && scope != "PriorityClass" && scope != "VolumeAttributesClass" && operator != "Exists":
		return want("Exists, as for all scopes but PriorityClass").at("operator")
	case (operator == "In" || operator == "NotIn") && len(values) == 0:
		return missing("values", ", In and NotIn need some")
	case (operator == "Exists" || operator == "DoesNotExist") && len(values) > 0:
		return say("remove it: Exists and DoesNotExist take no values").at("values")
	}
	return nil
}

// limitItem is about the limits of one type.
func limitItem(m map[string]any) (found Flaws) {
	kind := text(m, "type")
	if kind != "" && kind != "Pod" && kind != "Container" && kind != "PersistentVolumeClaim" && (!strings.Contains(kind, "/") || !document.IsKey(kind)) {
		found = append(found, want("one of Pod, Container, PersistentVolumeClaim").at("type")...)
	}
	if kind == "Pod" {
		for _, field := range [...]string{"default", "defaultRequest"} {
			if len(object(m, field)) > 0 {
				found = append(found, say("remove it: the type Pod has none").at(field)...)
			}
		}
	}
	if kind == "PersistentVolumeClaim" && object(m, "min")["storage"] == nil && object(m, "max")["storage"] == nil {
		found = append(found, say("want storage in min or max")...)
	}
	for _, field := range [...]string{"min", "max", "default", "defaultRequest", "maxLimitRequestRatio"} {
		for name := range object(m, field) {
			wrong := ""
			if kind == "Pod" || kind == "Container" {
				wrong = containerResource(name)
			} else if !document.IsKey(name) {
				wrong = "want " + document.WantKey
			} else if !strings.Contains(name, "/") && name != "storage" && !slices.Contains(quotaResources, name) && !strings.HasPrefix(name, hugePages) && !strings.HasPrefix(name, "requests."+hugePages) {
				wrong = "no such resource" + document.DidYouMean(name, []string{"storage"})
			}
			if wrong != "" {
				found = append(found, Flaws{{Say: wrong}}.at(name).at(field)...)
			}
		}
	}
	// A container with a default limit of its own asks for that.
	for _, pair := range [...][2]string{{"min", "max"}, {"min", "defaultRequest"}, {"defaultRequest", "max"}, {"defaultRequest", "default"}, {"min", "default"}, {"default", "max"}} {
		small, large := object(m, pair[0]), object(m, pair[1])
		for name, amount := range small {
			if large[name] != nil && exceeds(amount, large[name]) {
				found = append(found, want("at most that in "+pair[1]).at(name).at(pair[0])...)
			}
		}
	}
	for name, ratio := range object(m, "maxLimitRequestRatio") {
		if exceeds(int64(1), ratio) {
			found = append(found, want("at least 1").at(name).at("maxLimitRequestRatio")...)
		}
	}
	return found
}
