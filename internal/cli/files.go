package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// file is a file that the user names, with its text.
type file struct {
	name string
	text []byte
}

func readFile(in io.Reader, name string) (file, error) {
	name, text, err := compose.ReadFile(in, name)
	return file{name, text}, err
}

// draft is an Application in a file, which no API server has seen yet.
type draft struct {
	cm     *corev1.ConfigMap
	places places
}

// drafts returns the Applications of a file, and messages about its other documents.
func (f file) drafts() (found []draft, leftOut []string, err error) {
	for _, document := range compose.Documents(f.text) {
		d, other, err := f.draft(document)
		switch {
		case err != nil:
			return nil, nil, err
		case d != nil:
			found = append(found, *d)
		case other != "":
			leftOut = append(leftOut, other)
		}
	}
	return found, leftOut, nil
}

// draft reads one document: an Application, another object, or nothing.
func (f file) draft(document compose.Document) (found *draft, leftOut string, err error) {
	var object map[string]any
	if err := yaml.Unmarshal(document.Text, &object); err != nil {
		return nil, "", fmt.Errorf("%s:%d: the document cannot be read: %w", f.name, document.Before+1, withoutText(err))
	}
	id, err := manifest.Identify(object)
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, annotated := annotations[application.FormatAnnotation]
	switch {
	case len(object) == 0:
		return nil, "", nil
	case !annotated || object["kind"] != "ConfigMap" || object["apiVersion"] != "v1":
		return nil, strings.TrimSpace(fmt.Sprintf("%s:%d: left out, not an Application: %s", f.name, document.Before+1, id)), nil
	case err != nil:
		return nil, "", fmt.Errorf("%s:%d: the Application: %w", f.name, document.Before+1, err)
	}
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict(document.Text, &cm); err != nil {
		return nil, "", fmt.Errorf("%s:%d: the Application cannot be read as a ConfigMap: %w", f.name, document.Before+1, withoutText(err))
	}
	return &draft{&cm, placesIn(f.name, document)}, "", nil
}

// withoutText returns the first line of an error. In later lines a decoder repeats the text.
func withoutText(err error) error {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(first)
}

// isApplications reports whether a document of the file is an Application. If none is, the file
// is a manifest.
func (f file) isApplications() bool {
	if !bytes.Contains(f.text, []byte(application.FormatAnnotation)) {
		return false
	}
	found, _, err := f.drafts()
	return err != nil || len(found) > 0
}

// applications is drafts, but returns an error for a file without an Application.
func (f file) applications() ([]draft, []string, error) {
	found, leftOut, err := f.drafts()
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: there is no Application in it: a ConfigMap with the annotation %s: %s", f.name, application.FormatAnnotation, application.Format)
	}
	return found, leftOut, err
}

// draftOf returns an Application of a manifest.
func draftOf(name string, resources file) draft {
	d := draft{
		cm:     &corev1.ConfigMap{Data: map[string]string{}},
		places: places{file: resources.name, parts: map[string]part{}},
	}
	d.cm.APIVersion, d.cm.Kind, d.cm.Name = "v1", "ConfigMap", name
	d.cm.Annotations = map[string]string{application.FormatAnnotation: application.Format}
	d.set(application.ManifestKey, resources)
	return d
}

// set sets a key of the spec to the text of a file.
func (d draft) set(key string, from file) {
	d.cm.Data[key] = string(from.text)
	d.places.parts[key] = part{file: from.name, text: string(from.text)}
}

// place sets the namespace that the flags select. A draft with a namespace must have the same
// one.
func (d draft) place(hub *genericclioptions.ConfigFlags) error {
	namespace, explicit, err := hub.ToRawKubeConfigLoader().Namespace()
	switch {
	case err != nil:
		return err
	case d.cm.Namespace == "":
		d.cm.Namespace = namespace
	case explicit && d.cm.Namespace != namespace && ptr.Deref(hub.Namespace, "") != "":
		return fmt.Errorf("%s: the Application %s says namespace %s, and the flag --namespace %s: leave one of the two out", d.places.file, d.cm.Name, d.cm.Namespace, namespace)
	}
	return nil
}

// tell prints the warnings and refusals of admission, with their places in the file. It
// returns an error if there are refusals.
func (d draft) tell(out io.Writer, prepared mutate.Prepared) error {
	for _, warning := range prepared.Warnings {
		path, says, _ := strings.Cut(warning, ": ")
		if unknown := unknownField.FindStringSubmatch(says); unknown != nil {
			path += "." + unknown[1]
		}
		fmt.Fprintln(out, oneLine(d.places.of(path, warning)+": warning: "+warning))
	}
	for _, refusal := range prepared.Refusals {
		fmt.Fprintln(out, oneLine(d.places.of(refusal.Field, refusal.Detail)+": "+refusal.Error()))
	}
	mistakes := "this mistake"
	switch count := len(prepared.Refusals); {
	case count == 0:
		return nil
	case count > 1:
		mistakes = fmt.Sprintf("these %d mistakes", count)
	}
	return fmt.Errorf("%s: the Application %s would be refused: mend %s", d.places.file, d.cm.Name, mistakes)
}

// unknownField is the warning of a field that the type does not have.
var unknownField = regexp.MustCompile(`^unknown field "([^"]+)"`)
