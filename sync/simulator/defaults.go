// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// setDefaults sets the defaults that an API server sets, those of defaults.go in
// pkg/apis of Kubernetes.
func (k *kind) setDefaults(o object) {
	if k.custom != nil {
		k.custom.setDefaults(o)
		return
	}
	switch o := o.(type) {
	case *corev1.Namespace:
		if o.Name != "" {
			setLabel(o, corev1.LabelMetadataName, o.Name)
		}
		preset(&o.Status.Phase, corev1.NamespaceActive)
	case *corev1.Secret:
		preset(&o.Type, corev1.SecretTypeOpaque)
		for name, text := range o.StringData {
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			o.Data[name] = []byte(text)
		}
		o.StringData = nil
	case *corev1.Service:
		defaultService(&o.Spec)
	case *corev1.PersistentVolumeClaim:
		preset(&o.Status.Phase, corev1.ClaimPending)
		presetPointer(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	case *corev1.LimitRange:
		for i := range o.Spec.Limits {
			defaultLimits(&o.Spec.Limits[i])
		}
	case *autoscalingv2.HorizontalPodAutoscaler:
		defaultAutoscaler(&o.Spec)
	case *corev1.Pod:
		defaultPodSpec(&o.Spec)
	case *appsv1.Deployment:
		defaultDeployment(&o.Spec)
	case *appsv1.StatefulSet:
		defaultStatefulSet(&o.Spec)
	case *appsv1.DaemonSet:
		defaultDaemonSet(&o.Spec)
	case *batchv1.Job:
		if len(o.Labels) == 0 {
			o.Labels = o.Spec.Template.Labels
		}
		defaultJob(&o.Spec)
	case *batchv1.CronJob:
		defaultCronJob(&o.Spec)
	case *rbacv1.RoleBinding:
		defaultBinding(&o.RoleRef, o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		defaultBinding(&o.RoleRef, o.Subjects)
	case *schedulingv1.PriorityClass:
		if o.PreemptionPolicy == nil {
			o.PreemptionPolicy = new(corev1.PreemptLowerPriority)
		}
	default:
		if u, ok := root(o); ok && k.GroupVersionKind == crdKind {
			defaultDefinition(u)
		}
	}
}

// preset sets what is not set.
func preset[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// presetPointer does the same for an optional field.
func presetPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func defaultDeployment(s *appsv1.DeploymentSpec) {
	presetPointer(&s.Replicas, 1)
	preset(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		presetPointer(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		presetPointer(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		presetPointer(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	presetPointer(&s.RevisionHistoryLimit, 10)
	presetPointer(&s.ProgressDeadlineSeconds, 600)
	defaultPodSpec(&s.Template.Spec)
}

func defaultStatefulSet(s *appsv1.StatefulSetSpec) {
	preset(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		presetPointer(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && s.UpdateStrategy.RollingUpdate != nil {
		presetPointer(&s.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	presetPointer(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	preset(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	preset(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	presetPointer(&s.Replicas, 1)
	presetPointer(&s.RevisionHistoryLimit, 10)
	defaultPodSpec(&s.Template.Spec)
	for i := range s.VolumeClaimTemplates {
		preset(&s.VolumeClaimTemplates[i].Status.Phase, corev1.ClaimPending)
		presetPointer(&s.VolumeClaimTemplates[i].Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
}

func defaultDaemonSet(s *appsv1.DaemonSetSpec) {
	preset(&s.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		presetPointer(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		presetPointer(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		presetPointer(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	presetPointer(&s.RevisionHistoryLimit, 10)
	defaultPodSpec(&s.Template.Spec)
}

func defaultJob(s *batchv1.JobSpec) {
	if s.Completions == nil && s.Parallelism == nil {
		s.Completions = new(int32(1))
	}
	presetPointer(&s.Parallelism, 1)
	presetPointer(&s.BackoffLimit, 6)
	presetPointer(&s.CompletionMode, batchv1.NonIndexedCompletion)
	presetPointer(&s.Suspend, false)
	replacement := batchv1.TerminatingOrFailed
	if s.PodFailurePolicy != nil {
		replacement = batchv1.Failed
	}
	presetPointer(&s.PodReplacementPolicy, replacement)
	presetPointer(&s.ManualSelector, false)
	defaultPodSpec(&s.Template.Spec)
}

func defaultCronJob(s *batchv1.CronJobSpec) {
	preset(&s.ConcurrencyPolicy, batchv1.AllowConcurrent)
	presetPointer(&s.Suspend, false)
	presetPointer(&s.SuccessfulJobsHistoryLimit, 3)
	presetPointer(&s.FailedJobsHistoryLimit, 1)
	defaultPodSpec(&s.JobTemplate.Spec.Template.Spec) // the rest only when the Job is made
}

// defaultLimits has a container's maximum as its limit, and its limit, or else its
// minimum, as its request.
func defaultLimits(l *corev1.LimitRangeItem) {
	if l.Type != corev1.LimitTypeContainer {
		return
	}
	presetMap(&l.Default, l.Max)
	presetMap(&l.DefaultRequest, l.Default)
	presetMap(&l.DefaultRequest, l.Min)
}

// presetMap sets what a list of resources does not say.
func presetMap(to *corev1.ResourceList, from corev1.ResourceList) {
	if *to == nil {
		*to = corev1.ResourceList{}
	}
	for name, quantity := range from {
		if _, there := (*to)[name]; !there {
			(*to)[name] = quantity.DeepCopy()
		}
	}
}

func defaultAutoscaler(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
	presetPointer(&s.MinReplicas, 1)
	if len(s.Metrics) == 0 {
		s.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))},
			},
		}}
	}
}

func defaultBinding(role *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	preset(&role.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if kind := subjects[i].Kind; kind == rbacv1.UserKind || kind == rbacv1.GroupKind {
			preset(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

func defaultService(s *corev1.ServiceSpec) {
	preset(&s.SessionAffinity, corev1.ServiceAffinityNone)
	switch s.SessionAffinity {
	case corev1.ServiceAffinityNone:
		s.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		presetPointer(&s.SessionAffinityConfig, corev1.SessionAffinityConfig{})
		presetPointer(&s.SessionAffinityConfig.ClientIP, corev1.ClientIPConfig{})
		presetPointer(&s.SessionAffinityConfig.ClientIP.TimeoutSeconds, corev1.DefaultClientIPServiceAffinitySeconds)
	}
	preset(&s.Type, corev1.ServiceTypeClusterIP)
	for i := range s.Ports {
		preset(&s.Ports[i].Protocol, corev1.ProtocolTCP)
		if target := s.Ports[i].TargetPort; target == intstr.FromInt32(0) || target == intstr.FromString("") {
			s.Ports[i].TargetPort = intstr.FromInt32(s.Ports[i].Port)
		}
	}
	if s.Type == corev1.ServiceTypeClusterIP {
		presetPointer(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
}

func defaultPodSpec(s *corev1.PodSpec) {
	preset(&s.DNSPolicy, corev1.DNSClusterFirst)
	preset(&s.RestartPolicy, corev1.RestartPolicyAlways)
	presetPointer(&s.SecurityContext, corev1.PodSecurityContext{})
	presetPointer(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	preset(&s.SchedulerName, corev1.DefaultSchedulerName)
	preset(&s.ServiceAccountName, s.DeprecatedServiceAccount) // one field of the internal type
	s.DeprecatedServiceAccount = s.ServiceAccountName
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i].VolumeSource)
	}
	for i := range s.InitContainers {
		defaultContainer(&s.InitContainers[i], s.HostNetwork)
	}
	for i := range s.Containers {
		defaultContainer(&s.Containers[i], s.HostNetwork)
	}
}

func defaultVolume(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	switch {
	case v.Secret != nil:
		presetPointer(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		presetPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		presetPointer(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		for i := range v.DownwardAPI.Items {
			defaultFieldRef(v.DownwardAPI.Items[i].FieldRef)
		}
	case v.HostPath != nil:
		presetPointer(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Projected != nil:
		presetPointer(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
		for i := range v.Projected.Sources {
			if token := v.Projected.Sources[i].ServiceAccountToken; token != nil {
				presetPointer(&token.ExpirationSeconds, 3600)
			}
		}
	}
}

func defaultContainer(c *corev1.Container, hostNetwork bool) {
	policy := corev1.PullIfNotPresent
	if name := c.Image[strings.LastIndexByte(c.Image, '/')+1:]; !strings.ContainsAny(name, ":@") || strings.HasSuffix(name, ":latest") {
		policy = corev1.PullAlways
	}
	preset(&c.ImagePullPolicy, policy)
	preset(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	preset(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		preset(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork {
			preset(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			defaultFieldRef(from.FieldRef)
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p == nil {
			continue
		}
		preset(&p.TimeoutSeconds, 1)
		preset(&p.PeriodSeconds, 10)
		preset(&p.SuccessThreshold, 1)
		preset(&p.FailureThreshold, 3)
		defaultHTTPGet(p.HTTPGet)
		if p.GRPC != nil {
			presetPointer(&p.GRPC.Service, "")
		}
	}
	if c.Lifecycle != nil {
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				defaultHTTPGet(h.HTTPGet)
			}
		}
	}
}

func defaultHTTPGet(a *corev1.HTTPGetAction) {
	if a != nil {
		preset(&a.Path, "/")
		preset(&a.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultFieldRef(r *corev1.ObjectFieldSelector) {
	if r != nil {
		preset(&r.APIVersion, "v1")
	}
}
