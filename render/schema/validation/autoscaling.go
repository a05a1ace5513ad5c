// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import "strings"

const autoscaling = "io.k8s.api.autoscaling."

var autoscalingTypes = types{
	autoscaling + "v2.HorizontalPodAutoscaler":     {Self: mapping(needs("spec"))},
	autoscaling + "v1.HorizontalPodAutoscaler":     {Self: mapping(needs("spec"))},
	autoscaling + "v2.HorizontalPodAutoscalerSpec": {Self: mapping(autoscaler), Fields: map[string]Rule{"minReplicas": count, "maxReplicas": positive}},
	autoscaling + "v1.HorizontalPodAutoscalerSpec": {Self: mapping(autoscaler), Fields: map[string]Rule{"minReplicas": count, "maxReplicas": positive, "targetCPUUtilizationPercentage": positive}},
	autoscaling + "v2.CrossVersionObjectReference": {Fields: map[string]Rule{"kind": segment, "name": segment, "apiVersion": texts(groupVersion)}},
	autoscaling + "v1.CrossVersionObjectReference": {Fields: map[string]Rule{"kind": segment, "name": segment, "apiVersion": texts(groupVersion)}},
	autoscaling + "v2.MetricSpec":                  {Self: mapping(metric)},
	autoscaling + "v2.MetricIdentifier":            {Fields: map[string]Rule{"name": segment}, Lenient: []string{"selector"}},
	autoscaling + "v2.MetricTarget":                {Fields: map[string]Rule{"type": oneText("Utilization", "Value", "AverageValue"), "averageUtilization": positive, "value": moreThanNone, "averageValue": moreThanNone}},
	autoscaling + "v2.ResourceMetricSource":        {Self: mapping(resourceTarget), Fields: map[string]Rule{"name": nonEmpty}},
	autoscaling + "v2.ContainerResourceMetricSource": {Self: mapping(resourceTarget), Fields: map[string]Rule{"container": dnsLabel, "name": texts(func(s string) string {
		return strings.TrimPrefix(containerResource(s), "want ")
	})}},
	autoscaling + "v2.PodsMetricSource": {Self: mapping(func(m map[string]any) Flaws {
		if target := object(m, "target"); target != nil && target["averageValue"] == nil {
			return missing("averageValue", "").at("target")
		}
		return nil
	})},
	autoscaling + "v2.ObjectMetricSource": {Self: mapping(func(m map[string]any) Flaws {
		if target := object(m, "target"); target != nil && target["averageValue"] == nil && target["value"] == nil {
			return say("want value or averageValue").at("target")
		}
		return nil
	})},
	autoscaling + "v2.ExternalMetricSource": {Self: mapping(func(m map[string]any) Flaws {
		if target := object(m, "target"); target != nil {
			return oneOf(target, []string{"value", "averageValue"}, "target").at("target")
		}
		return nil
	})},
	autoscaling + "v2.HPAScalingRules":  {Fields: map[string]Rule{"stabilizationWindowSeconds": between(0, 3600), "policies": some("policy"), "selectPolicy": oneText("Max", "Min", "Disabled"), "tolerance": notNegative}},
	autoscaling + "v2.HPAScalingPolicy": {Fields: map[string]Rule{"type": oneText("Pods", "Percent"), "value": positive, "periodSeconds": between(1, 1800)}},
}

// autoscaler is about fields that concern each other. minReplicas is 1 by default.
func autoscaler(m map[string]any) (found Flaws) {
	least, most := integer(m, "minReplicas", 1), integer(m, "maxReplicas", 0)
	if m["minReplicas"] != nil && most > 0 && least > most {
		found = append(found, want("at most maxReplicas").at("minReplicas")...)
	}
	if ref := object(m, "scaleTargetRef"); ref != nil {
		version, isText := ref["apiVersion"].(string)
		kind := text(ref, "kind")
		if (isText || ref["apiVersion"] == nil) && kind != "" && kind != "ReplicationController" && !strings.Contains(strings.Trim(version, "/"), "/") {
			found = append(found, say("want an apiVersion with the group of the kind, like apps/v1").at("scaleTargetRef")...)
		}
	}
	if n, ok := whole(m["minReplicas"]); ok && n == 0 {
		for _, item := range list(m, "metrics") {
			metric, _ := item.(map[string]any)
			if kind := metric["type"]; kind == "Object" || kind == "External" {
				return found
			}
		}
		found = append(found, want("at least 1, or a metric of type Object or External").at("minReplicas")...)
	}
	return found
}

// metricSources are the fields of a metric by its type.
var metricSources = map[string]string{"Object": "object", "Pods": "pods", "Resource": "resource", "ContainerResource": "containerResource", "External": "external"}

func metric(m map[string]any) (found Flaws) {
	kind, isText := m["type"].(string)
	field := metricSources[kind]
	if !isText {
		return nil
	}
	if field == "" {
		return want("one of Object, Pods, Resource, ContainerResource, External").at("type")
	}
	if m[field] == nil {
		found = append(found, missing(field, ", as the type is "+kind)...)
	}
	for _, other := range [...]string{"object", "pods", "resource", "containerResource", "external"} {
		if other != field && m[other] != nil {
			found = append(found, say("remove it: the type is "+kind).at(other)...)
		}
	}
	return found
}

func resourceTarget(m map[string]any) Flaws {
	if target := object(m, "target"); target != nil {
		return oneOf(target, []string{"averageUtilization", "averageValue"}, "target").at("target")
	}
	return nil
}

// moreThanNone is a quantity above 0.
var moreThanNone = Rule(func(v any) Flaws {
	if q, ok := quantity(v); ok && q.Sign() <= 0 {
		return want("more than 0")
	}
	return nil
})

// groupVersion is what an apiVersion consists of.
func groupVersion(s string) string {
	return unless(strings.Count(s, "/") <= 1, "an apiVersion, like apps/v1")
}
