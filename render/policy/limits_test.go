// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestContainersTogether: containers that go on at the same time are added up, sidecars among
// them; those that only begin count where one needs more than all of these.
func TestContainersTogether(t *testing.T) {
	always := core.ContainerRestartPolicyAlways
	asks := func(cpu string) core.Container {
		return core.Container{Resources: core.ResourceRequirements{Requests: core.ResourceList{core.ResourceCPU: resource.MustParse(cpu)}}}
	}
	sidecar := func(cpu string) core.Container {
		c := asks(cpu)
		c.RestartPolicy = &always
		return c
	}
	for name, test := range map[string]struct {
		begin, main []core.Container
		want        string
	}{
		"containers":                    {nil, []core.Container{asks("1"), asks("2")}, "3"},
		"a small one before":            {[]core.Container{asks("1")}, []core.Container{asks("2")}, "2"},
		"a large one before":            {[]core.Container{asks("5")}, []core.Container{asks("2")}, "5"},
		"a sidecar":                     {[]core.Container{sidecar("1")}, []core.Container{asks("2")}, "3"},
		"two sidecars":                  {[]core.Container{sidecar("1"), sidecar("4")}, []core.Container{asks("2")}, "7"},
		"one that begins with them":     {[]core.Container{sidecar("1"), asks("5"), sidecar("1")}, []core.Container{asks("2")}, "6"},
		"one that begins before a next": {[]core.Container{asks("5"), sidecar("1")}, []core.Container{asks("2")}, "5"},
	} {
		_, all := containersOf(&core.PodSpec{InitContainers: test.begin, Containers: test.main}, nil, nil)
		if got := all.requests.Cpu().String(); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}
