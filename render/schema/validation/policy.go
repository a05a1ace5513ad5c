// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

const policy = "io.k8s.api.policy.v1."

var policyTypes = types{
	policy + "PodDisruptionBudgetSpec": {Self: mapping(func(m map[string]any) Flaws {
		return atMostOne(m, []string{"minAvailable", "maxUnavailable"}, "of minAvailable and maxUnavailable")
	}), Fields: map[string]Rule{"minAvailable": share, "maxUnavailable": share, "unhealthyPodEvictionPolicy": nonEmpty}},
}
