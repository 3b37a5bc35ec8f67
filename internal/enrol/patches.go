package enrol

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

const (
	pod       = "/spec/template/"
	container = pod + "spec/containers/0/"
)

// patches carry the options over to the agent, and let it out to the hub. The
// token is read again and again, but the kubeconfig once: another one replaces
// the Pods.
func patches(options Options, address address, config []byte) ([]map[string]any, error) {
	names, _ := options.namespaces()
	digest := sha256.Sum256(config)
	deployment := []operation{
		{"add", container + "args/-", "--hub-namespaces=" + strings.Join(names, ",")},
		{"add", pod + "metadata/annotations", map[string]string{application.Prefix + "hub-kubeconfig": hex.EncodeToString(digest[:8])}},
	}
	if len(options.NamespaceMap) > 0 {
		deployment = append(deployment, operation{"add", container + "args/-", "--namespace-map=" + strings.Join(options.NamespaceMap, ",")})
	}
	if options.Image != "" {
		deployment = append(deployment, operation{"replace", container + "image", options.Image})
	}
	all := []patch{{"Deployment", deployment}}
	if port, known := address.port(); !known {
		all = append(all, patch{"NetworkPolicy", []operation{{"add", "/spec/egress/0/ports/-", map[string]any{"port": port}}}})
	}
	return render(all)
}

// patch changes all objects of a kind.
type patch struct {
	kind   string
	change []operation
}

// render writes patches as a kustomization has them.
func render(patches []patch) ([]map[string]any, error) {
	var rendered []map[string]any
	for _, p := range patches {
		text, err := json.Marshal(p.change)
		if err != nil {
			return nil, fmt.Errorf("write the patch of the %s: %w", p.kind, err)
		}
		rendered = append(rendered, map[string]any{"target": map[string]any{"kind": p.kind}, "patch": string(text)})
	}
	return rendered, nil
}
