package health_test

import (
	"fmt"

	"github.com/krake-observer/krake-observer/pkg/health"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// One Pod of a Deployment is not ready. The Service in front of it is healthy, so the state of
// the Application is that of its Deployment.
func ExampleRollUp() {
	resources, _ := manifest.Decode([]byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, generation: 1}
spec: {replicas: 3}
status: {observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 2, availableReplicas: 2}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: ClusterIP, clusterIP: 10.0.0.1, ports: [{port: 80}, {port: 443}]}
`))
	var all []health.Health
	for _, live := range resources {
		h := health.Of(live.(map[string]any))
		fmt.Printf("%s %s: %s, at %q\n", h.Status, h.State, h.Message, h.Address)
		all = append(all, h)
	}
	state, pods, _ := health.RollUp(all)
	fmt.Printf("%s, %d of %d\n", state, pods.Running, pods.Desired)
	// Output:
	// InProgress DEGRADED: Available: 2/3, at ""
	// Current RUNNING: Service is ready, at "10.0.0.1:80,443"
	// DEGRADED, 2 of 3
}
