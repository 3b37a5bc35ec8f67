package plan

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// ErrRefused is the error of an Application that the agent refuses to carry out.
var ErrRefused = errors.New("refused")

// ErrUntranslatable is the ErrRefused of an invalid template or archive.
var ErrUntranslatable = fmt.Errorf("%w: it cannot be translated", ErrRefused)

// refusalOf returns the error of a spec with refusals, nil if there are none.
func refusalOf(refusals field.ErrorList) error {
	switch {
	case mutate.IsOfTranslation(refusals):
		return fmt.Errorf("%w: %s", ErrUntranslatable, mutate.Summary(refusals))
	case len(refusals) > 0:
		return fmt.Errorf("%w: %s", ErrRefused, mutate.Summary(refusals))
	}
	return nil
}

// desire returns the desired state of an Application, and its objects without places.
func desire(app *application.Application) (mutate.Desired, []Object, error) {
	desired, refusals := mutate.Desire(app.Spec, app.Learned)
	if err := refusalOf(refusals); err != nil {
		return desired, nil, err
	}
	objects := make([]Object, len(desired.Resources))
	for i := range objects {
		id, err := manifest.Identify(desired.Resources[i])
		if err != nil {
			return desired, nil, fmt.Errorf("%w: %w", ErrRefused, err)
		}
		objects[i] = Object{
			Ref: manifest.Ref{ID: id}, manifestNamespace: id.Namespace,
			Mangled: shapes.Share(desired.Schemas[i]), desired: treeOf(desired.Resources[i]), manifest: treeOf(desired.Manifest[i]),
		}
	}
	return desired, objects, nil
}
