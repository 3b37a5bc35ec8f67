package kit

import (
	_ "embed" // for service.yaml
	"fmt"
	"strings"
)

// service has the objects of a small service. NAME, LINES and VARIABLES are replaced.
//
//go:embed service.yaml
var service string

// Manifest returns a realistic manifest of about that many bytes, the same each time: services of about 5 KiB, each with
// a ServiceAccount, a ConfigMap, a Deployment, a Service and a PodDisruptionBudget. There are at most 20 of them, because
// an Application has at most 100 objects: larger manifests have larger services.
func Manifest(size int) string {
	services := min(20, max(1, size/(5<<10)))
	var text strings.Builder
	for n := range services {
		text.WriteString(serviceOf(fmt.Sprintf("service-%d", n+1), size/services))
	}
	return text.String()
}

// serviceOf returns the objects of one service, with as many settings as fit. Each setting is a variable of the container and
// a line of its file.
func serviceOf(name string, size int) string {
	var lines, variables strings.Builder
	for n := 0; len(service)+lines.Len()+variables.Len() < size; n++ {
		value := fmt.Sprintf("database-%d.example.com:%d", n, 1024+n)
		fmt.Fprintf(&lines, "    database-url-%d = %s\n", n, value)
		fmt.Fprintf(&variables, "        - name: DATABASE_URL_%d\n          value: %s\n", n, value)
	}
	return strings.NewReplacer("NAME", name, "LINES", lines.String(), "VARIABLES", variables.String()).Replace(service)
}
