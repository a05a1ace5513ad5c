// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
)

const apps = "io.k8s.api.apps.v1."

var workloadTypes = types{
	apps + "Deployment":     {Self: mapping(needs("spec"))},
	apps + "DeploymentSpec": {Self: mapping(deployment), Fields: map[string]Rule{"replicas": count, "minReadySeconds": count, "revisionHistoryLimit": count, "progressDeadlineSeconds": count}},
	apps + "DeploymentStrategy": {Self: mapping(func(m map[string]any) Flaws {
		return noRolling(m, "Recreate")
	})},
	apps + "RollingUpdateDeployment": {Self: mapping(func(m map[string]any) Flaws {
		// Both have a default of 25%.
		if m["maxUnavailable"] != nil && m["maxSurge"] != nil && isZero(m["maxUnavailable"]) && isZero(m["maxSurge"]) {
			return say("want more than 0, or a maxSurge: with neither nothing can be replaced").at("maxUnavailable")
		}
		return nil
	}), Fields: map[string]Rule{"maxUnavailable": share, "maxSurge": anyShare}},
	apps + "ReplicaSet":      {Self: mapping(needs("spec"))},
	apps + "ReplicaSetSpec":  {Self: mapping(lasting), Fields: map[string]Rule{"replicas": count, "minReadySeconds": count}},
	apps + "StatefulSet":     {Self: mapping(needs("spec")), Name: dnsLabel},
	apps + "StatefulSetSpec": {Self: mapping(statefulSet), Fields: map[string]Rule{"replicas": count, "minReadySeconds": count, "revisionHistoryLimit": count, "serviceName": except("", dnsLabel)}},
	apps + "StatefulSetPersistentVolumeClaimRetentionPolicy": {Fields: map[string]Rule{"whenDeleted": oneText("Retain", "Delete"), "whenScaled": oneText("Retain", "Delete")}},
	apps + "StatefulSetUpdateStrategy": {Self: mapping(func(m map[string]any) Flaws {
		return noRolling(m, "OnDelete")
	})},
	apps + "RollingUpdateStatefulSetStrategy": {Fields: map[string]Rule{"partition": count}},
	apps + "StatefulSetOrdinals":              {Fields: map[string]Rule{"start": count}},
	apps + "DaemonSet":                        {Self: mapping(needs("spec"))},
	apps + "DaemonSetSpec":                    {Self: mapping(lasting), Fields: map[string]Rule{"minReadySeconds": count, "revisionHistoryLimit": count}},
	apps + "DaemonSetUpdateStrategy":          {Self: mapping(rollingDaemons)},
	apps + "RollingUpdateDaemonSet":           {Fields: map[string]Rule{"maxUnavailable": share, "maxSurge": share}},
	apps + "ControllerRevision":               {Fields: map[string]Rule{"revision": count}},
	core + "ReplicationController":            {Self: mapping(needs("spec"))},
	core + "ReplicationControllerSpec":        {Self: mapping(replicationController), Fields: map[string]Rule{"replicas": count, "minReadySeconds": count}},
	core + "PodTemplate": {Self: mapping(func(m map[string]any) Flaws {
		if m["template"] == nil {
			return missing("template", "")
		}
		return mountsUnknown(object(object(m, "template"), "spec"), nil).at("spec").at("template")
	})},
}

func noRolling(m map[string]any, kind string) Flaws {
	if m["type"] == kind && m["rollingUpdate"] != nil {
		return say("remove it: the type " + kind + " has none").at("rollingUpdate")
	}
	return nil
}

func deployment(m map[string]any) Flaws {
	found := lasting(m)
	ready := integer(m, "minReadySeconds", 0)
	if deadline := integer(m, "progressDeadlineSeconds", 600); deadline >= 0 && ready > 0 && deadline <= ready {
		if m["progressDeadlineSeconds"] == nil {
			found = append(found, want("less than progressDeadlineSeconds, which is 600 by default").at("minReadySeconds")...)
		} else {
			found = append(found, want("more than minReadySeconds").at("progressDeadlineSeconds")...)
		}
	}
	return found
}

func statefulSet(m map[string]any) Flaws {
	claims := list(m, "volumeClaimTemplates")
	found := append(keepsRunning(m, claims), selected(m)...)
	for i, item := range claims {
		claim, ok := item.(map[string]any)
		if name := object(claim, "metadata")["name"]; ok && name == nil {
			found = append(found, missing("name", "").at("metadata").item(i).at("volumeClaimTemplates")...)
		} else if f := dnsLabel(name); f != nil {
			found = append(found, f.at("name").at("metadata").item(i).at("volumeClaimTemplates")...)
		}
	}
	return found
}

// lasting is about a workload whose pods run until they are told to end.
func lasting(m map[string]any) Flaws {
	return append(keepsRunning(m, nil), selected(m)...)
}

// keepsRunning is about the template of such pods.
func keepsRunning(m map[string]any, claims []any) (found Flaws) {
	spec := object(object(m, "template"), "spec")
	if policy := text(spec, "restartPolicy"); policy != "" && policy != "Always" {
		found = append(found, want("Always").at("restartPolicy")...)
	}
	if spec["activeDeadlineSeconds"] != nil {
		found = append(found, say("remove it: only pods that end have one").at("activeDeadlineSeconds")...)
	}
	return append(found, mountsUnknown(spec, claims)...).at("spec").at("template")
}

// selected is about the selector by which a workload finds the pods of its own
// template.
func selected(m map[string]any) Flaws {
	selector, ok := m["selector"].(map[string]any)
	if !ok {
		return nil // another problem
	}
	if emptySelector(selector) {
		return say("want labels by which the pods are found").at("selector")
	}
	template, ok := m["template"].(map[string]any)
	if m["template"] == nil {
		return missing("template", "")
	} else if !ok {
		return nil
	}
	metadata := object(template, "metadata")
	if template["metadata"] != nil && metadata == nil || metadata["labels"] != nil && object(metadata, "labels") == nil {
		return nil
	}
	return matching(selector, object(metadata, "labels"), "spec.selector")
}

// matching finds the first condition of a selector that some labels do not meet.
func matching(selector, labels map[string]any, where string) Flaws {
	wanted := object(selector, "matchLabels")
	for _, key := range sortedKeys(wanted) {
		value, isText := wanted[key].(string)
		label, isLabel := labels[key].(string)
		if isText && (isLabel || labels[key] == nil) && (label != value || labels[key] == nil) {
			return Flaws{{Path: []any{"template"}, Want: fmt.Sprintf("the label %s=%s, by which %s picks the pods", key, value, where)}}
		}
	}
	for _, item := range list(selector, "matchExpressions") {
		e, _ := item.(map[string]any)
		key := text(e, "key")
		label, there := labels[key]
		if key == "" || there && label != nil && text(labels, key) == "" && label != "" {
			continue
		}
		in := slices.Contains(list(e, "values"), label)
		met := true
		switch text(e, "operator") {
		case "In":
			met = label != nil && in
		case "NotIn":
			met = label == nil || !in
		case "Exists":
			met = label != nil
		case "DoesNotExist":
			met = label == nil
		}
		if !met {
			return Flaws{{Path: []any{"template"}, Want: fmt.Sprintf("labels that meet %s.matchExpressions for %s", where, key)}}
		}
	}
	return nil
}

// sortedKeys costs nothing for the usual one key.
func sortedKeys(m map[string]any) []string {
	var room [4]string
	keys := room[:0]
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// rollingDaemons is about how the pods of a DaemonSet are replaced: either one
// goes first, or one comes first. maxUnavailable is 1 by default, maxSurge 0.
func rollingDaemons(m map[string]any) Flaws {
	rolling := object(m, "rollingUpdate")
	if m["type"] == "OnDelete" || rolling == nil {
		return nil
	}
	surges := rolling["maxSurge"] != nil && !isZero(rolling["maxSurge"])
	waits := rolling["maxUnavailable"] == nil || !isZero(rolling["maxUnavailable"])
	switch {
	case surges && waits:
		return say("want maxUnavailable: 0 beside maxSurge").at("rollingUpdate")
	case !surges && !waits:
		return say("want more than 0, or a maxSurge: with neither nothing can be replaced").at("maxUnavailable").at("rollingUpdate")
	}
	return nil
}

// replicationController finds its pods by the labels of the template unless it
// says otherwise.
func replicationController(m map[string]any) Flaws {
	if m["template"] == nil {
		return missing("template", "")
	}
	found := keepsRunning(m, nil)
	template, selector := object(m, "template"), object(m, "selector")
	labels := object(object(template, "metadata"), "labels")
	switch {
	case template == nil:
	case len(selector) == 0 && len(labels) == 0 && (m["selector"] == nil || selector != nil):
		found = append(found, missing("selector", ", and the template has no labels")...)
	default:
		found = append(found, matching(map[string]any{"matchLabels": selector}, labels, "spec.selector")...)
	}
	return found
}
