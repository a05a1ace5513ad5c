// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestKinds compiles every kind of every version, and looks at a few.
func TestKinds(t *testing.T) {
	for _, version := range Versions() {
		set, err := Kubernetes(version)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range set.kinds {
			if typ := kind.Type(); typ.Form != Object || typ.Fields["metadata"] == nil {
				t.Errorf("%s %s: form %v without metadata", version, kind.name, typ.Form)
			}
		}
		for _, c := range []struct {
			apiVersion, kind string
			namespaced       bool
		}{
			{"v1", "ConfigMap", true}, {"v1", "Namespace", false}, {"apps/v1", "Deployment", true},
			{"rbac.authorization.k8s.io/v1", "ClusterRole", false}, {"autoscaling/v2", "HorizontalPodAutoscaler", true},
			{"apiextensions.k8s.io/v1", "CustomResourceDefinition", false}, {"batch/v1", "CronJob", true},
		} {
			kind := set.Kind(c.apiVersion, c.kind)
			if kind == nil || kind.Namespaced != c.namespaced {
				t.Errorf("%s: %s %s: got %+v, want namespaced %t", version, c.apiVersion, c.kind, kind, c.namespaced)
			}
		}
		for _, gone := range []string{"extensions/v1beta1 Ingress", "v1 Binding", "authorization.k8s.io/v1 SubjectAccessReview"} {
			if set.kinds[gone] != nil {
				t.Errorf("%s: %s is there", version, gone)
			}
		}
	}
	if _, err := Kubernetes("1.2"); err == nil {
		t.Error("Kubernetes 1.2: no error")
	}
}

// TestQuantity holds our reading against Kubernetes' own, which also takes a
// suffix without a digit for zero.
// All short texts of the letters of quantities, and some longer ones, are quantities where
// Kubernetes' own parser says so.
func TestQuantity(t *testing.T) {
	const letters = "01.+-eEinumkKMGTP "
	texts := []string{"12E6", "-1.5Gi", "1e-3", "1.2.3", "0x10", "lots", "1e3Gi", "1e-999", "1e+0000012", "999999999999999999999Ei"}
	last := []string{""}
	for range 4 {
		texts = append(texts, last...)
		var longer []string
		for _, text := range last {
			for _, letter := range letters {
				longer = append(longer, text+string(letter))
			}
		}
		last = longer
	}
	for _, s := range append(texts, last...) {
		_, err := resource.ParseQuantity(s)
		if got, want := isQuantity(s), err == nil; got != want {
			t.Errorf("%q: got %t, want %t", s, got, want)
		}
	}
	// Kubernetes' own parser takes minutes for these.
	for _, s := range []string{"1e-99999999", "1E-999999999", "1e99999999999999999999", "1e-2147483647"} {
		if isQuantity(s) {
			t.Errorf("%q is taken", s)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	value := map[string]any{"b": []any{int64(1), 2.5, 1e21, 3.0, true, nil}, "a": "x\"\n<ü>", "nil": nil, "z": map[string]any{}}
	const want = `{"a":"x\"\n\u003cü\u003e","b":[1,2.5,1e+21,3,true,null],"z":{}}`
	got := string(AppendJSON(nil, value))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var back any
	if err := json.Unmarshal([]byte(got), &back); err != nil {
		t.Error(err)
	}
}

func TestCheckEmptyItem(t *testing.T) {
	list := &Type{Form: List, Elem: &Type{Form: String}}
	if found := Check(list, []any{"a", nil}); len(found) != 1 || PathText(found[0].Path) != "[1]" {
		t.Errorf("got %v, want one violation at [1]", found)
	}
}

func TestFitsWholeNumbers(t *testing.T) {
	for value, want := range map[float64]bool{3: true, -3: true, 1 << 53: true, 3.5: false, 1e17: false} {
		if got := Fits(Integer, value); got != want {
			t.Errorf("%v as an integer: %t, want %t", value, got, want)
		}
	}
}
