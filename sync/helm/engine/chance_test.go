// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"

	"github.com/swell-sh/swell/render/helm"
)

// TestChanceInWhatIsLeftOut: a chart whose test asks for chance, the clock or an address is taken,
// since tests are left out. An object that is applied is refused for the same.
func TestChanceInWhatIsLeftOut(t *testing.T) {
	const applied = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n"
	for asks, refused := range map[string]string{
		`{{ randAlphaNum 16 | quote }}`:          "randAlphaNum is called, which gives something else each time",
		`{{ now | date "15:04:05" | quote }}`:    "now is called, which asks the clock",
		`{{ printf "%p" (dict "a" 1) | quote }}`: "prints the address of a value",
	} {
		for hook, isLeftOut := range map[string]bool{"test": true, "test-success": true, "pre-delete": false, "": false} {
			object := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: y\n  annotations: {" +
				`"helm.sh/hook": "` + hook + "\"}\nspec:\n  nodeName: " + asks + "\n"
			if hook == "" {
				object = strings.Replace(object, `"helm.sh/hook"`, "hook", 1)
			}
			answer := load(helm.Chart{Files: []helm.File{
				{Name: "Chart.yaml", Content: []byte("{apiVersion: v2, name: x, version: 1.0.0}")},
				{Name: "templates/x.yaml", Content: []byte(applied)},
				{Name: "templates/tests/y.yaml", Content: []byte(object)},
			}}).render(&helm.Request{Release: "demo", Namespace: "space", Kubernetes: "1.36"})
			var problems []string
			for _, p := range answer.Problems {
				problems = append(problems, p.Text)
			}
			got := strings.Join(problems, "; ")
			if isLeftOut && (got != "" || len(answer.Objects) != 2) || !isLeftOut && !strings.Contains(got, refused) {
				t.Errorf("hook %q with %s: %d objects, problems %q", hook, asks, len(answer.Objects), got)
			}
		}
	}
}
