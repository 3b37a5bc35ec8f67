package reconcile_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// deployment is a typical Deployment with some 20 fields.
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {app.kubernetes.io/name: web, app.kubernetes.io/part-of: shop}}
spec:
  replicas: 2
  revisionHistoryLimit: 3
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 10
      containers:
      - name: web
        image: registry.example.com/shop/web:1.27
        args: [--listen, ":8080"]
        ports: [{name: http, containerPort: 8080}]
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
        readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5}
---
`

// deployments returns a manifest with this many Deployments.
func deployments(count int) string {
	var b strings.Builder
	for i := range count {
		b.WriteString(strings.ReplaceAll(deployment, "NAME", fmt.Sprintf("web-%03d", i)))
	}
	return b.String()
}

// BenchmarkPass measures the loop alone, without hub and target: a pass that finds nothing, one
// that repairs one object, and one that repairs all.
func BenchmarkPass(b *testing.B) {
	for _, objects := range []int{1, 10, 100} {
		w := running(b, deployments(objects), "")
		name := fmt.Sprintf("objects=%d", objects)
		b.Run("quiet/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.mustReconcile(b)
				w.forget()
			}
		})
		for what, drifts := range map[string]int{"repair": 1, "repair-all": objects} {
			b.Run(what+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				replicas := int64(2)
				for b.Loop() {
					replicas++
					w.step = 20 * 60e9 // beyond the time for which fights are remembered
					for i := range drifts {
						w.change(b, fmt.Sprintf("Deployment web-%03d", i), func(live *unstructured.Unstructured) {
							if err := unstructured.SetNestedField(live.Object, replicas, "spec", "replicas"); err != nil {
								b.Fatal(err)
							}
						})
					}
					w.mustReconcile(b)
					w.forget()
				}
			})
		}
	}
}
