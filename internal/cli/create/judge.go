package create

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/internal/cli/draft"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// unsupported is an object that cannot belong to an Application.
type unsupported struct {
	compose.Object

	reason string
}

func (u unsupported) is(object compose.Object) bool {
	return u.Place() == object.Place() && u.ID == object.ID
}

// judgement is what webhook and API server would say.
type judgement struct {
	draft.Remarks

	unsupported []unsupported
	// tests are those of Helm, which no installation needs.
	tests []compose.Object
	// apps have all other objects.
	apps []composed
	// failed is set if there are mistakes.
	failed error
}

func (j *judgement) hasMistakes() bool { return j.failed != nil }

// sort puts the unsupported objects in the order of the input.
func (j *judgement) sort(all []compose.Part) {
	place := func(u unsupported) int {
		return slices.IndexFunc(all, func(part compose.Part) bool { return u.is(part.Object) })
	}
	slices.SortFunc(j.unsupported, func(a, b unsupported) int { return place(a) - place(b) })
}

// reset forgets warnings and mistakes, because other Applications are judged.
func (j *judgement) reset() {
	j.Said.Reset()
	j.failed, j.Warned = nil, nil
}

// judge asks the code of the webhook, and then the webhook itself by dry runs, until no object
// remains that cannot belong to an Application. The first answer need not name all of them.
func (c *creation) judge(ctx context.Context, parts []compose.Part) (*judgement, error) {
	j := new(judgement)
	all := slices.Clone(parts)
	defer func() { j.sort(all) }()
	parts = slices.DeleteFunc(parts, j.leavesHook)
	for len(parts) > 0 {
		var err error
		if j.apps, err = c.compose(parts); err != nil {
			return j, err
		}
		j.reset()
		found, err := c.unsupportedIn(ctx, j)
		if err != nil {
			return j, err
		}
		if len(found) == 0 {
			return j, nil
		}
		j.unsupported = append(j.unsupported, found...)
		parts = slices.DeleteFunc(parts, func(part compose.Part) bool {
			return slices.ContainsFunc(found, func(u unsupported) bool { return u.is(part.Object) })
		})
	}
	j.reset() // it was about objects that no Application has now
	j.apps = nil
	return j, nil
}

// leavesHook leaves out a hook of Helm. Its tests are not a part of what a chart installs.
func (j *judgement) leavesHook(part compose.Part) bool {
	hook, ok := env.AnnotationsOf(part.Value)["helm.sh/hook"]
	switch {
	case !ok:
		return false
	case strings.HasPrefix(hook, "test"):
		j.tests = append(j.tests, part.Object)
	default:
		j.unsupported = append(j.unsupported, unsupported{part.Object,
			fmt.Sprintf("it is a hook of Helm (%s), which runs once, and an Application would keep it", hook)})
	}
	return true
}

// unsupportedIn judges the Applications, and returns the objects to be taken out of them.
func (c *creation) unsupportedIn(ctx context.Context, j *judgement) ([]unsupported, error) {
	var found []unsupported
	for _, app := range j.apps {
		prepared := mutate.PrepareForCreate(ctx.Err, app.ConfigMap.DeepCopy())
		var mistakes field.ErrorList
		for _, refusal := range prepared.Refusals {
			object, ok := app.unsupported(refusal.Field, refusal.Type == field.ErrorTypeForbidden)
			if ok {
				found = add(found, unsupported{object, refusal.Detail})
				continue
			}
			mistakes = append(mistakes, refusal)
		}
		prepared.Refusals = mistakes
		j.failed = errors.Join(j.failed, app.Tell(&j.Said, prepared))
		j.Warned = append(j.Warned, prepared.Warnings...)
	}
	if len(found) > 0 || j.hasMistakes() || c.dryRun == env.DryRunClient {
		return found, nil
	}
	for _, app := range j.apps {
		_, err := c.send(ctx, j, app, env.DryRunServer)
		refused, err := c.refusedBy(j, app, err)
		if err != nil {
			return nil, err
		}
		found = append(found, refused...)
	}
	return found, nil
}

// refusedBy reads the answer to a dry run.
func (c *creation) refusedBy(j *judgement, app composed, err error) (found []unsupported, failed error) {
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return nil, nil
	case apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("the ConfigMap %s exists in namespace %s: choose another name, or change it by the output of --dry-run=client -o yaml", app.ConfigMap.Name, app.ConfigMap.Namespace)
	case !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0:
		return nil, err
	}
	mistakes := 0
	for _, cause := range status.Status().Details.Causes {
		invalid := apierrors.IsInvalid(err) && cause.Type == metav1.CauseTypeForbidden
		if object, ok := app.unsupported(cause.Field, invalid); ok {
			found = add(found, unsupported{object, strings.TrimPrefix(cause.Message, "Forbidden: ")})
			continue
		}
		mistakes++
		fmt.Fprintln(&j.Said, env.OneLine(app.Places.Of(cause.Field, cause.Message)+": "+cause.Field+": "+cause.Message))
	}
	if mistakes > 0 {
		j.failed = errors.Join(j.failed, fmt.Errorf("the webhook refuses the Application %s: see the lines above", app.ConfigMap.Name))
	}
	return found, nil
}

// add adds an object once.
func add(found []unsupported, another unsupported) []unsupported {
	if slices.ContainsFunc(found, func(u unsupported) bool { return u.is(another.Object) }) {
		return found
	}
	return append(found, another)
}

// ofWhole are the places of refusals that no change of an object avoids: what is forbidden there is
// the object as such.
var ofWhole = regexp.MustCompile(`^data\.` + regexp.QuoteMeta(application.ManifestKey) + `\[(\d+)\]\.(kind|data|stringData|metadata\.annotations\[` + regexp.QuoteMeta(application.FormatAnnotation) + `\])$`)

// unsupported returns the object that a refusal is about, if the object cannot belong to an
// Application.
func (a composed) unsupported(path string, forbidden bool) (compose.Object, bool) {
	match := ofWhole.FindStringSubmatch(path)
	if match == nil || !forbidden {
		return compose.Object{}, false
	}
	index, err := strconv.Atoi(match[1])
	if err != nil || index >= len(a.parts) {
		return compose.Object{}, false
	}
	return a.parts[index].Object, true
}

// tell prints a judgement. It returns an error if nothing is to be created.
func (c *creation) tell(j *judgement) error {
	if err := j.Flush(c.ErrOut); err != nil {
		return err
	}
	for _, object := range j.tests {
		fmt.Fprintln(c.ErrOut, env.OneLine(fmt.Sprintf("%s: %s %s: left out: it is a test of Helm", object.Place(), object.Kind, object.Name)))
	}
	for _, object := range j.unsupported {
		verb := "cannot belong to an Application"
		if c.skip {
			verb = "left out"
		}
		fmt.Fprintln(c.ErrOut, env.OneLine(fmt.Sprintf("%s: %s %s: %s: %s", object.Place(), object.Kind, object.Name, verb, object.reason)))
	}
	switch {
	case j.failed != nil:
		return j.failed
	case len(j.apps) == 0:
		return fmt.Errorf("%s: no object in it can belong to an Application: create them by kubectl apply", c.source())
	case len(j.unsupported) > 0 && !c.skip:
		return errors.New("nothing is created: print these objects for kubectl apply with --only-unsupported, and create the others with --skip-unsupported")
	}
	return nil
}

// send creates an Application.
func (c *creation) send(ctx context.Context, j *judgement, app composed, dryRun env.DryRun) (*corev1.ConfigMap, error) {
	client, err := j.Client(c.Environment, app.Places)
	if err != nil {
		return nil, err
	}
	return client.ConfigMaps(app.ConfigMap.Namespace).Create(ctx, app.ConfigMap, metav1.CreateOptions{FieldManager: env.FieldManager, DryRun: dryRun.OfRequest()})
}
