// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package defaults sets the defaults of Kubernetes' own kinds.
package defaults

import (
	"maps"
	"math"
	"strings"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Set sets what pkg/apis/*/v1/defaults.go of Kubernetes 1.36 does, for the fields of the
// kinds that most monorepos have. Other kinds stay as they are. What the server adds
// later, such as the IP of a Service, is not set.
func Set(object runtime.Object) {
	switch o := object.(type) {
	case *core.Pod:
		podDefaults(&o.Spec)
		Pod(&o.Spec)
	case *core.Namespace:
		if o.Name != "" { // else the server makes it later
			o.Labels = maps.Clone(o.Labels)
			if o.Labels == nil {
				o.Labels = map[string]string{}
			}
			o.Labels[core.LabelMetadataName] = o.Name
		}
		set(&o.Status.Phase, core.NamespaceActive)
	case *core.LimitRange:
		for i := range o.Spec.Limits {
			setLimits(&o.Spec.Limits[i])
		}
	case *core.Secret:
		set(&o.Type, core.SecretTypeOpaque)
	case *core.Service:
		setService(&o.Spec)
	case *core.PersistentVolumeClaim:
		setPointer(&o.Spec.VolumeMode, core.PersistentVolumeFilesystem)
		set(&o.Status.Phase, core.ClaimPending)
	case *core.PersistentVolume:
		set(&o.Spec.PersistentVolumeReclaimPolicy, core.PersistentVolumeReclaimRetain)
		setPointer(&o.Spec.VolumeMode, core.PersistentVolumeFilesystem)
		set(&o.Status.Phase, core.VolumePending)
	case *core.ReplicationController:
		setPointer(&o.Spec.Replicas, 1)
	case *apps.ReplicaSet:
		setPointer(&o.Spec.Replicas, 1)
	case *apps.Deployment:
		setDeployment(&o.Spec)
	case *apps.DaemonSet:
		setDaemonSet(&o.Spec)
	case *apps.StatefulSet:
		setStatefulSet(&o.Spec)
	case *batch.Job:
		if len(o.Labels) == 0 {
			o.Labels = maps.Clone(o.Spec.Template.Labels)
		}
		setJob(&o.Spec)
	case *batch.CronJob:
		set(&o.Spec.ConcurrencyPolicy, batch.AllowConcurrent)
		setPointer(&o.Spec.Suspend, false)
		setPointer(&o.Spec.SuccessfulJobsHistoryLimit, 3)
		setPointer(&o.Spec.FailedJobsHistoryLimit, 1)
	case *autoscaling.HorizontalPodAutoscaler:
		setAutoscaler(&o.Spec)
	case *networking.NetworkPolicy:
		setNetworkPolicy(&o.Spec)
	case *rbac.RoleBinding:
		set(&o.RoleRef.APIGroup, rbac.GroupName)
		setSubjects(o.Subjects)
	case *rbac.ClusterRoleBinding:
		set(&o.RoleRef.APIGroup, rbac.GroupName)
		setSubjects(o.Subjects)
	case *storage.StorageClass:
		setPointer(&o.ReclaimPolicy, core.PersistentVolumeReclaimDelete)
		setPointer(&o.VolumeBindingMode, storage.VolumeBindingImmediate)
	case *scheduling.PriorityClass:
		setPointer(&o.PreemptionPolicy, core.PreemptLowerPriority)
	}
	if template := PodTemplate(object); template != nil {
		podDefaults(&template.Spec)
	}
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func setPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// podDefaults are those of a pod and of a template of one.
func podDefaults(s *core.PodSpec) {
	set(&s.DNSPolicy, core.DNSClusterFirst)
	set(&s.RestartPolicy, core.RestartPolicyAlways)
	setPointer(&s.SecurityContext, core.PodSecurityContext{})
	setPointer(&s.TerminationGracePeriodSeconds, int64(core.DefaultTerminationGracePeriodSeconds))
	set(&s.SchedulerName, core.DefaultSchedulerName)
	set(&s.ServiceAccountName, s.DeprecatedServiceAccount) // one field of the internal type
	s.DeprecatedServiceAccount = s.ServiceAccountName
	for i := range s.InitContainers {
		setContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		setContainer(&s.Containers[i])
	}
	for i := range s.Volumes {
		setVolume(&s.Volumes[i].VolumeSource)
	}
}

// Pod sets those that pods have and templates of pods do not.
func Pod(s *core.PodSpec) {
	setPointer(&s.EnableServiceLinks, core.DefaultEnableServiceLinks)
	for _, list := range [][]core.Container{s.InitContainers, s.Containers} {
		for i := range list {
			r := &list[i].Resources
			if len(r.Limits) > 0 && r.Requests == nil {
				r.Requests = core.ResourceList{}
			}
			for name, limit := range r.Limits {
				if _, there := r.Requests[name]; !there {
					r.Requests[name] = limit.DeepCopy()
				}
			}
			for j := range list[i].Ports {
				if port := &list[i].Ports[j]; s.HostNetwork {
					set(&port.HostPort, port.ContainerPort)
				}
			}
		}
	}
}

func setContainer(c *core.Container) {
	policy := core.PullIfNotPresent
	if isLatest(c.Image) {
		policy = core.PullAlways
	}
	set(&c.ImagePullPolicy, policy)
	set(&c.TerminationMessagePath, core.TerminationMessagePathDefault)
	set(&c.TerminationMessagePolicy, core.TerminationMessageReadFile)
	for i := range c.Ports {
		set(&c.Ports[i].Protocol, core.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			setFieldRef(from.FieldRef)
		}
	}
	for _, probe := range []*core.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			setProbe(probe)
		}
	}
	if c.Lifecycle != nil {
		for _, handler := range []*core.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil && handler.HTTPGet != nil {
				setGet(handler.HTTPGet)
			}
		}
	}
}

// isLatest says whether an image has the tag latest, or neither a tag nor a digest.
func isLatest(image string) bool {
	name, _, digest := strings.Cut(image, "@")
	_, tag, tagged := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	return tagged && tag == "latest" || !tagged && !digest
}

func setProbe(p *core.Probe) {
	set(&p.TimeoutSeconds, 1)
	set(&p.PeriodSeconds, 10)
	set(&p.SuccessThreshold, 1)
	set(&p.FailureThreshold, 3)
	if p.HTTPGet != nil {
		setGet(p.HTTPGet)
	}
	if p.GRPC != nil {
		setPointer(&p.GRPC.Service, "")
	}
}

func setGet(g *core.HTTPGetAction) {
	set(&g.Path, "/")
	set(&g.Scheme, core.URISchemeHTTP)
}

func setVolume(v *core.VolumeSource) {
	if *v == (core.VolumeSource{}) {
		v.EmptyDir = &core.EmptyDirVolumeSource{}
	}
	switch {
	case v.Secret != nil:
		setPointer(&v.Secret.DefaultMode, core.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		setPointer(&v.ConfigMap.DefaultMode, core.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		setPointer(&v.DownwardAPI.DefaultMode, core.DownwardAPIVolumeSourceDefaultMode)
		setItems(v.DownwardAPI.Items)
	case v.HostPath != nil:
		setPointer(&v.HostPath.Type, core.HostPathUnset)
	case v.Projected != nil:
		setPointer(&v.Projected.DefaultMode, core.ProjectedVolumeSourceDefaultMode)
		for i := range v.Projected.Sources {
			if token := v.Projected.Sources[i].ServiceAccountToken; token != nil {
				setPointer(&token.ExpirationSeconds, 3600)
			}
			if own := v.Projected.Sources[i].DownwardAPI; own != nil {
				setItems(own.Items)
			}
		}
	case v.Image != nil:
		policy := core.PullIfNotPresent
		if isLatest(v.Image.Reference) {
			policy = core.PullAlways
		}
		set(&v.Image.PullPolicy, policy)
	}
}

func setItems(files []core.DownwardAPIVolumeFile) {
	for i := range files {
		setFieldRef(files[i].FieldRef)
	}
}

func setFieldRef(r *core.ObjectFieldSelector) {
	if r != nil {
		set(&r.APIVersion, "v1")
	}
}

// setLimits has a container's maximum as its limit, and its limit, or else its minimum,
// as its request.
func setLimits(l *core.LimitRangeItem) {
	if l.Type != core.LimitTypeContainer {
		return
	}
	setEach(&l.Default, l.Max)
	setEach(&l.DefaultRequest, l.Default)
	setEach(&l.DefaultRequest, l.Min)
}

// setEach sets what a list of resources does not say.
func setEach(to *core.ResourceList, from core.ResourceList) {
	if *to == nil {
		*to = core.ResourceList{}
	}
	for name, quantity := range from {
		if _, there := (*to)[name]; !there {
			(*to)[name] = quantity.DeepCopy()
		}
	}
}

func setService(s *core.ServiceSpec) {
	set(&s.SessionAffinity, core.ServiceAffinityNone)
	set(&s.Type, core.ServiceTypeClusterIP)
	for i := range s.Ports {
		port := &s.Ports[i]
		set(&port.Protocol, core.ProtocolTCP)
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	outside := s.Type == core.ServiceTypeLoadBalancer || s.Type == core.ServiceTypeNodePort
	if outside || s.Type == core.ServiceTypeClusterIP && len(s.ExternalIPs) > 0 {
		set(&s.ExternalTrafficPolicy, core.ServiceExternalTrafficPolicyCluster)
	}
	if outside || s.Type == core.ServiceTypeClusterIP {
		setPointer(&s.InternalTrafficPolicy, core.ServiceInternalTrafficPolicyCluster)
	}
	if s.Type == core.ServiceTypeLoadBalancer {
		setPointer(&s.AllocateLoadBalancerNodePorts, true)
	}
	switch s.SessionAffinity {
	case core.ServiceAffinityNone:
		s.SessionAffinityConfig = nil
	case core.ServiceAffinityClientIP:
		setPointer(&s.SessionAffinityConfig, core.SessionAffinityConfig{})
		setPointer(&s.SessionAffinityConfig.ClientIP, core.ClientIPConfig{})
		setPointer(&s.SessionAffinityConfig.ClientIP.TimeoutSeconds, int32(core.DefaultClientIPServiceAffinitySeconds))
	}
}

func setDeployment(s *apps.DeploymentSpec) {
	setPointer(&s.Replicas, 1)
	setPointer(&s.RevisionHistoryLimit, 10)
	setPointer(&s.ProgressDeadlineSeconds, 600)
	set(&s.Strategy.Type, apps.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == apps.RollingUpdateDeploymentStrategyType {
		setPointer(&s.Strategy.RollingUpdate, apps.RollingUpdateDeployment{})
		setPointer(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setPointer(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
}

func setDaemonSet(s *apps.DaemonSetSpec) {
	setPointer(&s.RevisionHistoryLimit, 10)
	set(&s.UpdateStrategy.Type, apps.RollingUpdateDaemonSetStrategyType)
	if s.UpdateStrategy.Type == apps.RollingUpdateDaemonSetStrategyType {
		setPointer(&s.UpdateStrategy.RollingUpdate, apps.RollingUpdateDaemonSet{})
		setPointer(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setPointer(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
}

func setStatefulSet(s *apps.StatefulSetSpec) {
	setPointer(&s.Replicas, 1)
	setPointer(&s.RevisionHistoryLimit, 10)
	set(&s.PodManagementPolicy, apps.OrderedReadyPodManagement)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = apps.RollingUpdateStatefulSetStrategyType
		setPointer(&s.UpdateStrategy.RollingUpdate, apps.RollingUpdateStatefulSetStrategy{})
	}
	if s.UpdateStrategy.Type == apps.RollingUpdateStatefulSetStrategyType && s.UpdateStrategy.RollingUpdate != nil {
		setPointer(&s.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	setPointer(&s.PersistentVolumeClaimRetentionPolicy, apps.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	set(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, apps.RetainPersistentVolumeClaimRetentionPolicyType)
	set(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, apps.RetainPersistentVolumeClaimRetentionPolicyType)
	for i := range s.VolumeClaimTemplates {
		setPointer(&s.VolumeClaimTemplates[i].Spec.VolumeMode, core.PersistentVolumeFilesystem)
		set(&s.VolumeClaimTemplates[i].Status.Phase, core.ClaimPending)
	}
}

func setJob(s *batch.JobSpec) {
	if s.Completions == nil && s.Parallelism == nil {
		setPointer(&s.Completions, 1)
	}
	setPointer(&s.Parallelism, 1)
	limit, replace := int32(6), batch.TerminatingOrFailed
	if s.BackoffLimitPerIndex != nil {
		limit = math.MaxInt32
	}
	if s.PodFailurePolicy != nil {
		replace = batch.Failed
	}
	setPointer(&s.BackoffLimit, limit)
	setPointer(&s.PodReplacementPolicy, replace)
	setPointer(&s.CompletionMode, batch.NonIndexedCompletion)
	setPointer(&s.Suspend, false)
	setPointer(&s.ManualSelector, false)
}

func setAutoscaler(s *autoscaling.HorizontalPodAutoscalerSpec) {
	setPointer(&s.MinReplicas, 1)
	if len(s.Metrics) == 0 {
		utilization := int32(80)
		s.Metrics = []autoscaling.MetricSpec{{Type: autoscaling.ResourceMetricSourceType, Resource: &autoscaling.ResourceMetricSource{Name: core.ResourceCPU,
			Target: autoscaling.MetricTarget{Type: autoscaling.UtilizationMetricType, AverageUtilization: &utilization}}}}
	}
}

func setNetworkPolicy(s *networking.NetworkPolicySpec) {
	if len(s.PolicyTypes) == 0 {
		s.PolicyTypes = []networking.PolicyType{networking.PolicyTypeIngress}
		if len(s.Egress) > 0 {
			s.PolicyTypes = append(s.PolicyTypes, networking.PolicyTypeEgress)
		}
	}
	for i := range s.Ingress {
		setPolicyPorts(s.Ingress[i].Ports)
	}
	for i := range s.Egress {
		setPolicyPorts(s.Egress[i].Ports)
	}
}

func setPolicyPorts(ports []networking.NetworkPolicyPort) {
	for i := range ports {
		setPointer(&ports[i].Protocol, core.ProtocolTCP)
	}
}

func setSubjects(subjects []rbac.Subject) {
	for i := range subjects {
		if kind := subjects[i].Kind; kind == rbac.UserKind || kind == rbac.GroupKind {
			set(&subjects[i].APIGroup, rbac.GroupName)
		}
	}
}

// PodTemplate is the template of an object that makes pods; nil for others.
func PodTemplate(object runtime.Object) *core.PodTemplateSpec {
	switch o := object.(type) {
	case *core.PodTemplate:
		return &o.Template
	case *core.ReplicationController:
		return o.Spec.Template
	case *apps.ReplicaSet:
		return &o.Spec.Template
	case *apps.Deployment:
		return &o.Spec.Template
	case *apps.DaemonSet:
		return &o.Spec.Template
	case *apps.StatefulSet:
		return &o.Spec.Template
	case *batch.Job:
		return &o.Spec.Template
	case *batch.CronJob:
		return &o.Spec.JobTemplate.Spec.Template
	}
	return nil
}
