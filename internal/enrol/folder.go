package enrol

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	slashpath "path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	kustomization  = "kustomization.yaml"
	kubeconfigFile = "kubeconfig"
	spoke          = "overlays/spoke"
)

// folder is where the files of one cluster are:
//
//	kustomization.yaml   everything
//	manifests/           the shipped files, with the name of the cluster
//	agent/               the files of this agent: kustomization.yaml, kubeconfig, token
type folder struct {
	path   string
	header string
}

// openFolder accepts a folder that is empty, does not exist, or was written for the same cluster.
// It does not overwrite other files.
func openFolder(path, cluster string) (folder, error) {
	f := folder{path: path, header: "# Written by kubectl-krake enrol " + cluster + ", each time anew. Put changes into a\n" +
		"# kustomization of your own that has this folder among its resources.\n"}
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0) {
		return f, nil
	}
	if err != nil {
		return folder{}, fmt.Errorf("--out: %w", err)
	}
	text, err := fs.ReadFile(os.DirFS(path), kustomization)
	if err != nil || !bytes.HasPrefix(text, []byte(f.header)) {
		return folder{}, fmt.Errorf("--out: %s has files that are not of an enrolment of %s: name an empty folder", path, cluster)
	}
	return f, nil
}

// write writes the files. The one that names the cluster of the folder comes first.
func (f folder) write(options Options, address address, token string) error {
	top, err := f.top(options.components())
	if err != nil {
		return err
	}
	config, err := address.kubeconfig(options.Cluster)
	if err != nil {
		return err
	}
	agent, err := f.agent(options, address, config)
	if err != nil {
		return err
	}
	if err := f.put(kustomization, top); err != nil {
		return err
	}
	parts := append(options.components(), "base/agents", "base/agent", "base/target", "base/policies", spoke)
	for _, component := range options.agentComponents() {
		parts = append(parts, component, slashpath.Join(slashpath.Dir(component), "endpoint"))
	}
	if err := f.extract(options.Cluster, parts); err != nil {
		return err
	}
	return errors.Join(
		f.put("agent/"+kubeconfigFile, config),
		f.put("agent/"+tokenFile, []byte(token)),
		f.put("agent/"+kustomization, agent),
	)
}

func (f folder) document(fields map[string]any) ([]byte, error) {
	fields["apiVersion"], fields["kind"] = "kustomize.config.k8s.io/v1beta1", "Kustomization"
	text, err := yaml.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("write a kustomization: %w", err)
	}
	return append([]byte(f.header), text...), nil
}

func (f folder) top(components []string) ([]byte, error) {
	fields := map[string]any{"resources": []string{"manifests/" + spoke + "/shared", "agent"}}
	addComponents(fields, "manifests/", components)
	return f.document(fields)
}

// addComponents adds the components, if there are any, to the fields of a kustomization.
func addComponents(fields map[string]any, prefix string, components []string) {
	var paths []string
	for _, component := range components {
		paths = append(paths, prefix+component)
	}
	if len(paths) > 0 {
		fields["components"] = paths
	}
}

// agent returns the kustomization of the agent's own files. The Secret keeps its name when the
// token changes, so that the kubelet delivers the new token.
func (f folder) agent(options Options, address address, config []byte) ([]byte, error) {
	patches, err := patches(options, address, config)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{
		"resources": []string{"../manifests/" + spoke + "/agent"},
		"secretGenerator": []map[string]any{{
			"name": "krake-hub-" + options.Cluster, "namespace": "krake-agents",
			"files":   []string{kubeconfigFile, tokenFile},
			"options": map[string]any{"disableNameSuffixHash": true},
		}},
		"patches": patches,
	}
	addComponents(fields, "../manifests/", options.agentComponents())
	return f.document(fields)
}

func (f folder) extract(cluster string, parts []string) error {
	for _, part := range parts {
		err := fs.WalkDir(manifests.Files, part, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := manifests.Files.ReadFile(path)
			if err != nil {
				return err
			}
			return f.put("manifests/"+path, bytes.ReplaceAll(text, []byte(manifests.ClusterName), []byte(cluster)))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// put replaces a file atomically, because it may be in use. Only its owner can read it.
func (f folder) put(name string, text []byte) error {
	path := filepath.Join(f.path, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

const (
	pod       = "/spec/template/"
	container = pod + "spec/containers/0/"
)

// patches returns those that pass the options to the agent, and allow its connection to the hub.
// The agent reads the token again and again, but the kubeconfig only once. An annotation with
// the digest of the kubeconfig makes a change of it replace the Pods.
func patches(options Options, address address, config []byte) ([]map[string]any, error) {
	names, _ := options.namespaces()
	digest := sha256.Sum256(config)
	deployment := []operation{
		{"add", container + "args/-", "--hub-namespaces=" + strings.Join(names, ",")},
		{"add", pod + "metadata/annotations", map[string]string{application.Prefix + "hub-kubeconfig": hex.EncodeToString(digest[:8])}},
	}
	if len(options.NamespaceMap) > 0 {
		deployment = append(deployment,
			operation{"add", container + "args/-", "--namespace-map=" + strings.Join(options.NamespaceMap, ",")},
			operation{"add", container + "args/-", "--hub-uid=" + string(address.uid)})
	}
	if options.Image != "" {
		deployment = append(deployment, operation{"replace", container + "image", options.Image})
	}
	agent := "krake-agent-" + options.Cluster // components have NetworkPolicies of their own
	patch, err := patchOf("Deployment", agent, deployment)
	port, known := address.port()
	if err != nil || known {
		return []map[string]any{patch}, err
	}
	policy, err := patchOf("NetworkPolicy", agent, []operation{{"add", "/spec/egress/0/ports/-", map[string]any{"port": port}}})
	return []map[string]any{patch, policy}, err
}

func patchOf(kind, name string, change []operation) (map[string]any, error) {
	text, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("write the patch of the %s: %w", kind, err)
	}
	return map[string]any{"target": map[string]any{"kind": kind, "name": name}, "patch": string(text)}, nil
}
