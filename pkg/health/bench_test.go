package health_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/pkg/health"
)

// An informer's transform computes the health of every object that it gets.
func BenchmarkOf(b *testing.B) {
	for name, yaml := range map[string]string{
		"Deployment": workloads[0].live,
		"Pod":        bare[0].live,
		"ConfigMap":  others[0].live,
		"Service":    `{apiVersion: v1, kind: Service, spec: {type: ClusterIP, clusterIP: 10.0.0.1, ports: [{port: 80}, {port: 443}]}}`,
	} {
		b.Run(name, func(b *testing.B) {
			live := decode(b, yaml)
			b.ReportAllocs()
			for b.Loop() {
				health.Of(live)
			}
		})
	}
}
