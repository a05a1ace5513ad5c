// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// newJob gives a Job a selector of its own, as the API server does.
func newJob(_ *Cluster, o object) field.ErrorList {
	job := o.(*batchv1.Job)
	if job.Spec.ManualSelector != nil && *job.Spec.ManualSelector {
		return nil
	}
	labels := generatedLabels(job)
	for name, value := range job.Spec.Template.Labels {
		if _, ours := labels[name]; !ours {
			labels[name] = value
		}
	}
	job.Spec.Template.Labels = labels
	if job.Spec.Selector == nil {
		job.Spec.Selector = newSelector(batchv1.ControllerUidLabel, string(job.UID))
	}
	return nil
}

// maxCronJobName leaves room for what the controller adds.
const maxCronJobName = 52

func checkCronJob(o, old object) field.ErrorList {
	if old != nil || len(o.GetName()) <= maxCronJobName {
		return nil
	}
	return field.ErrorList{field.Invalid(metadataPath.Child("name"), o.GetName(), "must be no more than 52 characters")}
}

func checkJob(o, old object) (errs field.ErrorList) {
	now := o.(*batchv1.Job)
	errs = append(errs, checkGenerated(now)...)
	errs = append(errs, metavalidation.ValidateLabels(now.Spec.Template.Labels, specPath.Child("template", "labels"))...)
	if policy := now.Spec.Template.Spec.RestartPolicy; policy != corev1.RestartPolicyOnFailure && policy != corev1.RestartPolicyNever {
		errs = append(errs, field.Required(specPath.Child("template", "spec", "restartPolicy"), fmt.Sprintf("valid values: %q, %q", corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)))
	}
	if old == nil {
		return errs
	}
	if now.Spec.Selector == nil {
		for range 2 { // the API server comes by twice
			errs = append(errs, field.Required(specPath.Child("selector"), ""),
				field.Invalid(specPath.Child("template", "metadata", "labels"), now.Spec.Template.Labels, "`selector` does not match template `labels`"))
		}
	}
	before := old.(*batchv1.Job)
	errs = append(errs, validation.ValidateImmutableField(now.Spec.Completions, before.Spec.Completions, specPath.Child("completions"))...)
	errs = append(errs, validation.ValidateImmutableField(now.Spec.Selector, before.Spec.Selector, specPath.Child("selector"))...)
	if !mutableTemplate(before) {
		errs = append(errs, validation.ValidateImmutableField(now.Spec.Template, before.Spec.Template, specPath.Child("template"))...)
	}
	return append(errs, validation.ValidateImmutableField(now.Spec.CompletionMode, before.Spec.CompletionMode, specPath.Child("completionMode"))...)
}

// mutableTemplate: the template of a Job that never ran may be changed in part. Of
// which fields is not modelled: all are taken.
func mutableTemplate(job *batchv1.Job) bool {
	return job.Spec.Suspend != nil && *job.Spec.Suspend && job.Status.StartTime == nil
}

// checkGenerated checks the labels and the selector that newJob makes.
func checkGenerated(job *batchv1.Job) (errs field.ErrorList) {
	if job.Spec.Selector == nil || job.Spec.ManualSelector != nil && *job.Spec.ManualSelector {
		return nil
	}
	at := specPath.Child("template", "metadata", "labels")
	expected := generatedLabels(job)
	for _, name := range []string{"controller-uid", "job-name", batchv1.ControllerUidLabel, batchv1.JobNameLabel} {
		must := fmt.Sprintf("must be '%s'", expected[name])
		switch value, there := job.Spec.Template.Labels[name]; {
		case !there:
			errs = append(errs, field.Required(at.Key(name), must))
		case value != expected[name]:
			errs = append(errs, field.Invalid(at.Key(name), job.Spec.Template.Labels, must))
		}
	}
	if picks, err := metav1.LabelSelectorAsSelector(job.Spec.Selector); err == nil && !picks.Matches(labels.Set(expected)) {
		errs = append(errs, field.Invalid(specPath.Child("selector"), job.Spec.Selector, "`selector` not auto-generated"))
	}
	return errs
}

func generatedLabels(job *batchv1.Job) map[string]string {
	uid := string(job.UID)
	return map[string]string{batchv1.JobNameLabel: job.Name, "job-name": job.Name, batchv1.ControllerUidLabel: uid, "controller-uid": uid}
}
