package health

import (
	"strconv"
	"strings"
)

const (
	pending = "<pending>"
	// anyNode is the host of a NodePort. Which nodes there are, and by which of
	// their addresses one reaches them, is not in the Service.
	anyNode = "<node>"
	// maxPorts bounds an address: it is kept in the Application's status.
	maxPorts = 16
)

// addressOf gives the address of a Service in the form that [Of] describes.
func addressOf(service map[string]any) string {
	switch at[string](service, "spec", "type") {
	case "ExternalName":
		return externalAddress(service)
	case "LoadBalancer":
		return join(balancer(service), ports(service, "port"))
	case "NodePort":
		return join(anyNode, ports(service, "nodePort"))
	}
	host := at[string](service, "spec", "clusterIP")
	if host == "None" {
		return ""
	}
	return join(host, ports(service, "port"))
}

func externalAddress(service map[string]any) string {
	host, ports := at[string](service, "spec", "externalName"), ports(service, "port")
	if ports == "" {
		return host
	}
	return join(host, ports)
}

// balancer gives the first address of the load balancer, or its name.
func balancer(service map[string]any) string {
	for ingress := range objects(service, "status", "loadBalancer", "ingress") {
		for _, field := range []string{"ip", "hostname"} {
			if host := at[string](ingress, field); host != "" {
				return host
			}
		}
	}
	return ""
}

// ports gives "80,443".
func ports(service map[string]any, field string) string {
	var all []string
	for port := range objects(service, "spec", "ports") {
		if len(all) == maxPorts {
			all = append(all, "...")
			break
		}
		all = append(all, number(at[int64](port, field)))
	}
	return strings.Join(all, ",")
}

func number(port int64) string {
	if port == 0 {
		return pending
	}
	return strconv.FormatInt(port, 10)
}

func join(host, ports string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return orPending(host) + ":" + orPending(ports)
}

func orPending(part string) string {
	if part == "" {
		return pending
	}
	return part
}
