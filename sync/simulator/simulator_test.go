// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkApply applies one ConfigMap again and again: with another value, and as it
// is.
func BenchmarkApply(b *testing.B) {
	for _, same := range []bool{false, true} {
		b.Run(map[bool]string{false: "changed", true: "unchanged"}[same], func(b *testing.B) {
			c := New()
			s := &side{client: &http.Client{Transport: c}, host: "http://simulator.invalid"}
			for i := range b.N {
				if same {
					i = 0
				}
				r, _ := http.NewRequest(http.MethodPatch, s.host+"/api/v1/namespaces/default/configmaps/a?fieldManager=swell&force=true", body(fmt.Sprintf(
					`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","labels":{"app.kubernetes.io/managed-by":"swell"},"annotations":{"swell.sh/unit":"services/shop"}},"data":{"value":"%d","other":"text"}}`, i)))
				r.Header.Set("Content-Type", "application/apply-patch+yaml")
				r.Header.Set("Accept", protobufType+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
				response, err := s.client.Do(r)
				if err != nil || response.StatusCode > 201 {
					b.Fatal(response, err)
				}
			}
		})
	}
}

func body(text string) *strings.Reader { return strings.NewReader(text) }
