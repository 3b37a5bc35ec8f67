package create

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/internal/ignored"
)

// origin is the object of another tool whose objects are imported. All methods of a nil origin do
// nothing.
type origin struct {
	source      ignored.Source
	translation *ignored.Translation
}

// readOrigin reads the object of another tool in a file. It returns the namespace of its objects: that
// of the object, or that of the command.
func (c *creation) readOrigin(file string) (*origin, string, error) {
	objects, err := compose.Read(c.In, []string{file}, false)
	if err != nil {
		return nil, "", err
	}
	if len(objects) != 1 {
		return nil, "", fmt.Errorf("--from: %s has %d objects: it has to have one, an Application of Argo CD, a HelmRelease of Flux or a Bundle of Fleet", file, len(objects))
	}
	source, err := ignored.Read(objects[0].Value)
	if err != nil {
		return nil, "", fmt.Errorf("--from: %s: %w", objects[0].Place(), err)
	}
	if explicit := ptr.Deref(c.Hub.Namespace, ""); explicit != "" && source.Namespace != "" && explicit != source.Namespace {
		return nil, "", fmt.Errorf("%s: the objects of the %s are in namespace %s, and the flag --namespace is %s: leave one of the two out",
			objects[0].Place(), source, source.Namespace, explicit)
	}
	return &origin{source, ignored.NewTranslation(source)}, cmp.Or(source.Namespace, c.namespace), nil
}

// managed returns those of the objects that the other tool manages.
func (o *origin) managed(all []found, namespace string) ([]found, error) {
	if o == nil {
		return all, nil
	}
	managed := ignored.ManagedBy(o.source, all)
	if len(managed) == 0 {
		return nil, fmt.Errorf("no object in namespace %s is marked as one of the %s, by %s: name the namespace by -n, or choose the objects by KIND/NAME or --selector", namespace, o.source, o.source.Marks())
	}
	return managed, nil
}

// exclusion returns why the rules of the other tool exclude an object, empty if they do not.
func (o *origin) exclusion(object found) string {
	if o == nil {
		return ""
	}
	return o.translation.LeavesOut(object)
}

// translate removes what the other tool ignores from a proposal, and ignored elements of lists from
// the resource.
func (o *origin) translate(ctx context.Context, p proposal, resource map[string]any, object found, types *apitypes.Types) (proposal, error) {
	if o == nil {
		return p, nil
	}
	change, err := o.translation.Apply(ctx, ignored.Target{Live: object.Unstructured, Manifest: resource, Schema: p.document, Kind: types.Of(p.id)})
	for _, i := range change.Ignored {
		p.left = append(p.left, leftOut{i.Path, i.Reason})
	}
	for _, list := range change.Open {
		p.lists = append(p.lists, list.String())
	}
	return p, err
}

// printUntranslated prints what is in no observer schema.
func (o *origin) printUntranslated(out io.Writer) {
	if o == nil {
		return
	}
	for _, line := range o.translation.Untranslated() {
		fmt.Fprintln(out, env.OneLine("not translated: "+line))
	}
}

// printAdvice prints what the other tool goes on doing.
func (o *origin) printAdvice(out io.Writer) {
	if o != nil {
		fmt.Fprintln(out, env.OneLine(o.source.Advice))
	}
}
