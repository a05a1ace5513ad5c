// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

var schedulingTypes = types{
	core + "Toleration":               {Self: mapping(toleration), Fields: map[string]Rule{"key": except("", labelKey)}},
	core + "TopologySpreadConstraint": {Self: mapping(spread), Fields: map[string]Rule{"maxSkew": positive, "topologyKey": nonEmpty, "whenUnsatisfiable": nonEmpty, "minDomains": positive}},
	core + "NodeAffinity":             {Fields: map[string]Rule{"requiredDuringSchedulingIgnoredDuringExecution": mapping(nodeLabelValues)}},
	core + "NodeSelector":             {Fields: map[string]Rule{"nodeSelectorTerms": some("term")}},
	core + "NodeSelectorTerm":         {Fields: map[string]Rule{"matchFields": each(mapping(matchField))}},
	core + "NodeSelectorRequirement":  {Self: mapping(nodeRequirement), Fields: map[string]Rule{"key": labelKey}},
	core + "PreferredSchedulingTerm":  {Fields: map[string]Rule{"weight": between(1, 100)}},
	core + "WeightedPodAffinityTerm":  {Fields: map[string]Rule{"weight": between(1, 100)}},
	core + "PodAffinityTerm":          {Self: mapping(affinityTerm), Fields: map[string]Rule{"topologyKey": labelKey, "namespaces": each(dnsLabel)}},
}

func toleration(m map[string]any) (found Flaws) {
	operator, value := text(m, "operator"), m["value"]
	if text(m, "key") == "" && (m["key"] == nil || m["key"] == "") && operator != "Exists" && (m["operator"] == nil || operator != "") {
		found = append(found, say("want operator: Exists, or a key")...)
	}
	if m["tolerationSeconds"] != nil && text(m, "effect") != "NoExecute" {
		found = append(found, say("only with effect: NoExecute").at("tolerationSeconds")...)
	}
	switch s, isText := value.(string); {
	case !isText:
	case operator == "Exists" && s != "":
		found = append(found, say("remove it: Exists takes no value").at("value")...)
	case operator == "" || operator == "Equal":
		found = append(found, labelValue(s).at("value")...)
	}
	return found
}

func spread(m map[string]any) Flaws {
	if when := text(m, "whenUnsatisfiable"); m["minDomains"] != nil && when != "" && when != "DoNotSchedule" {
		return say("only with whenUnsatisfiable: DoNotSchedule").at("minDomains")
	}
	return labelKeys(m, "matchLabelKeys")
}

// labelKeys is about keys of labels that a selector is made of.
func labelKeys(m map[string]any, field string) (found Flaws) {
	keys := list(m, field)
	if len(keys) == 0 {
		return nil
	}
	if m["labelSelector"] == nil {
		return say("only with a labelSelector").at(field)
	}
	return each(labelKey)(m[field]).at(field)
}

func affinityTerm(m map[string]any) (found Flaws) {
	if m["matchLabelKeys"] == nil && m["mismatchLabelKeys"] == nil {
		return nil
	}
	found = append(labelKeys(m, "matchLabelKeys"), labelKeys(m, "mismatchLabelKeys")...)
	for i, key := range list(m, "matchLabelKeys") {
		for _, other := range list(m, "mismatchLabelKeys") {
			if same(key, other) {
				found = append(found, say("this key is in mismatchLabelKeys as well: remove one of them").item(i).at("matchLabelKeys")...)
			}
		}
	}
	return found
}

// nodeRequirement is one condition for the labels or fields of a node.
func nodeRequirement(m map[string]any) Flaws { return requirement(m, true) }

// matchField is one condition for the fields of a node, which has one of them.
func matchField(m map[string]any) (found Flaws) {
	if key, isText := m["key"].(string); isText && key != "metadata.name" {
		found = append(found, want("metadata.name, the only field of nodes that can be asked for").at("key")...)
	}
	switch operator := text(m, "operator"); {
	case operator == "":
	case operator != "In" && operator != "NotIn":
		found = append(found, want("In or NotIn").at("operator")...)
	case len(list(m, "values")) != 1:
		found = append(found, say("values: want one")...)
	default:
		found = append(found, each(dnsName)(m["values"]).at("values")...)
	}
	return found
}

// nodeLabelValues looks at the values of labels that a node has to have; what is
// only preferred may have others.
func nodeLabelValues(m map[string]any) (found Flaws) {
	for i, item := range list(m, "nodeSelectorTerms") {
		term, _ := item.(map[string]any)
		for j, item := range list(term, "matchExpressions") {
			requirement, _ := item.(map[string]any)
			if f := each(labelValue)(requirement["values"]); f != nil {
				found = append(found, f.at("values").item(j).at("matchExpressions").item(i).at("nodeSelectorTerms")...)
			}
		}
	}
	return found
}
