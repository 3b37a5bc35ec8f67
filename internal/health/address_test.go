package health_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/internal/health"
	"github.com/krake-observer/krake-observer/test/check"
)

func TestAddress(t *testing.T) {
	cases := []struct{ why, service, want string }{
		{"an address within the cluster", `{spec: {type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80, protocol: TCP, targetPort: 8080}]}}`, "10.0.0.1:80"},
		{"the default type", `{spec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}}`, "10.0.0.1:80"},
		{"all ports: Krake shows the first only", `{spec: {type: ClusterIP, clusterIP: 10.0.0.1, ports: [{port: 80}, {port: 443}]}}`, "10.0.0.1:80,443"},
		{"IPv6", `{spec: {type: ClusterIP, clusterIP: "fd00::1", ports: [{port: 80}]}}`, "[fd00::1]:80"},
		{"a headless Service has no address of its own", `{spec: {type: ClusterIP, clusterIP: None, ports: [{port: 80}]}}`, ""},
		{"a Service that was not given its address yet", `{spec: {type: ClusterIP, ports: [{port: 80}]}}`, "<pending>:80"},
		{"the port of the nodes; the agent knows no node", `{spec: {type: NodePort, clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 31000}, {port: 443, nodePort: 31001}]}}`, "<node>:31000,31001"},
		{"a port that is not given yet", `{spec: {type: NodePort, ports: [{port: 80, nodePort: 31000}, {port: 443}]}}`, "<node>:31000,<pending>"},
		{"a load balancer that is being made", `{spec: {type: LoadBalancer, clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 31000}]}, status: {loadBalancer: {}}}`, "<pending>:80"},
		{"a load balancer with an address", `{spec: {type: LoadBalancer, ports: [{port: 80}]}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1, ipMode: VIP}, {ip: 192.0.2.2}]}}}`, "192.0.2.1:80"},
		{"a load balancer with a name: Krake shows None", `{spec: {type: LoadBalancer, ports: [{port: 80}]}, status: {loadBalancer: {ingress: [{hostname: lb.example.org}]}}}`, "lb.example.org:80"},
		{"a load balancer with IPv6", `{spec: {type: LoadBalancer, ports: [{port: 80}]}, status: {loadBalancer: {ingress: [{ip: "2001:db8::1"}]}}}`, "[2001:db8::1]:80"},
		{"an address of which only the ports of the load balancer are told", `{spec: {type: LoadBalancer, ports: [{port: 80}]}, status: {loadBalancer: {ingress: [{ports: []}, {ip: 192.0.2.2}]}}}`, "192.0.2.2:80"},
		{"another name for a host", `{spec: {type: ExternalName, externalName: db.example.org}}`, "db.example.org"},
		{"another name for a host, and which of its ports", `{spec: {type: ExternalName, externalName: db.example.org, ports: [{port: 5432}]}}`, "db.example.org:5432"},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			live := decode(t, c.service)
			live["apiVersion"], live["kind"] = "v1", "Service"
			check.Equal(t, "address", c.want, health.Of(live).Address)
		})
	}
}

// A Service of a media server may have a thousand ports. Its status stays short.
func TestAddressIsBounded(t *testing.T) {
	var ports, want []string
	for port := range 1000 {
		ports = append(ports, fmt.Sprintf("{port: %d}", port+1))
		want = append(want, fmt.Sprint(port+1))
	}
	live := decode(t, "{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.1, ports: ["+strings.Join(ports, ",")+"]}}")
	check.Equal(t, "address", "10.0.0.1:"+strings.Join(want[:16], ",")+",...", health.Of(live).Address)
}
