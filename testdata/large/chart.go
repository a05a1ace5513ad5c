// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package large

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Chart is a monorepo of one Helm chart of the size of argo-cd's, on Clusters clusters: two
// definitions of custom resources as templates, of 1.3 MB and 300 KB, and 100 templates of
// workloads. Each cluster has its own value, which the workloads take. With Refused they have
// none, and the tenant of the chart may not have the chart's namespace.
type Chart struct {
	Clusters int
	Refused  bool
}

// Unit and folder of the chart.
const (
	ChartUnit   = "services/argo"
	ChartFolder = ChartUnit + "/chart"
)

// Files calls each with all files of the monorepo.
func (c Chart) Files(each func(name, content string) error) error {
	var fleet strings.Builder
	for i := range c.Clusters {
		fmt.Fprintf(&fleet, "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: c%04d}\nspec: {}\n---\n", i)
	}
	fleet.WriteString("apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n")
	defaults, release := "placement: {topology: cluster}", chartRelease
	if c.Refused {
		fleet.WriteString("---\napiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: argo}\n" +
			"spec: {folders: [services/argo], namespaces: [another], kinds: [\"*\"], podSecurity: privileged, clusterKinds: [\"*\"]}\n")
		defaults, release = "tenant: argo, "+defaults, strings.Replace(release, "${target.cluster}", "one", 1)
	}
	files := map[string]string{
		"swell.yaml":                          "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: chart}\nspec: {}\n",
		"fleet/fleet.yaml":                    fleet.String(),
		"services/swell.yaml":                 "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {" + defaults + "}\n",
		ChartUnit + "/release.yaml":           release,
		ChartFolder + "/Chart.yaml":           "apiVersion: v2\nname: argo\nversion: 1.0.0\n",
		ChartFolder + "/values.yaml":          "domain: example.com\nreplicas: 2\ncrds: {install: true}\nresources: {}\nenv: []\n",
		ChartFolder + "/templates/_names.tpl": chartNames,
	}
	for i, size := range []int{1_300_000, 300_000} {
		files[fmt.Sprintf("%s/templates/crds/crd%d.yaml", ChartFolder, i)] = chartDefinition(i, size)
	}
	for i := range 100 {
		part := fmt.Sprintf("part%02d", i)
		files[ChartFolder+"/templates/"+part+"/deployment.yaml"] = strings.ReplaceAll(chartWorkload, "PART", part)
	}
	for name, content := range files {
		if err := each(name, content); err != nil {
			return err
		}
	}
	return nil
}

const chartRelease = `apiVersion: swell.sh/v1
kind: HelmChart
metadata: {name: argo}
spec:
  chart: chart
  namespace: argo
  values: {domain: "${target.cluster}.example.com"}
`

const chartNames = `{{- define "argo.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .context.Release.Name }}
app.kubernetes.io/part-of: argo
{{- end }}
`

// chartDefinition is a definition as charts have them that may leave it out.
func chartDefinition(i, size int) string {
	d := definition{random: rand.New(rand.NewPCG(uint64(i), 1))}
	d.write(i, size)
	metadata, rest, _ := strings.Cut(d.text.String(), "spec:\n")
	labels := `{{- include "argo.labels" (dict "context" . "name" "crd") | nindent 4 }}`
	return "{{- if .Values.crds.install }}\n" + metadata + "  labels:\n    " + labels + "\nspec:\n" + rest + "{{- end }}\n"
}

// chartWorkload is the template of a workload, about as long as those of argo-cd.
var chartWorkload = `{{- $name := printf "%s-PART" .Release.Name }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ .Release.Namespace }}
  labels:
    {{- include "argo.labels" (dict "context" . "name" $name) | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ $name }}
  template:
    metadata:
      labels:
        {{- include "argo.labels" (dict "context" . "name" $name) | nindent 8 }}
    spec:
      containers:
      - name: main
        image: registry.example.com/argo:1.0.0
        args:
        - PART
        - --domain={{ .Values.domain }}
        env:
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
` + chartSettings() + `        ports:
        - name: http
          containerPort: 8080
          protocol: TCP
        livenessProbe:
          httpGet:
            path: /healthz
            port: http
          initialDelaySeconds: 10
          periodSeconds: 10
        resources:
          {{- toYaml .Values.resources | nindent 10 }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  namespace: {{ .Release.Namespace }}
  labels:
    {{- include "argo.labels" (dict "context" . "name" $name) | nindent 4 }}
spec:
  selector:
    app.kubernetes.io/name: {{ $name }}
  ports:
  - name: http
    port: 80
    targetPort: http
    protocol: TCP
`

// chartSettings are variables that a container takes from a ConfigMap, as argo-cd's do.
func chartSettings() string {
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, `        - name: ARGO_SETTING_%02d
          valueFrom:
            configMapKeyRef:
              name: argo-params
              key: setting.%02d
              optional: true
`, i, i)
	}
	return text.String()
}
