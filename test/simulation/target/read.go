package target

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// view is what somebody asks for of the objects: which of them, and how much.
type view struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	// metadataOnly leaves out all but the metadata.
	metadataOnly bool
}

func viewOf(request *http.Request, at key) (view, error) {
	query := request.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return view{}, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return view{}, apierrors.NewBadRequest(err.Error())
	}
	return view{at.Namespace, byLabel, byField, wantsMetadata(request)}, nil
}

func wantsMetadata(request *http.Request) bool {
	return strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata")
}

// has tells if an object is among what is asked for.
func (v view) has(o *object) bool {
	return o != nil && (v.namespace == "" || v.namespace == o.Namespace) && v.labels.Matches(o.labels) &&
		v.fields.Matches(fields.Set{"metadata.name": o.Name, "metadata.namespace": o.Namespace})
}

// show gives of an object what is asked for.
func (v view) show(text json.RawMessage) (json.RawMessage, error) {
	if !v.metadataOnly {
		return text, nil
	}
	var object struct {
		metav1.TypeMeta

		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("read the metadata of an object: %w", err)
	}
	object.TypeMeta = metav1.TypeMeta{APIVersion: metadataVersion.String(), Kind: "PartialObjectMetadata"}
	return json.Marshal(object)
}

// kindOf gives the kind in which objects of a kind are shown.
func (v view) kindOf(k kind) metav1.TypeMeta {
	if v.metadataOnly {
		return metav1.TypeMeta{APIVersion: metadataVersion.String(), Kind: "PartialObjectMetadata"}
	}
	return metav1.TypeMeta{APIVersion: k.GroupVersion().String(), Kind: k.Kind}
}

func (s *Server) get(answer http.ResponseWriter, request *http.Request, at key) error {
	found := s.store.get(at)
	if found == nil {
		return apierrors.NewNotFound(at.groupResource(), at.Name)
	}
	shown, err := view{metadataOnly: wantsMetadata(request)}.show(found.text)
	if err != nil {
		return err
	}
	s.write(answer, http.StatusOK, shown)
	return nil
}

// list is a list of objects.
type list struct {
	metav1.TypeMeta

	Metadata metav1.ListMeta   `json:"metadata"`
	Items    []json.RawMessage `json:"items"`
}

func (s *Server) list(answer http.ResponseWriter, request *http.Request, at key) error {
	asked, err := viewOf(request, at)
	if err != nil {
		return err
	}
	objects, version := s.store.list(at.kind)
	listed := list{TypeMeta: asked.kindOf(at.kind), Items: []json.RawMessage{}}
	listed.Kind += "List"
	listed.Metadata.ResourceVersion = strconv.FormatUint(version, 10)
	for _, o := range objects {
		if !asked.has(o) {
			continue
		}
		shown, err := asked.show(o.text)
		if err != nil {
			return err
		}
		listed.Items = append(listed.Items, shown)
	}
	s.write(answer, http.StatusOK, listed)
	return nil
}
