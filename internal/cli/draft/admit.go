package draft

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// Prepare returns a draft as it would be admitted, and prints what admission says.
func Prepare(ctx context.Context, e *env.Environment, d Draft) (*application.Application, []plan.Expected, error) {
	if err := d.Place(e.Hub); err != nil {
		return nil, nil, err
	}
	client, _, err := e.Applications()
	if err != nil {
		return nil, nil, err
	}
	stored, err := client.ConfigMaps(d.ConfigMap.Namespace).Get(ctx, d.ConfigMap.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		stored = nil
	case err != nil:
		return nil, nil, err
	default:
		d.ConfigMap = afterApply(d.ConfigMap, stored)
	}
	if err := Admit(ctx, e, d, stored); err != nil {
		return nil, nil, err
	}
	app, err := application.Read(d.ConfigMap)
	if err != nil {
		return nil, nil, err
	}
	expected, err := apps.Expect(app, env.TypesOn(e.ObjectsOf, app.Cluster))
	return app, expected, err
}

// Admit changes a draft as the webhook does, and prints what admission says. Stored is nil for a new
// Application.
func Admit(ctx context.Context, e *env.Environment, d Draft, stored *corev1.ConfigMap) error {
	sent := d.ConfigMap.DeepCopy() // without what the webhook adds
	var prepared mutate.Prepared
	if stored == nil {
		prepared = mutate.PrepareForCreate(ctx.Err, d.ConfigMap)
	} else {
		prepared = mutate.PrepareForUpdate(ctx.Err, d.ConfigMap, stored, application.IsAdmitted(stored))
	}
	if err := d.Tell(e.ErrOut, prepared); err != nil {
		return err
	}
	return ask(ctx, e, d, sent, stored, prepared.Warnings)
}

// ask asks the webhook by a dry run, and prints what only the webhook knows: kinds without a
// namespace, and what user or agent may not do. A user who may not write the Application may still
// compare it.
func ask(ctx context.Context, e *env.Environment, d Draft, sent, stored *corev1.ConfigMap, warned []string) error {
	r := Remarks{Warned: warned}
	client, err := r.Client(e, d.Places)
	if err != nil {
		return err
	}
	dry := []string{metav1.DryRunAll}
	if stored == nil {
		_, err = client.ConfigMaps(sent.Namespace).Create(ctx, sent, metav1.CreateOptions{DryRun: dry, FieldManager: env.FieldManager})
	} else {
		var change []byte
		if change, err = changeOf(stored, sent); err != nil {
			return err
		}
		_, err = client.ConfigMaps(sent.Namespace).Patch(ctx, sent.Name, types.MergePatchType, change, metav1.PatchOptions{DryRun: dry, FieldManager: env.FieldManager})
	}
	if err != nil && !apierrors.IsInvalid(err) {
		fmt.Fprintln(&r.Said, env.OneLine("not admitted now: "+err.Error()))
		err = nil
	}
	return errors.Join(r.Flush(e.ErrOut), err)
}

// changeOf returns the merge patch from stored to sent. An update would conflict with an agent that
// writes the status in the meantime.
func changeOf(stored, sent *corev1.ConfigMap) ([]byte, error) {
	from, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(sent)
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(from, to)
}

// afterApply returns the stored ConfigMap as kubectl apply leaves it with that of a file:
// annotations and labels that the file does not have stay.
func afterApply(cm, stored *corev1.ConfigMap) *corev1.ConfigMap {
	merged := stored.DeepCopy()
	merged.Annotations, merged.Labels = mergedInto(merged.Annotations, cm.Annotations), mergedInto(merged.Labels, cm.Labels)
	maps.DeleteFunc(merged.Data, func(key, _ string) bool { return application.IsSpecKey(key) })
	maps.DeleteFunc(merged.BinaryData, func(key string, _ []byte) bool { return application.IsSpecKey(key) })
	merged.Data, merged.BinaryData = mergedInto(merged.Data, cm.Data), mergedInto(merged.BinaryData, cm.BinaryData)
	merged.Immutable = cmp.Or(cm.Immutable, stored.Immutable)
	return merged
}

func mergedInto[V any](into, from map[string]V) map[string]V {
	if into == nil {
		return from
	}
	maps.Copy(into, from)
	return into
}

// Remarks are what admission says about an Application.
type Remarks struct {
	// Said has the warnings and mistakes, with their places, that are not printed yet.
	Said strings.Builder
	// Warned has the warnings of both the code and the webhook.
	Warned []string
}

// Flush prints what was said.
func (r *Remarks) Flush(out io.Writer) error {
	_, err := io.WriteString(out, r.Said.String())
	r.Said.Reset()
	return err
}

// Client returns a client of the hub that adds the warnings of admission.
func (r *Remarks) Client(e *env.Environment, places Places) (typedcorev1.ConfigMapsGetter, error) {
	config, err := e.Hub.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = warningsOf{places, r}
	return typedcorev1.NewForConfig(config)
}

// warningsOf adds the warnings of admission about an Application to its remarks, each once.
type warningsOf struct {
	places  Places
	remarks *Remarks
}

// HandleWarningHeader implements rest.WarningHandler.
func (w warningsOf) HandleWarningHeader(code int, _, text string) {
	const warning = 299 // the code of the API server, RFC 9111
	begin := strings.TrimSuffix(text, "...")
	if code != warning || slices.ContainsFunc(w.remarks.Warned, func(known string) bool { return strings.HasPrefix(known, begin) }) {
		return
	}
	w.remarks.Warned = append(w.remarks.Warned, text)
	path, _, _ := strings.Cut(text, ": ")
	fmt.Fprintln(&w.remarks.Said, env.OneLine(w.places.Of(path, text)+": warning: "+text))
}
