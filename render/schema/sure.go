// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/swell-sh/swell/config"
)

// sure are rules that OpenAPI does not have, by type and field: what every API
// server of the supported versions refuses, whatever its feature gates. Their
// source is validation.go of each group below k8s.io/kubernetes/pkg/apis.
var sure = map[string]map[string]*Rules{
	"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
		"labels":      {check: labels},
		"annotations": {check: annotations},
	},
	"io.k8s.api.core.v1.Container":          {"name": dnsLabel, "ports": {check: portNames}},
	"io.k8s.api.core.v1.EphemeralContainer": {"name": dnsLabel},
	"io.k8s.api.core.v1.ServiceSpec":        {"ports": {check: servicePorts}},
	"io.k8s.api.core.v1.PodSpec":            {"containers": {check: images}, "initContainers": {check: images}},
	"io.k8s.api.core.v1.Volume":             {"name": dnsLabel},
	"io.k8s.api.core.v1.ContainerPort":      {"containerPort": port, "name": {check: portName}},
	"io.k8s.api.core.v1.ServicePort":        {"port": port},
	"io.k8s.api.core.v1.ConfigMap":          {"data": {check: fileNames}, "binaryData": {check: fileNames}},
	"io.k8s.api.core.v1.Secret":             {"data": {check: fileNames}, "stringData": {check: fileNames}},
	"io.k8s.api.core.v1.ReplicationControllerSpec": {
		"replicas": count, "minReadySeconds": count},
	"io.k8s.api.apps.v1.Deployment":  {"spec": {check: selects}},
	"io.k8s.api.apps.v1.ReplicaSet":  {"spec": {check: selects}},
	"io.k8s.api.apps.v1.StatefulSet": {"spec": {check: selects}},
	"io.k8s.api.apps.v1.DaemonSet":   {"spec": {check: selects}},
	"io.k8s.api.apps.v1.DeploymentSpec": {
		"replicas": count, "minReadySeconds": count, "revisionHistoryLimit": count},
	"io.k8s.api.apps.v1.ReplicaSetSpec":  {"replicas": count, "minReadySeconds": count},
	"io.k8s.api.apps.v1.StatefulSetSpec": {"replicas": count, "minReadySeconds": count},
	"io.k8s.api.apps.v1.DaemonSetSpec":   {"minReadySeconds": count},
	"io.k8s.api.batch.v1.CronJobSpec":    {"schedule": {check: schedule}},
	"io.k8s.api.batch.v1.JobSpec": {
		"parallelism": count, "completions": count, "backoffLimit": count, "activeDeadlineSeconds": count, "ttlSecondsAfterFinished": count},
	"io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec": {"minReplicas": count, "maxReplicas": positive},
	"io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerSpec": {"minReplicas": count, "maxReplicas": positive},
}

// sureNames are rules for the names of objects, beyond that of all names.
var sureNames = map[string]*Rules{
	"io.k8s.api.core.v1.Namespace": {check: nameLabel},
	"io.k8s.api.core.v1.Service":   {check: nameLabel},
	"io.k8s.api.batch.v1.CronJob":  {MaxLength: &cronJobName},
}

var cronJobName = int64(52) // its Jobs' names add 11 characters

// nameLabel takes no notice of what is no name at all.
func nameLabel(value any) []flaw {
	if s, ok := value.(string); ok && config.IsName(s) && !config.IsLabel(s) {
		return []flaw{{want: "at most 63 lower-case letters, digits and -"}}
	}
	return nil
}

var (
	one, zero, lastPort = 1.0, 0.0, 65535.0

	port     = &Rules{Minimum: &one, Maximum: &lastPort}
	count    = &Rules{Minimum: &zero, Format: "int32"}
	positive = &Rules{Minimum: &one, Format: "int32"}
	dnsLabel = &Rules{check: func(value any) []flaw {
		if s, ok := value.(string); ok && !config.IsLabel(s) {
			return []flaw{{want: "at most 63 lower-case letters, digits and -"}}
		}
		return nil
	}}
)

func rfc3339(value any) []flaw {
	s, ok := value.(string)
	if !ok {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, s); err != nil {
		return []flaw{{want: "a time like 2006-01-02T15:04:05Z"}}
	}
	return nil
}

const (
	wantKey   = "a key of at most 63 letters, digits, -, _ and ., which may follow a domain and a slash"
	wantLabel = "at most 63 letters, digits, -, _ and ., a letter or digit first and last"
	wantFile  = "a key of at most 253 letters, digits, -, _ and ."

	maxAnnotations = 256 << 10 // bytes of keys and values together
)

func labels(value any) (flaws []flaw) {
	m, _ := value.(map[string]any)
	for key, v := range m {
		if !isQualified(key) {
			flaws = append(flaws, flaw{key: key, want: wantKey})
		}
		if s, ok := v.(string); ok && s != "" && !isWord(s) {
			flaws = append(flaws, flaw{key: key, want: wantLabel})
		}
	}
	return flaws
}

func annotations(value any) (flaws []flaw) {
	m, _ := value.(map[string]any)
	size := 0
	for key, v := range m {
		// Upper-case letters are allowed in the domain of an annotation.
		if !isQualified(key) && !isQualified(strings.ToLower(key)) {
			flaws = append(flaws, flaw{key: key, want: wantKey})
		}
		s, _ := v.(string)
		size += len(key) + len(s)
	}
	if size > maxAnnotations {
		flaws = append(flaws, flaw{want: "at most 256 KiB of annotations"})
	}
	return flaws
}

func fileNames(value any) (flaws []flaw) {
	m, _ := value.(map[string]any)
	for key := range m {
		if !isFileName(key) {
			flaws = append(flaws, flaw{key: key, want: wantFile})
		}
	}
	return flaws
}

func isFileName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 253 && s != "." && !strings.HasPrefix(s, "..")
}

// portName is an IANA service name.
func portName(value any) []flaw {
	s, ok := value.(string)
	if !ok || s == "" {
		return nil
	}
	letter := false
	for i := range len(s) {
		letter = letter || s[i] >= 'a' && s[i] <= 'z'
	}
	if len(s) > 15 || !letter || !config.IsLabel(s) || strings.Contains(s, "--") {
		return []flaw{{want: "at most 15 lower-case letters, digits and single -, with a letter"}}
	}
	return nil
}

// schedule is what the API server reads with the same parser. A zone in it is
// refused of new CronJobs; some spellings of one make that parser panic.
func schedule(value any) []flaw {
	s, ok := value.(string)
	switch {
	case !ok:
		return nil
	case strings.Contains(s, "TZ"):
		return []flaw{{want: "a schedule without a time zone, which has the field timeZone"}}
	}
	if _, err := cron.ParseStandard(s); err != nil {
		return []flaw{{want: "the five fields of a cron line, like \"0 3 * * *\", or @hourly, @daily and the like"}}
	}
	return nil
}

// images finds containers without one.
func images(value any) (flaws []flaw) {
	list, _ := value.([]any)
	for i, item := range list {
		container, ok := item.(map[string]any)
		if image := container["image"]; ok && (image == nil || image == "") {
			flaws = append(flaws, flaw{item: i + 1, want: "an image"})
		}
	}
	return flaws
}

// selects finds a workload that would not pick the pods of its own template.
func selects(value any) []flaw {
	spec, _ := value.(map[string]any)
	selector, _ := spec["selector"].(map[string]any)
	wanted, _ := selector["matchLabels"].(map[string]any)
	template, ok := spec["template"].(map[string]any)
	if !ok {
		return nil // which is another problem
	}
	metadata, _ := template["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		value, isText := wanted[key].(string)
		label, isLabel := labels[key].(string)
		if isText && (isLabel || labels[key] == nil) && label != value {
			return []flaw{{key: "template", want: fmt.Sprintf("the label %s=%s, by which spec.selector picks the pods", key, value)}}
		}
	}
	return nil
}

// portNames finds ports of one name in a list of ports.
func portNames(value any) []flaw { return ports(value, false) }

// servicePorts are named when they are several.
func servicePorts(value any) []flaw {
	list, _ := value.([]any)
	return ports(value, len(list) > 1)
}

// ports leaves ports that are there twice to the keys of their list.
func ports(value any, named bool) (flaws []flaw) {
	list, _ := value.([]any)
	first, seen := map[string]int{}, map[string]bool{}
	for i, item := range list {
		m, _ := item.(map[string]any)
		protocol := m["protocol"]
		if protocol == nil {
			protocol = "TCP"
		}
		same := fmt.Sprint(m["port"], m["containerPort"], protocol)
		name, _ := m["name"].(string)
		other, taken := first[name]
		switch {
		case m == nil || seen[same]:
			continue
		case name == "" && named:
			flaws = append(flaws, flaw{item: i + 1, want: "a name for each of several ports"})
		case name != "" && taken:
			flaws = append(flaws, flaw{item: i + 1, want: fmt.Sprintf("another name than that of item %d", other)})
		}
		seen[same] = true
		if !taken {
			first[name] = i
		}
	}
	return flaws
}

// isQualified says whether s is a key of labels: app, app.kubernetes.io/name.
func isQualified(s string) bool {
	if domain, name, ok := strings.Cut(s, "/"); ok {
		return config.IsName(domain) && isWord(name)
	}
	return isWord(s)
}

// isWord says whether s can be the value of a label, and not an empty one.
func isWord(s string) bool {
	for i := range len(s) {
		inner := (s[i] == '-' || s[i] == '_' || s[i] == '.') && i > 0 && i < len(s)-1
		if !inner && !isAlphanumeric(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
