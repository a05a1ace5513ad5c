// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package large

import (
	"fmt"
	"strings"
)

var configText = strings.Repeat("    listen = 0.0.0.0:8080\n", 20)

// ConfigMap is a document of about the size of a small service's configuration.
func ConfigMap(namespace, name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s, labels: {app: cart, tier: web}}
data:
  level: info
  zone: %q
  app.toml: |
%s`, name, namespace, name, configText)
}

// Mixed are the documents of a service, each of another kind. Its Deployment
// has no replicas, so that no pods come of it.
func Mixed(namespace, name string) []string {
	docs := strings.Split(strings.NewReplacer("NAMESPACE", namespace, "NAME", name).Replace(mixed), "---\n")
	return append(docs, ConfigMap(namespace, name))
}

const mixed = `apiVersion: v1
kind: ServiceAccount
metadata: {name: NAME, namespace: NAMESPACE, labels: {app: NAME}}
automountServiceAccountToken: false
---
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: NAMESPACE, labels: {app: NAME}}
spec:
  selector: {app: NAME}
  ports:
  - {name: http, port: 80, targetPort: 8080, protocol: TCP}
  - {name: metrics, port: 9090, targetPort: 9090, protocol: TCP}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: NAMESPACE, labels: {app: NAME, tier: web}}
spec:
  replicas: 0
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME, tier: web}}
    spec:
      serviceAccountName: NAME
      containers:
      - name: main
        image: registry.example.com/shop/NAME:2.11.0
        ports:
        - {name: http, containerPort: 8080, protocol: TCP}
        env:
        - {name: LOG_LEVEL, value: info}
        - {name: REGION, value: sas}
        resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
        readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5}
        livenessProbe: {httpGet: {path: /live, port: http}, periodSeconds: 10}
        volumeMounts:
        - {name: config, mountPath: /etc/app, readOnly: true}
      volumes:
      - {name: config, configMap: {name: NAME}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: NAME, namespace: NAMESPACE, labels: {app: NAME}}
spec:
  rules:
  - host: NAME.example.com
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: NAME, port: {name: http}}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: NAME, namespace: NAMESPACE, labels: {app: NAME}}
spec:
  podSelector: {matchLabels: {app: NAME}}
  policyTypes: [Ingress]
  ingress:
  - from: [{podSelector: {matchLabels: {tier: web}}}]
    ports: [{port: 8080, protocol: TCP}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: NAME, namespace: NAMESPACE, labels: {app: NAME}}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: NAME}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: NAME, namespace: NAMESPACE, labels: {app: NAME}}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
  minReplicas: 1
  maxReplicas: 6
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}
`
