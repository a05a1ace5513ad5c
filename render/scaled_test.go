// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
)

// TestNoteScaled: the number of replicas in Git is not in force where an autoscaler of the unit
// sets it, and the unit has a note that says so.
func TestNoteScaled(t *testing.T) {
	const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: x}]}}
---
`
	const hpa = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}}
`
	const defaults = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: web}\n" +
		"spec: {placement: {topology: cluster, match: {labels: {region: sas}}}}\n"
	const note = "services/shop/web/x.yaml:6:3: spec.replicas: not in force: HorizontalPodAutoscaler/shop/web sets the number"
	for name, test := range map[string]struct{ text, note string }{
		"nothing scales it": {deployment, ""},
		"it is scaled":      {deployment + strings.ReplaceAll(hpa, "NAME", "web"), note},
		"it says no number": {strings.ReplaceAll(deployment, "  replicas: 3\n", "") + strings.ReplaceAll(hpa, "NAME", "web"), ""},
		"something else is": {deployment + strings.ReplaceAll(hpa, "NAME", "other"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := exampleFiles(t, "swell.yaml", "fleet", "services/shop/swell.yaml")
			files["services/shop/web/x.yaml"] = &fstest.MapFile{Data: []byte(test.text)}
			files["services/shop/web/swell.yaml"] = &fstest.MapFile{Data: []byte(defaults)}
			unit := (&Compiler{}).Snapshot("", config.Files(files)).Units.Get("services/shop/web")
			got := ""
			for _, note := range unit.Notes {
				got += note.String()
			}
			if len(unit.Problems) > 0 || got != test.note {
				t.Errorf("problems %v, note %q, want %q", unit.Problems, got, test.note)
			}
		})
	}
}
