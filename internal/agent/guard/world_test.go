package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const (
	deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, template: {spec: {
containers: [{name: web, image: "nginx:1.27", env: [{name: A, value: hunter2}]}]}}}}`
	replicasText = "spec.replicas is managed by Application shop/web and will be set back to 3. Change it there, or hold it first: kubectl krake hold -n shop web deployment/web"
	deletionText = "deployment/web is managed by Application shop/web and will be created again. Leave it out of the manifest there, or stop the agent first: kubectl krake suspend -n shop web"
)

// world is a handler with what it knows: one Application, and one of its objects on the target.
type world struct {
	*handler

	app *application.Application
	// live is an object as the agent creates it.
	live map[string]any
	// home is the namespace on the target.
	home string
	// getFails and liveFails are errors of the source.
	getFails, liveFails error
	writer              string
	reports             []string
}

// newWorld returns a world whose Application has this manifest. Its first object exists.
func newWorld(t testing.TB, manifestText string) *world {
	t.Helper()
	w := &world{app: newApplication(t, manifestText), home: "shop"}
	w.handler = newHandler(
		Source{
			Get: func(_ context.Context, name types.NamespacedName) (*application.Application, error) {
				if name != w.app.NamespacedName {
					return nil, w.getFails
				}
				return w.app, w.getFails
			},
			Home:   func(string) string { return w.home },
			Writer: func(*application.Application) string { return w.writer },
			Types:  plan.NoTypes,
			Live: func(context.Context, manifest.Ref) (map[string]any, error) {
				return w.live, w.liveFails
			},
			Report: func(_ *application.Application, outcome status.Outcome) {
				w.reports = append(w.reports, fmt.Sprint(outcome.Action, " ", outcome.Object, " ", outcome.Paths, " ", outcome.Reason))
			},
			MaxHold: 4 * time.Hour, Now: func() time.Time { return noon }, Logger: logr.Discard(),
		},
		Options{BreakGlassUsers: []string{"carol"}, BreakGlassGroups: []string{"oncall"}},
	)
	w.create(t)
	return w
}

func newApplication(t testing.TB, manifestText string) *application.Application {
	t.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "app-uid", Annotations: map[string]string{application.FormatAnnotation: application.Format}},
		Data:       map[string]string{application.ManifestKey: manifestText},
	}
	if prepared := mutate.PrepareForCreate(t.Context().Err, cm); len(prepared.Refusals) > 0 {
		t.Fatal(prepared.Refusals)
	}
	app, err := application.Read(cm)
	check.Must(t, err)
	app.NotAdmitted = nil
	return app
}

// create makes the object as the agent does.
func (w *world) create(t testing.TB) {
	t.Helper()
	var none *plan.Cache
	cached, err := none.Of(w.app)
	check.Must(t, err)
	drafts := cached.Drafts()
	if drafts[0].Namespace == "" {
		drafts[0].Namespace = w.home
	}
	check.Must(t, cached.Complete(w.app, drafts))
	w.live = drafts[0].Body()
}

// edited returns a copy of the object with another value at a field.
func (w *world) edited(t testing.TB, value any, fields ...string) map[string]any {
	t.Helper()
	live := runtime.DeepCopyJSON(w.live)
	check.Must(t, unstructured.SetNestedField(live, value, fields...))
	return live
}

func (w *world) update(t testing.TB, after map[string]any) admission.Request {
	t.Helper()
	request := requestFor(w.live, admissionv1.Update)
	request.OldObject.Raw, request.Object.Raw = raw(t, w.live), raw(t, after)
	return request
}

func (w *world) seven(t testing.TB) admission.Request {
	t.Helper()
	return w.update(t, w.edited(t, int64(7), "spec", "replicas"))
}

func (w *world) remove(t testing.TB) admission.Request {
	t.Helper()
	request := requestFor(w.live, admissionv1.Delete)
	request.OldObject.Raw = raw(t, w.live)
	return request
}

// scale is the request of a user who runs kubectl scale.
func (w *world) scale(t testing.TB, before, after int32) admission.Request {
	t.Helper()
	of := func(replicas int32) []byte {
		return raw(t, &autoscalingv1.Scale{
			TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: w.home}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas},
		})
	}
	request := requestFor(w.live, admissionv1.Update)
	request.SubResource, request.Kind = "scale", metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	request.OldObject.Raw, request.Object.Raw = of(before), of(after)
	return request
}

// requestFor returns a request of alice as the API server sends it, without objects.
func requestFor(live map[string]any, operation admissionv1.Operation) admission.Request {
	object := unstructured.Unstructured{Object: live}
	kind := object.GroupVersionKind()
	dryRun := false
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "review", Kind: metav1.GroupVersionKind(kind), Operation: operation, Namespace: object.GetNamespace(), Name: object.GetName(),
		Resource: metav1.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s"},
		UserInfo: authenticationv1.UserInfo{Username: "alice", Groups: []string{"dev", "system:authenticated"}}, DryRun: &dryRun,
	}}
}

// bodyOf returns a review as the API server posts it.
func bodyOf(t testing.TB, request admission.Request) []byte {
	t.Helper()
	return raw(t, &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Request: &request.AdmissionRequest,
	})
}

func raw(t testing.TB, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	check.Must(t, err)
	return text
}

var errSilent = errors.New("no answer")
