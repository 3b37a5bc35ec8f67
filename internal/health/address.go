package health

import (
	"cmp"
	"strconv"
	"strings"
)

const (
	pending = "<pending>"
	// anyNode is the host of a NodePort. Which nodes exist, and by which of their addresses they are
	// reached, is not in the Service.
	anyNode = "<node>"
	// maxPorts bounds an address, which is stored in the Application's status.
	maxPorts = 16
)

// addressOf returns the address of a Service in the form that [Of] describes.
func addressOf(service map[string]any) string {
	host, numbers := at[string](service, "spec", "clusterIP"), ports(service, "port")
	switch at[string](service, "spec", "type") {
	case "ExternalName":
		host = at[string](service, "spec", "externalName")
		if numbers == "" {
			return host
		}
	case "LoadBalancer":
		host = balancer(service)
	case "NodePort":
		host, numbers = anyNode, ports(service, "nodePort")
	default:
		if host == "None" {
			return ""
		}
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return cmp.Or(host, pending) + ":" + cmp.Or(numbers, pending)
}

// balancer returns the first address of the load balancer, or its name.
func balancer(service map[string]any) string {
	for ingress := range objects(service, "status", "loadBalancer", "ingress") {
		if host := cmp.Or(at[string](ingress, "ip"), at[string](ingress, "hostname")); host != "" {
			return host
		}
	}
	return ""
}

// ports returns "80,443".
func ports(service map[string]any, field string) string {
	var all []string
	for port := range objects(service, "spec", "ports") {
		if len(all) == maxPorts {
			all = append(all, "...")
			break
		}
		number := pending
		if known := at[int64](port, field); known != 0 {
			number = strconv.FormatInt(known, 10)
		}
		all = append(all, number)
	}
	return strings.Join(all, ",")
}
