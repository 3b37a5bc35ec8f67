package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// flowSchema is an overlay that adds objects to the default one. In the chart, it adds them to any.
const flowSchema = "flowschema"

// chartOverlays are the overlays of the chart. Users replace names in the others: those of a namespace,
// of a spoke, and of the hosts of URL sources.
func chartOverlays() []string {
	return []string{"default", "strict", "platform", "hooks", "guard", "habitat", "hub"}
}

// chartObject is an object of the chart, and the overlays that have this very object.
type chartObject struct {
	value    map[string]any
	overlays []string
}

// id is the identity of an object.
func (o chartObject) id() string {
	metadata, _ := o.value["metadata"].(map[string]any)
	return fmt.Sprintf("%v/%v %v/%v", o.value["apiVersion"], o.value["kind"], metadata["namespace"], metadata["name"])
}

// writeChart writes a Helm chart of the overlays to a folder.
func writeChart(folder, image, version string) error {
	objects, err := chartObjects(image)
	if err != nil {
		return err
	}
	var c chart
	files := map[string]string{}
	for _, object := range objects {
		text, err := c.template(object)
		if err != nil {
			return err
		}
		kind, _ := object.value["kind"].(string)
		files["templates/"+strings.ToLower(kind)+".yaml"] += text
	}
	if files["Chart.yaml"], err = c.description(version); err != nil {
		return err
	}
	if files["values.yaml"], err = c.values(); err != nil {
		return err
	}
	if files["values.schema.json"], err = c.schema(); err != nil {
		return err
	}
	files["templates/NOTES.txt"], files["templates/checks.yaml"] = notes, checks
	for name, text := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// chartObjects returns the objects of all overlays. An object that differs between overlays is there
// once for each of its forms.
func chartObjects(image string) ([]chartObject, error) {
	byText := map[string]*chartObject{}
	known := map[string]bool{}
	for _, overlay := range append(chartOverlays(), flowSchema) {
		text, err := render(overlay, image)
		if err != nil {
			return nil, err
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			document = strings.TrimSpace(document)
			object := chartObject{}
			if err := yaml.Unmarshal([]byte(document), &object.value); err != nil {
				return nil, fmt.Errorf("read the overlay %s: %w", overlay, err)
			}
			if overlay == flowSchema && known[object.id()] {
				continue
			}
			known[object.id()] = true
			if byText[document] == nil {
				byText[document] = &object
			}
			byText[document].overlays = append(byText[document].overlays, overlay)
		}
	}
	objects := make([]chartObject, 0, len(byText))
	for _, object := range byText {
		objects = append(objects, *object)
	}
	slices.SortFunc(objects, func(a, b chartObject) int {
		return cmp.Or(strings.Compare(a.id(), b.id()), slices.Compare(a.overlays, b.overlays))
	})
	return objects, nil
}

// chart collects what the values of the chart are for.
type chart struct {
	image string
	// components are the Deployments whose fields have values.
	components []string
}

// template returns the text of an object, with the condition that chooses it.
func (c *chart) template(o chartObject) (string, error) {
	var text string
	var err error
	if o.value["kind"] == "Deployment" {
		text, err = c.deployment(o.value)
	} else {
		text, err = escaped(o.value)
	}
	if err != nil {
		return "", err
	}
	condition := ".Values.flowSchema"
	switch {
	case len(o.overlays) == len(chartOverlays()):
		return "---\n" + text, nil
	case o.overlays[0] != flowSchema:
		condition = fmt.Sprintf("has .Values.overlay (list %s)", strings.Join(quoted(o.overlays), " "))
	}
	return "{{- if " + condition + " }}\n---\n" + text + "{{- end }}\n", nil
}

func quoted(texts []string) []string {
	quoted := make([]string, 0, len(texts))
	for _, text := range texts {
		quoted = append(quoted, strconv.Quote(text))
	}
	return quoted
}

// escaped returns an object as text in which Helm finds no template.
func escaped(value any) (string, error) {
	text, err := yaml.Marshal(value)
	return strings.ReplaceAll(string(text), "{{", "{{ `{{` }}"), err
}

// The places of values in the text of a Deployment.
const (
	replicasMark  = "REPLICAS-OF-THE-CHART"
	imageMark     = "IMAGE-OF-THE-CHART"
	argsMark      = "ARGS-OF-THE-CHART"
	memoryMark    = "MEMORY-OF-THE-CHART"
	resourcesMark = "RESOURCES-OF-THE-CHART"
)

// deployment returns a Deployment in which values replace the overlay's fields. Without values, the
// fields are those of the overlay.
func (c *chart) deployment(value map[string]any) (string, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	var d deployment
	if err := json.Unmarshal(encoded, &value); err != nil { // a copy
		return "", err
	}
	if err := json.Unmarshal(encoded, &d); err != nil {
		return "", err
	}
	if len(d.Spec.Template.Spec.Containers) != 1 {
		return "", fmt.Errorf("the Deployment %s has not one container", d.Metadata.Name)
	}
	container := d.Spec.Template.Spec.Containers[0]
	name := strings.TrimPrefix(d.Metadata.Name, "krake-")
	if c.image = container.Image; !slices.Contains(c.components, name) {
		c.components = append(c.components, name)
	}
	memory := ""
	spec, _ := value["spec"].(map[string]any)
	spec["replicas"] = replicasMark
	template, _ := spec["template"].(map[string]any)
	pod, _ := template["spec"].(map[string]any)
	containers, _ := pod["containers"].([]any)
	fields, _ := containers[0].(map[string]any)
	arguments, _ := fields["args"].([]any)
	fields["args"], fields["image"], fields["resources"] = append(arguments, argsMark), imageMark, resourcesMark
	variables, _ := fields["env"].([]any)
	for _, variable := range variables {
		if variable, _ := variable.(map[string]any); variable["name"] == "GOMEMLIMIT" {
			memory, _ = variable["value"].(string)
			variable["value"] = memoryMark
		}
	}
	resources, err := json.Marshal(container.Resources)
	if err != nil {
		return "", err
	}
	text, err := escaped(value)
	values := ".Values." + name
	return strings.NewReplacer(
		replicasMark, fmt.Sprintf("{{ if kindIs \"invalid\" %[1]s.replicas }}%[2]d{{ else }}{{ %[1]s.replicas }}{{ end }}", values, d.Spec.Replicas),
		imageMark, "{{ .Values.image | quote }}",
		"        - "+argsMark+"\n", fmt.Sprintf("        {{- range %s.extraArgs }}\n        - {{ . | quote }}\n        {{- end }}\n", values),
		memoryMark, fmt.Sprintf("{{ %s.goMemoryLimit | default %q | quote }}", values, memory),
		resourcesMark, fmt.Sprintf("{{ %s.resources | default (fromJson `%s`) | toJson }}", values, resources),
	).Replace(text), err
}

// deployment is what the chart reads of a Deployment.
type deployment struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Replicas int `json:"replicas"`
		Template struct {
			Spec struct {
				Containers []struct {
					Image     string         `json:"image"`
					Resources map[string]any `json:"resources"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}
