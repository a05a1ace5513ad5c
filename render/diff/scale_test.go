// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// BenchmarkCreated compares a unit that comes with 50 objects on 200 targets: the same on all of them, in a
// namespace of each, and with a value of its own for each.
func BenchmarkCreated(b *testing.B) {
	for _, c := range []struct{ name, namespace, value string }{
		{"same", "shop", "v"}, {"namespaces", "shop-%d", "v"}, {"values", "shop", "v%d"},
	} {
		b.Run(c.name, func(b *testing.B) {
			after := map[config.TargetName]*object.Bundle{}
			for target := range 200 {
				filled := func(format string) string {
					if strings.Contains(format, "%") {
						return fmt.Sprintf(format, target)
					}
					return format
				}
				var objects []string
				for i := range 50 {
					objects = append(objects, fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment",`+
						`"metadata":{"annotations":{"swell.sh/unit":"shop/cart"},`+
						`"labels":{"app":"cart","swell.sh/repository":"x","swell.sh/unit":"cart"},`+
						`"name":"cart-%d","namespace":%q},`+
						`"spec":{"replicas":2,"template":{"spec":{"containers":[{`+
						`"env":[{"name":"A","value":%q},{"name":"B","value":%q}],"image":"r.example.com/cart:1","name":"main"}]}}}}`,
						i, filled(c.namespace), filled(c.value), strings.Repeat("x", 1000)))
				}
				after[config.TargetName(fmt.Sprintf("c-%03d", target))] = bundle(objects...)
			}
			o := Outlook{knows: func(string) bool { return true }}
			b.ReportAllocs()
			for b.Loop() {
				o.unit("shop/cart", nil, after)
			}
		})
	}
}
