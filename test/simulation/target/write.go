package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4" // that of API servers
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

func (s *Server) create(answer http.ResponseWriter, request *http.Request, at key) error {
	content, err := readObject(request)
	if err != nil {
		return err
	}
	at.Name = (&unstructured.Unstructured{Object: content}).GetName()
	if namespace := keyOf("namespaces", "", at.Namespace); at.namespaced && s.store.get(namespace) == nil {
		return apierrors.NewNotFound(namespace.groupResource(), at.Namespace)
	}
	made, err := s.store.change(at, func(before *object) (map[string]any, error) {
		if before != nil {
			return nil, apierrors.NewAlreadyExists(at.groupResource(), at.Name)
		}
		return born(at, content), nil
	})
	if err != nil {
		return err
	}
	s.write(answer, http.StatusCreated, made.text)
	return nil
}

// born gives an object what the API server gives to a new one.
func born(at key, content map[string]any) map[string]any {
	object := unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(at.GroupVersionKind)
	object.SetNamespace(at.Namespace)
	object.SetUID(uuid.NewUUID())
	object.SetCreationTimestamp(metav1.NewTime(time.Now().UTC().Truncate(time.Second)))
	if at.resource == "services" {
		complete(content)
	}
	return content
}

func (s *Server) update(answer http.ResponseWriter, request *http.Request, at key) error {
	content, err := readObject(request)
	if err != nil {
		return err
	}
	return s.replace(answer, at, func(*object) (map[string]any, error) { return content, nil })
}

func (s *Server) patch(answer http.ResponseWriter, request *http.Request, at key) error {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return fmt.Errorf("read a patch: %w", err)
	}
	apply, err := patchOf(types.PatchType(request.Header.Get("Content-Type")), body)
	if err != nil {
		return err
	}
	return s.replace(answer, at, func(before *object) (map[string]any, error) {
		text, err := apply(before.text)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", at.groupResource(), at.Name, err.Error(), 0, false)
		}
		return decodeObject(text)
	})
}

// patchOf gives what a patch does. A strategic one is taken for a merge patch, which
// it is where it has no lists: agents patch so the count of an Event that recurs.
func patchOf(of types.PatchType, body []byte) (apply func(text []byte) ([]byte, error), err error) {
	switch of {
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return patch.Apply, nil
	case types.MergePatchType, types.StrategicMergePatchType:
		return func(text []byte) ([]byte, error) { return jsonpatch.MergePatch(text, body) }, nil
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", schema.GroupResource{}, "", string(of)+" is not supported", 0, true)
}

// replace writes an object over one that is of the version that it names, if it
// names one. That it is what it is stays as it was.
func (s *Server) replace(answer http.ResponseWriter, at key, renew func(before *object) (map[string]any, error)) error {
	after, err := s.store.change(at, func(before *object) (map[string]any, error) {
		if before == nil {
			return nil, apierrors.NewNotFound(at.groupResource(), at.Name)
		}
		content, err := renew(before)
		if err != nil {
			return nil, err
		}
		former, err := before.decode()
		if err != nil {
			return nil, err
		}
		return content, succeed(at, before, former, content)
	})
	if err != nil {
		return err
	}
	s.write(answer, http.StatusOK, after.text)
	return nil
}

// succeed gives an object what the API server keeps of its former self, or tells
// why it cannot come after that.
func succeed(at key, before *object, former, content map[string]any) error {
	was, is := unstructured.Unstructured{Object: former}, unstructured.Unstructured{Object: content}
	if uid := is.GetUID(); uid != "" && uid != before.uid {
		return apierrors.NewConflict(at.groupResource(), at.Name, fmt.Errorf("UID in precondition: %s, UID in object meta: %s", uid, before.uid))
	}
	version := is.GetResourceVersion()
	if version == "" && at.resource == "leases" {
		return apierrors.NewInvalid(at.GroupKind(), at.Name, field.ErrorList{field.Required(field.NewPath("metadata", "resourceVersion"), "must be specified for an update")})
	}
	if version != "" && version != strconv.FormatUint(before.version, 10) {
		return apierrors.NewConflict(at.groupResource(), at.Name,
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	is.SetGroupVersionKind(at.GroupVersionKind)
	is.SetNamespace(at.Namespace)
	is.SetName(at.Name)
	is.SetUID(before.uid)
	is.SetCreationTimestamp(was.GetCreationTimestamp())
	return nil
}

func (s *Server) delete(answer http.ResponseWriter, request *http.Request, at key) error {
	var options metav1.DeleteOptions
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return fmt.Errorf("read the options of a deletion: %w", err)
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	var uid types.UID
	_, err = s.store.change(at, func(before *object) (map[string]any, error) {
		if before == nil {
			return nil, apierrors.NewNotFound(at.groupResource(), at.Name)
		}
		uid = before.uid
		return nil, allowed(at, before, options.Preconditions)
	})
	if err != nil {
		return err
	}
	s.write(answer, http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: at.Name, Group: at.Group, Kind: at.resource, UID: uid},
	})
	return nil
}

// allowed tells if an object is the one that is to be deleted.
func allowed(at key, is *object, wanted *metav1.Preconditions) error {
	if wanted == nil {
		return nil
	}
	if wanted.UID != nil && *wanted.UID != is.uid {
		return apierrors.NewConflict(at.groupResource(), at.Name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", *wanted.UID, is.uid))
	}
	if version := strconv.FormatUint(is.version, 10); wanted.ResourceVersion != nil && *wanted.ResourceVersion != version {
		return apierrors.NewConflict(at.groupResource(), at.Name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s)", *wanted.ResourceVersion, version))
	}
	return nil
}

func readObject(request *http.Request) (map[string]any, error) {
	text, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	if request.Header.Get("Content-Type") == runtime.ContentTypeProtobuf {
		return decodeTyped(text)
	}
	return decodeObject(text)
}

// decodeTyped reads protobuf, in which clients with types write.
func decodeTyped(text []byte) (map[string]any, error) {
	typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
}

func decodeObject(text []byte) (map[string]any, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return object.Object, nil
}

// complete gives a Service what the API server gives to one of the usual type. All
// have the same address: nothing leads there.
func complete(service map[string]any) {
	const address = "10.0.0.10"
	spec, _ := service["spec"].(map[string]any)
	if spec == nil {
		return
	}
	defaults(spec, map[string]any{
		"type": "ClusterIP", "clusterIP": address, "clusterIPs": []any{address}, "internalTrafficPolicy": "Cluster",
		"ipFamilies": []any{"IPv4"}, "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
	})
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if port, ok := port.(map[string]any); ok {
			defaults(port, map[string]any{"protocol": "TCP", "targetPort": port["port"]})
		}
	}
	defaults(service, map[string]any{"status": map[string]any{"loadBalancer": map[string]any{}}})
}

func defaults(content, values map[string]any) {
	for name, value := range values {
		if _, ok := content[name]; !ok {
			content[name] = value
		}
	}
}
