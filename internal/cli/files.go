package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// standardInput is the file that stands for it.
const standardInput = "-"

// file is a text that the user names.
type file struct {
	name string
	text []byte
}

func (e *environment) readFile(name string) (file, error) {
	if name == standardInput {
		text, err := io.ReadAll(e.In)
		return file{"stdin", text}, err
	}
	text, err := os.ReadFile(filepath.Clean(name))
	return file{name, text}, err
}

// base is the name without folder and suffix.
func (f file) base() string {
	name := filepath.Base(f.name)
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// draft is an Application in a file, which no API server has seen yet.
type draft struct {
	cm     *corev1.ConfigMap
	places places
}

// drafts gives the Applications of a file, and tells what else is in it.
func (f file) drafts() (found []draft, leftOut []string, err error) {
	for _, document := range fragments(f.text) {
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

// draft reads one document, which is an Application, another object, or nothing.
func (f file) draft(document fragment) (*draft, string, error) {
	var object map[string]any
	if err := yaml.Unmarshal(document.text, &object); err != nil {
		return nil, "", fmt.Errorf("%s:%d: the document cannot be read: %w", f.name, document.before+1, withoutText(err))
	}
	id, err := manifest.Identify(object)
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, annotated := annotations[application.FormatAnnotation]
	switch {
	case len(object) == 0:
		return nil, "", nil
	case !annotated || object["kind"] != "ConfigMap" || object["apiVersion"] != "v1":
		return nil, strings.TrimSpace(fmt.Sprintf("%s:%d: left out, as it is no Application: %s", f.name, document.before+1, id)), nil
	case err != nil:
		return nil, "", fmt.Errorf("%s:%d: the Application: %w", f.name, document.before+1, err)
	}
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict(document.text, &cm); err != nil {
		return nil, "", fmt.Errorf("%s:%d: the Application cannot be read as a ConfigMap: %w", f.name, document.before+1, withoutText(err))
	}
	return &draft{&cm, placesIn(f.name, document)}, "", nil
}

// withoutText leaves out what a decoder repeats of the text, behind the first line.
func withoutText(err error) error {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(first)
}

// applications gives the Applications of a file, of which there is one at least.
func (f file) applications() ([]draft, []string, error) {
	found, leftOut, err := f.drafts()
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: there is no Application in it: a ConfigMap with the annotation %s: %s", f.name, application.FormatAnnotation, application.Format)
	}
	return found, leftOut, err
}

// draftOf makes an Application of a manifest, and of an observer schema if there is one.
func draftOf(name string, resources file, observerSchema *file) draft {
	d := draft{
		cm:     &corev1.ConfigMap{Data: map[string]string{application.ManifestKey: string(resources.text)}},
		places: places{file: resources.name, parts: map[string]part{application.ManifestKey: {file: resources.name, text: string(resources.text)}}},
	}
	d.cm.APIVersion, d.cm.Kind, d.cm.Name = "v1", "ConfigMap", name
	d.cm.Annotations = map[string]string{application.FormatAnnotation: application.Format}
	if observerSchema != nil {
		d.cm.Data[application.ObserverSchemaKey] = string(observerSchema.text)
		d.places.parts[application.ObserverSchemaKey] = part{file: observerSchema.name, text: string(observerSchema.text)}
	}
	return d
}

// place puts the draft into the namespace that the user means, which must not be another
// than the one that it says.
func (e *environment) place(d draft) error {
	namespace, explicit, err := e.hub.ToRawKubeConfigLoader().Namespace()
	switch {
	case err != nil:
		return err
	case d.cm.Namespace == "":
		d.cm.Namespace = namespace
	case explicit && d.cm.Namespace != namespace && e.hub.Namespace != nil && *e.hub.Namespace != "":
		return fmt.Errorf("%s: the Application %s says namespace %s, and the flag --namespace %s: leave one of the two out", d.places.file, d.cm.Name, d.cm.Namespace, namespace)
	}
	return nil
}

// tell prints what admission has to say of a draft, with the places in its file, and
// gives an error if it refuses it.
func (e *environment) tell(d draft, prepared mutate.Prepared) error {
	for _, warning := range prepared.Warnings {
		path, says, _ := strings.Cut(warning, ": ")
		if unknown := unknownField.FindStringSubmatch(says); unknown != nil {
			path += "." + unknown[1]
		}
		fmt.Fprintln(e.ErrOut, oneLine(d.places.of(path, warning)+": warning: "+warning))
	}
	for _, refusal := range prepared.Refusals {
		fmt.Fprintln(e.ErrOut, oneLine(d.places.of(refusal.Field, refusal.Detail)+": "+refusal.Error()))
	}
	if len(prepared.Refusals) > 0 {
		return fmt.Errorf("%s: the Application %s would be refused: %s", d.places.file, d.cm.Name, mistakes(prepared.Refusals))
	}
	return nil
}

// unknownField is how a field is told of that the type does not have.
var unknownField = regexp.MustCompile(`^unknown field "([^"]+)"`)

func mistakes(refusals field.ErrorList) string {
	if len(refusals) == 1 {
		return "mend this mistake"
	}
	return fmt.Sprintf("mend these %d mistakes", len(refusals))
}

// isApplications tells if there is an Application among the documents of a file: with
// none, it is a manifest.
func (f file) isApplications() bool {
	if !bytes.Contains(f.text, []byte(application.FormatAnnotation)) {
		return false
	}
	found, _, err := f.drafts()
	return err != nil || len(found) > 0
}
