// Package draft reads the Applications of files, and reports what admission says about them, with the file and the line.
package draft

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

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// File is a file that the user names, with its text.
type File struct {
	Name string
	Text []byte
}

// ReadFile reads a file, or the standard input for the name -.
func ReadFile(in io.Reader, name string) (File, error) {
	name, text, err := compose.ReadFile(in, name)
	return File{name, text}, err
}

// Draft is an Application in a file, which no API server has seen yet.
type Draft struct {
	ConfigMap *corev1.ConfigMap
	Places    Places
}

// drafts returns the Applications of a file, and messages about its other documents.
func (f File) drafts() (found []Draft, leftOut []string, err error) {
	for _, document := range compose.Documents(f.Text) {
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
func (f File) draft(document compose.Document) (found *Draft, leftOut string, err error) {
	var object map[string]any
	if err := yaml.Unmarshal(document.Text, &object); err != nil {
		return nil, "", fmt.Errorf("%s:%d: the document cannot be read: %w", f.Name, document.Before+1, WithoutText(err))
	}
	id, err := manifest.Identify(object)
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, annotated := annotations[application.FormatAnnotation]
	switch {
	case len(object) == 0:
		return nil, "", nil
	case !annotated || object["kind"] != "ConfigMap" || object["apiVersion"] != "v1":
		return nil, strings.TrimSpace(fmt.Sprintf("%s:%d: left out, not an Application: %s", f.Name, document.Before+1, id)), nil
	case err != nil:
		return nil, "", fmt.Errorf("%s:%d: the Application: %w", f.Name, document.Before+1, err)
	}
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict(document.Text, &cm); err != nil {
		return nil, "", fmt.Errorf("%s:%d: the Application cannot be read as a ConfigMap: %w", f.Name, document.Before+1, WithoutText(err))
	}
	return &Draft{&cm, placesIn(f.Name, document)}, "", nil
}

// WithoutText returns the first line of an error. In later lines a decoder repeats the text.
func WithoutText(err error) error {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(first)
}

// IsApplications reports whether a document of the file is an Application. If none is, the file
// is a manifest.
func (f File) IsApplications() bool {
	if !bytes.Contains(f.Text, []byte(application.FormatAnnotation)) {
		return false
	}
	found, _, err := f.drafts()
	return err != nil || len(found) > 0
}

// Applications is drafts, but returns an error for a file without an Application.
func (f File) Applications() ([]Draft, []string, error) {
	found, leftOut, err := f.drafts()
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: there is no Application in it: a ConfigMap with the annotation %s: %s", f.Name, application.FormatAnnotation, application.Format)
	}
	return found, leftOut, err
}

// New returns an Application of a manifest.
func New(name string, resources File) Draft {
	d := Draft{
		ConfigMap: &corev1.ConfigMap{Data: map[string]string{}},
		Places:    Places{File: resources.Name, Parts: map[string]Part{}},
	}
	d.ConfigMap.APIVersion, d.ConfigMap.Kind, d.ConfigMap.Name = "v1", "ConfigMap", name
	d.ConfigMap.Annotations = map[string]string{application.FormatAnnotation: application.Format}
	d.Set(application.ManifestKey, resources)
	return d
}

// Set sets a key of the spec to the text of a file.
func (d Draft) Set(key string, from File) {
	d.ConfigMap.Data[key] = string(from.Text)
	d.Places.Parts[key] = Part{File: from.Name, Text: string(from.Text)}
}

// Place sets the namespace that the flags select. A draft with a namespace must have the same
// one.
func (d Draft) Place(hub *genericclioptions.ConfigFlags) error {
	namespace, explicit, err := hub.ToRawKubeConfigLoader().Namespace()
	switch {
	case err != nil:
		return err
	case d.ConfigMap.Namespace == "":
		d.ConfigMap.Namespace = namespace
	case explicit && d.ConfigMap.Namespace != namespace && ptr.Deref(hub.Namespace, "") != "":
		return fmt.Errorf("%s: the Application %s says namespace %s, and the flag --namespace %s: leave one of the two out", d.Places.File, d.ConfigMap.Name, d.ConfigMap.Namespace, namespace)
	}
	return nil
}

// Tell prints the warnings and refusals of admission, with their places in the file. It
// returns an error if there are refusals.
func (d Draft) Tell(out io.Writer, prepared mutate.Prepared) error {
	for _, warning := range prepared.Warnings {
		path, says, _ := strings.Cut(warning, ": ")
		if unknown := unknownField.FindStringSubmatch(says); unknown != nil {
			path += "." + unknown[1]
		}
		fmt.Fprintln(out, env.OneLine(d.Places.Of(path, warning)+": warning: "+warning))
	}
	for _, refusal := range prepared.Refusals {
		fmt.Fprintln(out, env.OneLine(d.Places.Of(refusal.Field, refusal.Detail)+": "+refusal.Error()))
	}
	mistakes := "this mistake"
	switch count := len(prepared.Refusals); {
	case count == 0:
		return nil
	case count > 1:
		mistakes = fmt.Sprintf("these %d mistakes", count)
	}
	return fmt.Errorf("%s: the Application %s would be refused: mend %s", d.Places.File, d.ConfigMap.Name, mistakes)
}

// unknownField is the warning of a field that the type does not have.
var unknownField = regexp.MustCompile(`^unknown field "([^"]+)"`)
