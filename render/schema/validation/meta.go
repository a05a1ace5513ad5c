// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	"github.com/swell-sh/swell/config/document"
)

const (
	meta = "io.k8s.apimachinery.pkg.apis.meta.v1."
	core = "io.k8s.api.core.v1."

	maxAnnotations = 256 << 10 // bytes of keys and values together
)

var metaTypes = types{
	meta + "ObjectMeta":               {Fields: map[string]Rule{"labels": labels, "annotations": annotations}},
	meta + "LabelSelector":            {Fields: map[string]Rule{"matchLabels": labels}},
	meta + "LabelSelectorRequirement": {Self: mapping(labelRequirement), Fields: map[string]Rule{"key": labelKey, "values": each(labelValue)}},
	core + "Namespace":                {Self: mapping(podSecurity), Name: dnsLabel},
}

func labels(v any) (found Flaws) {
	m, _ := v.(map[string]any)
	for k, v := range m {
		if !document.IsKey(k) {
			found = append(found, Flaw{Path: []any{k}, Want: document.WantKey})
		}
		if s, ok := v.(string); ok && !document.IsLabelValue(s) {
			found = append(found, Flaw{Path: []any{k}, Want: document.WantLabel})
		}
	}
	return found
}

func annotations(v any) (found Flaws) {
	m, _ := v.(map[string]any)
	size := 0
	for k, v := range m {
		// Upper-case letters are allowed in the domain of an annotation.
		if !document.IsKey(k) && !document.IsKey(strings.ToLower(k)) {
			found = append(found, Flaw{Path: []any{k}, Want: document.WantKey})
		}
		s, _ := v.(string)
		size += len(k) + len(s)
	}
	if size > maxAnnotations {
		found = append(found, Flaw{Want: "at most 256 KiB of annotations"})
	}
	return found
}

// labelRequirement is one condition of a selector.
func labelRequirement(m map[string]any) Flaws { return requirement(m, false) }

// requirement is one condition for labels, fields or scopes. numbers says that Gt
// and Lt may compare.
func requirement(m map[string]any, numbers bool) Flaws {
	values := list(m, "values")
	if m["values"] != nil && values == nil {
		return nil // another problem
	}
	switch operator := text(m, "operator"); {
	case m["operator"] == nil:
		return nil // another problem
	case operator == "In" || operator == "NotIn":
		if len(values) == 0 {
			return missing("values", ", In and NotIn need some")
		}
	case operator == "Exists" || operator == "DoesNotExist":
		if len(values) > 0 {
			return say("remove it: Exists and DoesNotExist take no values").at("values")
		}
	case numbers && (operator == "Gt" || operator == "Lt"):
		if len(values) != 1 {
			return say("values: want one, as Gt and Lt take")
		}
	case numbers:
		return want("one of In, NotIn, Exists, DoesNotExist, Gt, Lt").at("operator")
	default:
		return want("one of In, NotIn, Exists, DoesNotExist").at("operator")
	}
	return nil
}

// emptySelector says whether a label selector selects by nothing.
func emptySelector(selector map[string]any) bool {
	return len(object(selector, "matchLabels")) == 0 && len(list(selector, "matchExpressions")) == 0
}

// podSecurity is about the labels by which a namespace says what its pods may
// do. The API server refuses a namespace with a value that it cannot read.
func podSecurity(m map[string]any) (found Flaws) {
	const domain = "pod-security.kubernetes.io/"
	for k, v := range object(object(m, "metadata"), "labels") {
		mode, ours := strings.CutPrefix(k, domain)
		s, isText := v.(string)
		if !ours || !isText {
			continue
		}
		f := Flaws(nil)
		switch mode {
		case "enforce", "audit", "warn":
			if s != "privileged" && s != "baseline" && s != "restricted" {
				f = want("one of privileged, baseline, restricted")
			}
		case "enforce-version", "audit-version", "warn-version":
			if minor, ok := strings.CutPrefix(s, "v1."); s != "latest" && (!ok || minor == "" || strings.Trim(minor, "0123456789") != "" || len(minor) > 1 && minor[0] == '0') {
				f = want("latest, or a version like v1.36")
			}
		}
		found = append(found, f.at(k).at("labels").at("metadata")...)
	}
	return found
}
