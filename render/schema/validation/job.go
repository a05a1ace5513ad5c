// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"

	"github.com/swell-sh/swell/config/document"
)

const batch = "io.k8s.api.batch.v1."

const cronJobName = 52 // its Jobs' names add 11 characters

var jobTypes = types{
	batch + "Job": {Self: mapping(job)},
	batch + "JobSpec": {Self: mapping(jobSpec), Fields: map[string]Rule{"parallelism": count, "completions": count, "backoffLimit": count, "activeDeadlineSeconds": count,
		"ttlSecondsAfterFinished": count, "backoffLimitPerIndex": count, "maxFailedIndexes": count,
		"managedBy": texts(func(s string) string {
			return unless(isDomainPath(s) && len(s) <= 63, "a name after a domain and a slash, like example.com/controller")
		})}},
	batch + "PodFailurePolicy":     {Fields: map[string]Rule{"rules": atMost(20, "rules")}, Optional: []string{"rules"}},
	batch + "PodFailurePolicyRule": {Self: mapping(failureRule), Fields: map[string]Rule{"action": nonEmpty, "onPodConditions": atMost(20, "conditions")}},
	batch + "PodFailurePolicyOnExitCodesRequirement": {Self: mapping(exitCodes), Fields: map[string]Rule{"operator": nonEmpty,
		"values": every(some("exit code"), atMost(255, "exit codes"))}},
	batch + "PodFailurePolicyOnPodConditionsPattern": {Fields: map[string]Rule{"type": labelKey, "status": oneText("True", "False", "Unknown")}},
	batch + "SuccessPolicy":                          {Fields: map[string]Rule{"rules": every(some("rule"), atMost(20, "rules"))}},
	batch + "SuccessPolicyRule":                      {Self: mapping(successRule), Fields: map[string]Rule{"succeededCount": count}},
	batch + "CronJob": {Self: mapping(needs("spec")), Name: texts(func(s string) string {
		return unless(len(s) <= cronJobName, fmt.Sprintf("at most %d characters", cronJobName))
	})},
	batch + "CronJobSpec": {Fields: map[string]Rule{"schedule": texts(schedule), "timeZone": texts(timeZone), "startingDeadlineSeconds": count,
		"successfulJobsHistoryLimit": count, "failedJobsHistoryLimit": count}},
	batch + "JobTemplateSpec": {Self: mapping(jobTemplate), Lenient: []string{"metadata"}},
}

const indexed = "Indexed"

// job is about a Job that nothing makes from a template.
func job(m map[string]any) (found Flaws) {
	spec := object(m, "spec")
	if m["spec"] == nil {
		return missing("spec", "")
	}
	name := text(object(m, "metadata"), "name")
	if n, ok := whole(spec["completions"]); ok && n > 0 && spec["completionMode"] == indexed && document.IsName(name) {
		if last := name + "-" + strconv.FormatInt(n-1, 10); !document.IsLabel(last) {
			found = append(found, want(fmt.Sprintf("at most %d lower-case letters, digits and -, as a pod's name adds its index", 63-len(last)+len(name))).at("name").at("metadata")...)
		}
	}
	if isTrue(spec, "manualSelector") {
		if spec["selector"] == nil {
			return append(found, missing("selector", ", as manualSelector is true").at("spec")...)
		}
		template := object(spec, "template")
		if selector := object(spec, "selector"); selector != nil && template != nil {
			found = append(found, matching(selector, object(object(template, "metadata"), "labels"), "spec.selector").at("spec")...)
		}
	} else if len(name) > 63 {
		found = append(found, want("at most 63 characters, as it becomes a label").at("name").at("metadata")...)
	}
	return found
}

// jobTemplate is about the Jobs that a CronJob makes.
func jobTemplate(m map[string]any) (found Flaws) {
	spec := object(m, "spec")
	if m["spec"] == nil {
		return missing("spec", "")
	}
	if spec["selector"] != nil {
		found = append(found, say("remove it: each Job gets one of its own").at("selector").at("spec")...)
	}
	if isTrue(spec, "manualSelector") {
		found = append(found, say("remove it: each Job gets a selector of its own").at("manualSelector").at("spec")...)
	}
	return found
}

// jobSpec is about fields of a Job that concern each other.
func jobSpec(m map[string]any) (found Flaws) {
	pod := object(object(m, "template"), "spec")
	switch policy, ok := pod["restartPolicy"]; {
	case pod == nil:
	case !ok || policy == nil || policy == "":
		found = append(found, missing("restartPolicy", ", want OnFailure or Never").at("spec").at("template")...)
	case policy == "Always":
		found = append(found, want("OnFailure or Never, as a Job ends").at("restartPolicy").at("spec").at("template")...)
	case policy == "OnFailure" && m["podFailurePolicy"] != nil:
		found = append(found, want("Never, as there is a podFailurePolicy").at("restartPolicy").at("spec").at("template")...)
	}
	found = append(found, mountsUnknown(pod, nil).at("spec").at("template")...)
	if m["maxFailedIndexes"] != nil && m["backoffLimitPerIndex"] == nil {
		found = append(found, missing("backoffLimitPerIndex", ", maxFailedIndexes needs it")...)
	}
	if m["completionMode"] == indexed {
		if m["completions"] == nil {
			found = append(found, missing("completions", ", as completionMode is Indexed")...)
		}
		if integer(m, "parallelism", 0) > 100_000 {
			found = append(found, want("at most 100000").at("parallelism")...)
		}
	} else {
		for _, field := range [...]string{"backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"} {
			if m[field] != nil {
				found = append(found, say("only with completionMode: Indexed").at(field)...)
			}
		}
	}
	if n, ok := whole(m["completions"]); ok && integer(m, "maxFailedIndexes", 0) > n {
		found = append(found, want("at most completions").at("maxFailedIndexes")...)
	}
	for i, item := range list(object(m, "podFailurePolicy"), "rules") {
		rule, _ := item.(map[string]any)
		codes := object(rule, "onExitCodes")
		if name := text(codes, "containerName"); codes["containerName"] != nil && pod != nil && sameName(list(pod, "containers"), name) < 0 && sameName(list(pod, "initContainers"), name) < 0 {
			found = append(found, want("the name of a container").at("containerName").at("onExitCodes").item(i).at("rules").at("podFailurePolicy")...)
		}
		if rule["action"] == "FailIndex" && m["backoffLimitPerIndex"] == nil {
			found = append(found, say("only with backoffLimitPerIndex").at("action").item(i).at("rules").at("podFailurePolicy")...)
		}
	}
	if n, ok := whole(m["completions"]); ok && m["completionMode"] == indexed {
		found = append(found, successes(m, n)...)
	}
	if m["podFailurePolicy"] != nil && m["podReplacementPolicy"] == "TerminatingOrFailed" {
		found = append(found, want("Failed, as there is a podFailurePolicy").at("podReplacementPolicy")...)
	}
	return found
}

func failureRule(m map[string]any) Flaws {
	codes, conditions := m["onExitCodes"] != nil, len(list(m, "onPodConditions")) > 0
	switch {
	case codes && conditions:
		return say("remove it, or onPodConditions: a rule has only one of them").at("onExitCodes")
	case !codes && !conditions:
		return say("want onExitCodes or onPodConditions")
	}
	return nil
}

// exitCodes are in order, each once.
func exitCodes(m map[string]any) Flaws {
	last, first := int64(0), true
	for i, item := range list(m, "values") {
		n, ok := whole(item)
		if !ok {
			return nil
		}
		if n == 0 && m["operator"] == "In" {
			return want("another one than 0, which is success").item(i).at("values")
		}
		if !first && n <= last {
			return say("want each once, in order").at("values")
		}
		last, first = n, false
	}
	return nil
}

func successRule(m map[string]any) Flaws {
	if m["succeededCount"] == nil && m["succeededIndexes"] == nil {
		return say("want succeededCount or succeededIndexes")
	}
	return nil
}

// successes holds the rules for success against the number of indexes.
func successes(m map[string]any, completions int64) (found Flaws) {
	for i, item := range list(object(m, "successPolicy"), "rules") {
		rule, _ := item.(map[string]any)
		total := completions
		if s, isText := rule["succeededIndexes"].(string); isText {
			n, ok := indexes(s, completions)
			if total = n; !ok {
				found = append(found, want("indexes in order, each less than completions, like 0,2-4").at("succeededIndexes").item(i).at("rules").at("successPolicy")...)
				continue
			}
		}
		if n, ok := whole(rule["succeededCount"]); ok && n > total {
			found = append(found, want("at most the number of indexes").at("succeededCount").item(i).at("rules").at("successPolicy")...)
		}
	}
	return found
}

// indexes counts those in a text like 0,2-4; ok is false when it is none.
func indexes(s string, completions int64) (n int64, ok bool) {
	if s == "" {
		return 0, true
	}
	last := int64(-1)
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseInt(from, 10, 64)
		end := first
		if err == nil && isRange {
			end, err = strconv.ParseInt(to, 10, 64)
		}
		if err != nil || first <= last || end >= completions || isRange && end <= first {
			return 0, false
		}
		n, last = n+end-first+1, end
	}
	return n, true
}

// schedule is what the API server reads with the same parser. A zone in it is
// refused of new CronJobs; some spellings of one make that parser panic.
func schedule(s string) string {
	if strings.Contains(s, "TZ") {
		return "a schedule without a time zone, which has the field timeZone"
	}
	if _, err := cron.ParseStandard(s); err != nil {
		return "the five fields of a cron line, like \"0 3 * * *\", or @hourly, @daily and the like"
	}
	return ""
}

// isDomainPath says whether s is a path after a domain: example.com/controller.
func isDomainPath(s string) bool {
	domain, path, ok := strings.Cut(s, "/")
	if !ok || path == "" || !document.IsName(domain) {
		return false
	}
	for i := range len(path) {
		if !isAlphanumeric(path[i]) && !strings.ContainsRune("/-._~%!$&'()*+,;=:", rune(path[i])) {
			return false
		}
	}
	return true
}
